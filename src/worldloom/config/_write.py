"""A configuration as plain values, and as YAML that loads back to an equal one."""

from __future__ import annotations

import dataclasses
import enum
import re
from pathlib import Path
from typing import Any

import yaml

from worldloom.config._decode import WRITTEN_MISSING
from worldloom.config._errors import ConfigError
from worldloom.config._schema import MISSING, check, entries, nested_config


def to_yaml(config: Any) -> str:
    """The YAML of a configuration: every key, defaults too, in the order of the fields.

    `load(type(config), path)` of a file with this text gives an equal configuration.

    ```python
    from dataclasses import dataclass
    from worldloom import config

    @dataclass(frozen=True)
    class Swarm:
        particles: int = 100
        step: float = 0.05

    print(config.to_yaml(Swarm(particles=7)))  # particles: 7 / step: 0.05
    ```
    """
    if isinstance(config, type) or not dataclasses.is_dataclass(config):
        raise ConfigError(f"to_yaml needs a dataclass instance, not {config!r}")
    check(type(config))
    return yaml.dump(encode(config), Dumper=_Dumper, sort_keys=False, width=100)


def encode(config: Any) -> dict[str, Any]:
    """The fields of a dataclass instance as plain values that OmegaConf reads back."""
    return {name: plain_value(getattr(config, name), name) for name in entries(type(config))}


def encode_defaults(cls: type) -> dict[str, Any]:
    """The defaults of `cls` as plain values. Required fields are absent."""
    found = {}
    for name, entry in entries(cls).items():
        if entry.default is not MISSING:
            declared = nested_config(entry.kind)
            if dataclasses.is_dataclass(entry.default) and type(entry.default) is not declared:
                raise ConfigError(
                    f"{cls.__name__}.{name}: the default is a {type(entry.default).__name__}, but "
                    "the field is declared otherwise; declare the class of the default"
                )
            found[name] = plain_value(entry.default, name)
        elif dataclasses.is_dataclass(entry.kind):
            found[name] = encode_defaults(entry.kind)  # pyright: ignore[reportArgumentType]
    return found


def plain_value(value: Any, name: str) -> Any:
    """The value of a field as one that OmegaConf reads back."""
    if dataclasses.is_dataclass(value):
        return encode(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, list | tuple):
        return [plain_value(element, name) for element in value]
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        if value == WRITTEN_MISSING:
            raise ConfigError(
                f"{name} is '???', which means a missing value in YAML; use other text"
            )
        # `${` would be an interpolation: escape it, and the backslashes before it.
        return re.sub(r"(\\*)\$\{", r"\1\1\\${", value)
    return value


class _Dumper(yaml.SafeDumper):
    """Quotes every text that is not plainly a word: YAML has many ways to misread one."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    word = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if word else '"')


_Dumper.add_representer(str, _write_text)
