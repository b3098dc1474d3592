"""A configuration as the command line that makes it."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
import shlex
import typing
from collections.abc import Iterator
from typing import Any

from worldloom.config._schema import MISSING, entries
from worldloom.config._source import looks_like_override
from worldloom.config._write import plain_value

_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")  # what a parser of flags takes for a number, no flag


def as_command(prog: str, config: Any) -> str:
    """The command line for which a command is called with an equal configuration.

    Only what differs from the defaults is written, quoted for a shell. What a flag cannot hold,
    such as text that begins with a dash, is written as a `key=value` word.

    **Arguments:**

    - `prog`: the words before the options: `"worldloom demo"`.
    - `config`: a configuration of that command.

    ```python
    from worldloom.cli import as_command
    from worldloom.cli._demo import Demo

    assert as_command("worldloom demo", Demo()) == "worldloom demo"
    ```
    """
    places: list[str] = []
    flags: list[str] = []
    settings: list[str] = []
    for name, value, kind, positional in _changed(config, MISSING, ""):
        words = [_word(one) for one in (value if isinstance(value, tuple) else (value,))]
        unclear = value is None or isinstance(value, bool) != (kind is bool)
        if unclear or not words or not all(map(_is_plain, words)):
            settings.append(f"{name}={_yaml(plain_value(value, name))}")
        elif positional:
            places += words
        elif kind is bool:
            around, dot, own = name.replace("_", "-").rpartition(".")
            flags.append(f"--{around}{dot}{'' if value else 'no-'}{own}")
        else:
            flags += [f"--{name.replace('_', '-')}", *words]
    # Settings first: behind `--number -1` a word `key=value` would be taken for a flag's value.
    return " ".join([prog, shlex.join([*settings, *places, *flags])]).strip()


def _changed(config: Any, default: Any, around: str) -> Iterator[tuple[str, Any, Any, bool]]:
    """Dotted name, value, type, and whether it goes without a flag, of what is not a default."""
    import tyro

    hints = typing.get_type_hints(type(config), include_extras=True)
    for name, entry in entries(type(config)).items():
        value = getattr(config, name)
        usual = entry.default if default is MISSING else getattr(default, name)
        if dataclasses.is_dataclass(value) and (usual is MISSING or type(usual) is type(value)):
            yield from _changed(value, usual, f"{around}{name}.")
        elif usual is MISSING or value != usual:
            told = getattr(hints[name], "__metadata__", ())
            yield around + name, value, entry.kind, tyro.conf.Positional in told


def _word(value: Any) -> str:
    return value.name if isinstance(value, enum.Enum) else str(value)


def _is_plain(word: str) -> bool:
    """Whether a word is taken as the value that it is, wherever it stands."""
    if word.startswith("-") and not _NEGATIVE.fullmatch(word):
        return False
    return bool(word) and not looks_like_override(word) and not word.endswith((".yaml", ".yml"))


def _yaml(value: Any) -> str:
    """A plain value as it is written behind `key=`."""
    if isinstance(value, dict):
        inside = (f"{json.dumps(name)}: {_yaml(one)}" for name, one in value.items())
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return json.dumps(value, ensure_ascii=False)
