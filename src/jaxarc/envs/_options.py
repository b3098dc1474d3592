"""What every option is held to: that it exists, its kind, its range."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NoReturn, TypeVar, dataclass_transform

from worldloom._errors import WorldloomError

T = TypeVar("T")


class ConfigError(WorldloomError, ValueError, TypeError):
    """An option that does not exist, or a value that it cannot have.

    `option` and `reason` say which one and why, where it is one option alone.
    """

    option: str | None = None
    reason: str = ""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def config_class(cls: type[T]) -> type[T]:
    """A frozen dataclass of keywords that names its options when it is given another one."""
    made: Any = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    fill = made.__init__
    names = [field.name for field in dataclasses.fields(made)]

    def __init__(self, **options):
        for name in options:
            if name not in names:
                known = ", ".join(names)
                raise ConfigError(f"{cls.__name__} has no option {name!r}; it has: {known}")
        fill(self, **options)

    made.__init__ = __init__
    return made


def refuse(config: Any, name: str, expected: str) -> NoReturn:
    """Raise for a value that an option cannot have."""
    value = getattr(config, name)
    error = ConfigError(f"{type(config).__name__}({name}={value!r}): expected {expected}")
    error.option, error.reason = name, f"{value!r}: expected {expected}"
    raise error


def check_choice(config: Any, name: str, choices: tuple[str, ...]) -> None:
    """One of some words."""
    value = getattr(config, name)
    if not isinstance(value, str) or value not in choices:
        refuse(config, name, "one of " + ", ".join(map(repr, choices)))


def check_range(config: Any, name: str, low: int, high: int | None = None) -> None:
    """An integer, none of them `True` or `1.0`."""
    value = getattr(config, name)
    if type(value) is not int or value < low or (high is not None and value > high):
        between = f"{low} or more, an integer" if high is None else f"an integer {low} to {high}"
        refuse(config, name, between)


def check_bool(config: Any, name: str) -> None:
    """`True` or `False`, and not what only counts as one of them."""
    if type(getattr(config, name)) is not bool:
        refuse(config, name, "True or False")


def is_number(value: Any) -> bool:
    """Whether it is a real number; `True` is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_number(
    config: Any,
    name: str,
    *,
    low: float,
    high: float = math.inf,
    open: bool = False,
    hint: str = "",
) -> None:
    """A finite number from `low` to `high`; `open`: neither of the two."""
    value = getattr(config, name)
    inside = is_number(value) and math.isfinite(value) and low <= value <= high
    if inside and not (open and value in (low, high)):
        return
    between = f"above {low:g}" if open else f"{low:g} or more"
    if high < math.inf:
        between = f"between {low:g} and {high:g}" if open else f"{low:g} to {high:g}"
    refuse(config, name, f"a finite number, {between}{hint}")


def check_kind(config: Any, name: str, kind: type) -> None:
    """An object of a class."""
    if not isinstance(getattr(config, name), kind):
        refuse(config, name, f"a {kind.__name__}(...)")
