"""Which variables of a NetCDF file or a Zarr store are the velocity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtrace.io._block import ArrayInfo
from jaxtrace.io._errors import DataError
from jaxtrace.io._velocity import COMPONENT_NAMES, STANDARD_NAMES, by_name, listing
from worldloom._way import way


def say_which() -> str:
    """How to name the velocity, as the end of a sentence."""
    return way(
        "; say which with velocity=('u', 'v') or velocity=('u', 'v', 'w')",
        "; say which with --velocity u v or --velocity u v w",
    )


def choose(
    dataset: Any, arrays: Sequence[ArrayInfo], wanted: str | Sequence[str] | None, where: str
) -> tuple[str, ...]:
    """The names of the components: two or three."""
    if wanted is not None:
        names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        if len(names) not in (2, 3):
            example = way(", as in velocity=('u', 'v')", ", as in --velocity u v")
            raise DataError(
                f"{where}: velocity={wanted!r}: expected the names of two or three variables"
                f"{example}. There are: "
                f"{listing(arrays)}"
            )
        for name in names:
            by_name(arrays, name, where)
        return names
    standard: dict[str, list[str]] = {}
    for array in arrays:
        name = str(dataset[array.name].attrs.get("standard_name", ""))
        standard.setdefault(name, []).append(array.name)
    lower: dict[str, list[str]] = {}
    for array in arrays:
        lower.setdefault(array.name.lower(), []).append(array.name)
    for table, named in ((STANDARD_NAMES, standard), (COMPONENT_NAMES, lower)):
        groups = [group for group in table if group[0] in named and group[1] in named]
        if len(groups) > 1 or any(len(named[n]) > 1 for g in groups for n in g if n in named):
            choices = sorted({one for g in groups for n in g for one in named.get(n, [])})
            raise DataError(
                f"{where}: {choices} are more than one velocity"
                f"{say_which()}. There are: {listing(arrays)}"
            )
        if groups:
            return tuple(named[name][0] for name in groups[0] if name in named)
    raise DataError(
        f"{where}: no variables are obviously the velocity"
        f"{say_which()}. There are: {listing(arrays)}"
    )
