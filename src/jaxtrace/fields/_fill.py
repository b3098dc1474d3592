"""Numbers that stand for "missing" in files whose writers did not say so."""

from __future__ import annotations

import numpy as np

HUGE = 1e10
"""No quantity that is measured in a flow has values beyond."""

_MARKS = (-9999.0, -999.0, 9999.0, 99999.0, -99999.0, 32767.0, -32767.0, -32768.0, -32766.0)
_APART = 5.0  # times as large as every other value


def unmarked_fill(values: np.ndarray) -> tuple[float, int] | None:
    """The number that seems to stand for missing values, and how often it is there.

    Numbers beyond 1e10 do (1e20, 9.97e36), and the least or the greatest where it is one of those
    that are in use (-9999, 32767) and far from all others.
    """
    if not values.size:
        return None
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        ends = float(np.nanmin(values, initial=np.inf)), float(np.nanmax(values, initial=-np.inf))
    for end in ends:
        if not np.isfinite(end):
            continue
        if abs(end) >= HUGE:
            return end, int((np.abs(values) >= HUGE).sum())
        if end in _MARKS:
            others = values[np.isfinite(values) & (values != end)]
            if others.size and _APART * float(np.abs(others).max()) < abs(end):
                return end, int((values == end).sum())
    return None


def fill_message(found: tuple[float, int], name: str) -> str:
    """The words of the warning."""
    value, count = found
    return (
        f"{name} is {value:g} in {count:,} places: this looks like a mark for missing values that "
        "the file does not declare, and particles would be carried by it. Mark them with NaN, or "
        "set the attribute '_FillValue'"
    )
