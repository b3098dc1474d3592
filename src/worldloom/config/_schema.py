"""The types a configuration may be made of, and words for them."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from worldloom.config._errors import ConfigError

MISSING = dataclasses.MISSING
SCALARS = (bool, int, float, str, Path)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One field of a configuration: its name, its type, and its default (or `MISSING`)."""

    name: str
    kind: Any
    default: Any


def is_config(kind: Any) -> TypeGuard[type]:
    """Whether `kind` is a dataclass type, so a nested configuration."""
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def is_enum(kind: Any) -> TypeGuard[type[enum.Enum]]:
    """Whether `kind` is an enumeration type."""
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def is_union(kind: Any) -> bool:
    """Whether `kind` is `A | B` or `Optional[A]`."""
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def is_literal(kind: Any) -> bool:
    """Whether `kind` is `Literal[...]`."""
    return typing.get_origin(kind) is typing.Literal


def is_sequence(kind: Any) -> bool:
    """Whether `kind` is `tuple[...]`."""
    return typing.get_origin(kind) is tuple


def plain(kind: Any) -> Any:
    """`kind` without `Annotated`."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    return kind


def entries(cls: type) -> dict[str, Entry]:
    """The fields that the constructor of `cls` takes, by name, in order."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise ConfigError(
            f"{cls.__name__}: a type annotation cannot be resolved ({error}). Import the types of "
            "a configuration at the top of its module, not under TYPE_CHECKING or in a function"
        ) from error
    found = {}
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        found[field.name] = Entry(field.name, plain(hints[field.name]), default)
    return found


def element_kinds(kind: Any, length: int) -> list[Any]:
    """The types of `length` elements of a tuple type; of one with a fixed length, of its own."""
    args = typing.get_args(kind)
    if len(args) == 2 and args[1] is Ellipsis:
        return [plain(args[0])] * length
    return [] if args == ((),) else [plain(arg) for arg in args]


def members(kind: Any) -> list[Any]:
    """The alternatives of a union; `[kind]` for anything else."""
    if not is_union(kind):
        return [kind]
    return [plain(arg) for arg in typing.get_args(kind)]


def nested_config(kind: Any) -> type | None:
    """The configuration that `kind` is, or is optionally; `None` where it is a leaf."""
    return next((member for member in members(kind) if is_config(member)), None)


def describe(kind: Any) -> str:
    """`kind` in words, to complete the sentence "expected ..."."""
    if kind is type(None):
        return "null"
    if is_union(kind):
        return " or ".join(describe(member) for member in members(kind))
    if is_literal(kind):
        return "one of " + ", ".join(repr(choice) for choice in typing.get_args(kind))
    if is_enum(kind):
        return "one of " + ", ".join(member.name for member in kind)
    if is_config(kind):
        return f"the keys of {kind.__name__} ({', '.join(entries(kind))})"
    if is_sequence(kind):
        args = typing.get_args(kind)
        if len(args) == 2 and args[1] is Ellipsis:
            return f"a list, each element {describe(plain(args[0]))}"
        fixed = element_kinds(kind, 0)
        return f"a list of {len(fixed)}: " + ", ".join(describe(element) for element in fixed)
    return {bool: "true or false", int: "an int", float: "a float", str: "a str", Path: "a path"}[
        kind
    ]


def check(cls: type) -> None:
    """Refuse a class that is not a frozen dataclass of types that YAML can hold."""
    problems = list(_defects(cls, cls.__name__, ()))
    if problems:
        raise ConfigError(problems)


def _defects(kind: Any, where: str, seen: tuple[type, ...]) -> Iterator[str]:
    if is_config(kind):
        if kind in seen:
            return
        # `__dataclass_params__` is how the standard library records `frozen=True`.
        if not kind.__dataclass_params__.frozen:
            yield f"{where}: {kind.__name__} must be frozen: use @dataclass(frozen=True)"
        for entry in entries(kind).values():
            yield from _defects(entry.kind, f"{where}.{entry.name}", (*seen, kind))
    elif is_union(kind):
        alternatives = members(kind)
        if sum(map(is_config, alternatives)) > 1:
            yield (
                f"{where}: a union of several configurations cannot be told apart in YAML; "
                "use one configuration with a Literal field that selects"
            )
        for member in alternatives:
            yield from _defects(member, where, seen)
    elif is_sequence(kind):
        for element in element_kinds(kind, 1):
            yield from _defects(element, where, seen)
    elif not (kind in SCALARS or kind is type(None) or is_literal(kind) or is_enum(kind)):
        name = getattr(kind, "__name__", str(kind))
        remedy = "use tuple[T, ...]" if name in ("list", "tuple", "List") else "use a supported one"
        yield (
            f"{where}: the type {name} is not supported; {remedy}. Supported: bool, int, float, "
            "str, Path, Enum, Literal, tuple, Optional, unions of these, frozen dataclasses"
        )
