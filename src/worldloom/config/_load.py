"""`load`: a file, overrides and defaults become one checked configuration."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from omegaconf import OmegaConf

from worldloom.config._compose import compose, selects_group
from worldloom.config._decode import Decoder
from worldloom.config._errors import ConfigError
from worldloom.config._schema import MISSING, check, entries, is_sequence, members, nested_config
from worldloom.config._source import (
    Key,
    Override,
    Source,
    dotted,
    explain,
    parse_override,
    read_yaml,
)
from worldloom.config._write import encode_defaults

C = TypeVar("C")


def load(
    cls: type[C],
    path: str | os.PathLike[str] | None = None,
    *,
    overrides: Sequence[str] = (),
) -> C:
    """Make a `cls` from its defaults, then a YAML file, then `key=value` overrides.

    **Arguments:**

    - `cls`: a frozen dataclass. Its fields may be `bool`, `int`, `float`, `str`, `Path`, enums,
      `Literal`, tuples, `Optional` and other unions of these, and frozen dataclasses.
    - `path`: a YAML file, or `None` for the defaults alone. `${other.key}` refers to another
      value. A file with a `defaults:` list is composed by Hydra from the folder it is in.
    - `overrides`: strings such as `"seed=3"`, `"optimizer.rate=1e-3"`, `"layers=[64, 64]"`,
      `"layers[0]=32"`. With a `defaults:` list also `"optimizer=adam"`: another file of a group.

    Everything is checked before the configuration is built: all unknown keys and wrong values
    are told in one `ConfigError`, each with its file and line or its override.

    ```python
    from dataclasses import dataclass
    from worldloom import config

    @dataclass(frozen=True)
    class Swarm:
        particles: int = 100
        step: float = 0.05

    assert config.load(Swarm, overrides=["particles=1e6"]) == Swarm(particles=1_000_000)
    ```
    """
    return _resolve(cls, path, overrides, build=lambda kind, values: kind(**values))


def draft(
    cls: type[C], path: str | os.PathLike[str] | None, overrides: Sequence[str], *, missing: Any
) -> C:
    """A `cls` that may be incomplete: fields that nobody gave hold `missing`.

    For a command line, where flags still follow. `__post_init__` does not run.
    """
    return _resolve(cls, path, overrides, build=_unchecked, missing=missing)


def _unchecked(cls: type, values: dict[str, Any]) -> Any:
    config = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(config, name, value)
    return config


def _resolve(
    cls: type[C],
    path: str | os.PathLike[str] | None,
    overrides: Sequence[str],
    *,
    build: Callable[[type, dict[str, Any]], Any],
    missing: Any = MISSING,
) -> C:
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ConfigError(f"cls must be a frozen dataclass, not {cls!r}")
    if isinstance(overrides, str):
        raise ConfigError(f"overrides must be a list of strings, not one string {overrides!r}")
    check(cls)
    written, sources, rest = _read(cls, None if path is None else Path(path), overrides)
    decoder = Decoder(cls, sources, build, missing)
    value = _merged(encode_defaults(cls), written)
    for text in rest:
        try:
            override = parse_override(text)
            # What the file said at and below this key counts no more.
            sources = {key: at for key, at in sources.items() if not _is_below(key, override.key)}
            sources[override.key] = override.source
            decoder = dataclasses.replace(decoder, sources=sources)
            _check_place(cls, override, decoder)
            value = _put(value, override.key, override.value, ())
        except ConfigError as error:
            place = f"override {text!r}: "
            decoder.problems.extend(
                place + problem.removeprefix(place) for problem in error.problems
            )
    if decoder.problems:
        raise ConfigError(decoder.problems)
    try:
        resolved = OmegaConf.to_container(OmegaConf.create(value), resolve=True)
    except Exception as error:  # OmegaConf and ANTLR raise their own on a broken `${...}`
        raise ConfigError(explain(error, sources, str(path or "overrides"))) from error
    assert isinstance(resolved, dict)
    config = decoder.config(cls, resolved, ())
    if decoder.problems:
        raise ConfigError(decoder.problems)
    return config


def _read(
    cls: type, path: Path | None, overrides: Sequence[str]
) -> tuple[dict[Any, Any], dict[Key, Source], list[str]]:
    """What the file says, where, and the overrides that are still to be applied."""
    if path is None:
        return {}, {}, list(overrides)
    written, sources = read_yaml(path)
    if "defaults" not in written or "defaults" in entries(cls):
        return written, sources, list(overrides)
    choices = [text for text in overrides if selects_group(text, path.parent)]
    written, sources = compose(path, choices)
    return written, sources, [text for text in overrides if text not in choices]


def _merged(below: Any, above: Any) -> Any:
    """Mappings are merged key by key; anything else is replaced."""
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    merged = dict(below)
    for key, value in above.items():
        merged[key] = _merged(merged[key], value) if key in merged else value
    return merged


def _is_below(key: Key, above: Key) -> bool:
    return key[: len(above)] == above


def _check_place(cls: type, override: Override, decoder: Decoder) -> None:
    """Refuse the key of an override that cannot exist in a `cls`."""
    kind: Any = cls
    for depth, part in enumerate(override.key):
        inner = nested_config(kind)
        around = dotted(override.key[:depth])
        if inner is not None:
            known = entries(inner)
            if part not in known:
                raise ConfigError(decoder.unknown_key(inner, override.key[: depth + 1]))
            kind = known[str(part)].kind
        elif not any(map(is_sequence, members(kind))):
            raise ConfigError(f"{around!r} has no parts, so {part!r} is not a key of it")
        elif not isinstance(part, int):
            raise ConfigError(f"{around!r} is a list; use {around}[0] for an element")
        else:
            return  # what is inside an element is checked with its value


def _put(value: Any, key: Key, new: Any, around: Key) -> Any:
    """`value` with `new` at `key` inside it."""
    if not key:
        return _merged(value, new)
    part, rest, here = key[0], key[1:], (*around, key[0])
    if isinstance(part, int):
        size = len(value) if isinstance(value, list) else 0
        if part >= size:
            raise ConfigError(f"{dotted(around)!r} has {size} elements, so there is no [{part}]")
        return [*value[:part], _put(value[part], rest, new, here), *value[part + 1 :]]
    if isinstance(value, str):
        raise ConfigError(f"{dotted(around)!r} is {value!r}, so a part of it cannot be set alone")
    inner = value if isinstance(value, Mapping) else {}
    return {**inner, part: _put(inner.get(part), rest, new, here)}
