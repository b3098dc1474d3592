"""Plain values (dict, list, scalars) into the typed fields of a frozen dataclass."""

from __future__ import annotations

import dataclasses
import difflib
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from worldloom.config._schema import (
    MISSING,
    describe,
    element_kinds,
    entries,
    is_config,
    is_enum,
    is_literal,
    is_sequence,
    is_union,
    members,
    nested_config,
)
from worldloom.config._source import Key, Source, dotted, locate

WRITTEN_MISSING = "???"  # OmegaConf's mark for "somebody must give this"


@dataclasses.dataclass(frozen=True)
class Decoder:
    """Turns plain values into a configuration and notes every problem on the way.

    **Arguments:**

    - `sources`: where each key was written.
    - `build`: makes a configuration of a class from its field values.
    - `missing`: the value of a required field that nobody gave; `MISSING` makes it a problem.
    - `problems`: sentences, appended to.
    """

    root: type
    sources: dict[Key, Source]
    build: Callable[[type, dict[str, Any]], Any]
    missing: Any = MISSING
    problems: list[str] = dataclasses.field(default_factory=list)

    def config(self, cls: type, value: Mapping[Any, Any], key: Key) -> Any:
        """The configuration of class `cls` that the mapping `value` describes."""
        known = entries(cls)
        for name in value:
            if name not in known:
                self.problems.append(self.unknown_key(cls, (*key, str(name))))
        values = {}
        before = len(self.problems)
        for name, entry in known.items():
            inner = (*key, name)
            if name in value and value[name] != WRITTEN_MISSING:
                values[name] = self.value(entry.kind, value[name], inner)
            elif name not in value and entry.default is not MISSING:
                values[name] = entry.default
            elif self.missing is not MISSING:
                values[name] = self.missing
            else:
                self.problems.append(
                    f"{self._place(key)}{dotted(inner)} is required and has no default; "
                    f"give it in the file or as {dotted(inner)}=VALUE ({describe(entry.kind)})"
                )
        if len(self.problems) > before:
            return None
        try:
            return self.build(cls, values)
        except ValueError as error:
            self.problems.append(f"{self._place(key)}{cls.__name__}: {error}")
            return None

    def value(self, kind: Any, value: Any, key: Key) -> Any:
        """`value` as `kind`."""
        if is_union(kind):
            return self._union(kind, value, key)
        if is_config(kind) and isinstance(value, Mapping):
            return self.config(kind, value, key)
        if is_sequence(kind) and isinstance(value, list | tuple):
            kinds = element_kinds(kind, len(value))
            if len(kinds) == len(value):
                pairs = enumerate(zip(kinds, value, strict=True))
                return tuple(self.value(k, v, (*key, index)) for index, (k, v) in pairs)
        found = as_leaf(kind, value, self.sources.get(key))
        if found is MISSING:
            self.problems.append(self._mismatch(kind, value, key))
        return found

    def unknown_key(self, cls: type, key: Key) -> str:
        """A sentence about a key that `cls` does not have, with the nearest that exists."""
        known = list(entries(cls))
        name = str(key[-1])
        around = dotted(key[:-1])
        nearest = difflib.get_close_matches(name, known, n=1)
        suggestion = f"{around}.{nearest[0]}" if nearest and around else "".join(nearest)
        if not nearest:
            everywhere: dict[str, str] = {}
            for path in _paths(self.root, "", ()):
                everywhere.setdefault(path.rpartition(".")[2], path)
            elsewhere = difflib.get_close_matches(name, list(everywhere), n=1)
            suggestion = everywhere[elsewhere[0]] if elsewhere else ""
        hint = f" Did you mean {suggestion!r}?" if suggestion else ""
        where = locate(key, self.sources, "the configuration").where
        return (
            f"{where}: unknown key {dotted(key)!r}.{hint} "
            f"Valid keys {f'of {around!r}' if around else 'here'}: {', '.join(known) or 'none'}."
        )

    def _place(self, key: Key) -> str:
        """Where the configuration at `key` was written, as a prefix; empty where that is vague."""
        if found := locate(key, self.sources, "").where:
            return f"{found}: "
        inside = {at.where: None for inner, at in self.sources.items() if inner[: len(key)] == key}
        return f"{' and '.join(inside)}: " if 1 <= len(inside) <= 2 else ""

    def _union(self, kind: Any, value: Any, key: Key) -> Any:
        alternatives = members(kind)
        # The type that the value already has wins over one that it could be read as.
        for exact in (True, False):
            for member in alternatives:
                if exact and member in (int, float, str, bool) and type(value) is not member:
                    continue
                attempt = dataclasses.replace(self, problems=[])
                found = attempt.value(member, value, key)
                if not attempt.problems:
                    return found
        inner = nested_config(kind)
        if inner is not None and isinstance(value, Mapping):
            return self.value(inner, value, key)  # its own problems say more than ours
        self.problems.append(self._mismatch(kind, value, key))
        return None

    def _mismatch(self, kind: Any, value: Any, key: Key) -> str:
        where = locate(key, self.sources, "the default").where
        what = "null" if value is None else f"{value!r} (a {type(value).__name__})"
        hint = ""
        if is_enum(kind) or is_literal(kind):
            choices = kind.__members__ if is_enum(kind) else map(str, typing.get_args(kind))
            nearest = difflib.get_close_matches(str(value), list(choices), n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        elif kind is str:
            hint = " Put it in quotes." if isinstance(value, bool | int | float) else ""
        return f"{where}: {dotted(key)} is {what}; expected {describe(kind)}.{hint}"


def as_leaf(kind: Any, value: Any, source: Source | None) -> Any:
    """A scalar `value` as `kind`, or `MISSING` where it is not one.

    Nothing is lost in reading: an int is a float, 1e6 is an int, and where text is wanted the
    characters in the file count (`off` stays "off", `1.10` stays "1.10").
    """
    text = _text(value, source)
    if is_enum(kind):
        return kind.__members__.get(text, MISSING) if text is not None else MISSING
    if is_literal(kind):
        choices = typing.get_args(kind)
        same = (choice for choice in choices if type(choice) is type(value) and choice == value)
        return next(same, text if text is not None and text in choices else MISSING)
    if kind in (str, Path):
        return MISSING if text is None or (kind is Path and not text) else kind(text)
    if isinstance(value, int) and not isinstance(value, bool):
        if kind is int:
            return value
        if kind is float and abs(value) <= sys.float_info.max:
            return float(value)
    if isinstance(value, float):
        if kind is float:
            return value
        if kind is int and value.is_integer():
            return int(value)
    if (kind is bool and isinstance(value, bool)) or (kind is type(None) and value is None):
        return value
    return MISSING


def _text(value: Any, source: Source | None) -> str | None:
    if isinstance(value, str):
        return value
    written = source.text if source else None
    if written is None or "${" in written:
        return None
    if isinstance(value, bool | int | float) or (value is None and not written.strip()):
        return written.strip()
    return None


def _paths(cls: type, prefix: str, seen: tuple[type, ...]) -> Iterator[str]:
    for name, entry in entries(cls).items():
        yield prefix + name
        inner = nested_config(entry.kind)
        if inner is not None and inner not in seen:
            yield from _paths(inner, f"{prefix}{name}.", (*seen, cls))
