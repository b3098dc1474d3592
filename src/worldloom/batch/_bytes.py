"""Amounts of memory, as people write them."""

from __future__ import annotations

import math
import re

from worldloom.batch._errors import BatchError

_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | _BINARY
_BY_LOWER = {name.lower(): size for name, size in _UNITS.items()}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_bytes(amount: int | float | str) -> int:
    """A number of bytes, from a number or from text such as `"2 GiB"` or `"500 MB"`.

    `KiB`, `MiB`, `GiB`, `TiB` are powers of 1024; `kB`, `MB`, `GB`, `TB` powers of 1000.

    ```python
    from worldloom import batch

    assert batch.parse_bytes("1.5 KiB") == 1536
    ```
    """
    if isinstance(amount, str):
        match = _AMOUNT.fullmatch(amount)
        unit = _BY_LOWER.get((match[2] or "B").lower()) if match else None
        if match is None or unit is None:
            raise BatchError(
                f"{amount!r} is not an amount of memory. Write a number and one of the units "
                f"{', '.join(_UNITS)}: '2 GiB'."
            )
        return int(float(match[1]) * unit)
    if isinstance(amount, bool) or not math.isfinite(amount) or amount < 0:
        raise BatchError(f"{amount!r} is not an amount of memory: expected bytes, from 0 up.")
    return int(amount)


def format_bytes(count: int | float) -> str:
    """`count` bytes for people: `"1.50 KiB"`."""
    name, size = "B", 1
    for unit, bytes_of_unit in _BINARY.items():
        if abs(count) >= bytes_of_unit:
            name, size = unit, bytes_of_unit
    return f"{count:.0f} B" if size == 1 else f"{count / size:.2f} {name}"
