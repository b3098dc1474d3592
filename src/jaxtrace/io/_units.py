"""Units as files write them: what they measure, and how many of the plain unit they are."""

from __future__ import annotations

import re

_LENGTH = {"m": 1.0, "metre": 1.0, "meter": 1.0, "km": 1e3, "kilometre": 1e3, "kilometer": 1e3}
_LENGTH |= {"cm": 1e-2, "mm": 1e-3, "dm": 0.1, "ft": 0.3048, "foot": 0.3048, "feet": 0.3048}
_ANGLE = {"degree": 1.0, "deg": 1.0, "degrees": 1.0}
_ANGLE |= {f"{word}{d}": 1.0 for word in ("degree", "degrees") for d in ("_east", "_e", "_north")}
_ANGLE |= {f"{word}{d}": 1.0 for word in ("degree", "degrees") for d in ("_n", "east", "north")}
_PRESSURE = {"pa": 1.0, "hpa": 100.0, "mbar": 100.0, "millibar": 100.0, "mb": 100.0, "bar": 1e5}
_PRESSURE |= {"dbar": 1e4, "decibar": 1e4, "kpa": 1e3}
_TIME = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0}
_TIME |= {"hr": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}


def quantity(text: str) -> tuple[str, float] | None:
    """`("length", metres)`, `("angle", degrees)` or `("pressure", pascals)`; `None` if unknown."""
    word = text.strip().lower()
    for name, table in (("length", _LENGTH), ("angle", _ANGLE), ("pressure", _PRESSURE)):
        for form in (word, word.removesuffix("s")):
            if form in table:
                return name, table[form]
    return None


def rate(text: str) -> tuple[str, float] | None:
    """What a unit of velocity measures a second: `("length", metres)` and so on."""
    word = text.strip().lower()
    if word in ("knot", "knots", "kt", "kts", "kn"):
        return "length", 1852.0 / 3600.0
    match = re.fullmatch(r"([a-z_]+)\s*(?:/\s*([a-z]+)|[\s.*]\s*([a-z]+)\s*(?:\^|\*\*)?-1)", word)
    if match is None:
        return None
    above, below = quantity(match[1]), match[2] or match[3]
    seconds = _TIME.get(below, _TIME.get(below.removesuffix("s")))
    if above is None or seconds is None:
        return None
    return above[0], above[1] / seconds
