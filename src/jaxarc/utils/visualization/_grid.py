"""A grid to look at: checked, cut to the cells it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, UInt8

from jaxarc.bitgrid import WORD
from worldloom._errors import WorldloomError

COLOURS = 10


class GridError(WorldloomError, ValueError):
    """Something that is no ARC grid was to be drawn."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a grid, and which of them exist."""

    colours: UInt8[np.ndarray, "height width"]
    exist: Bool[np.ndarray, "height width"]

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        height, width = self.colours.shape
        return height, width


def cells_of(grid: Any, mask: Any = None, *, name: str = "grid") -> Cells:
    """Check a grid and cut it to the box around its cells.

    **Arguments:**

    - `grid`: whole numbers 0 to 9, of any dtype; -1 is no cell, as in an observation. At most
      32 x 32.
    - `mask`: where there are cells; everywhere by default.
    - `name`: what messages call it.
    """
    values = np.asarray(grid)
    if values.ndim != 2:
        raise GridError(f"{name} has the shape {values.shape}; expected height and width")
    if 0 in values.shape:
        raise GridError(f"{name} is {_size(values)}; expected at least one cell")
    if max(values.shape) > WORD:
        raise GridError(f"{name} is {_size(values)}; expected at most {WORD} x {WORD} cells")
    if values.dtype == bool or not np.issubdtype(values.dtype, np.number):
        raise GridError(f"{name} has the dtype {values.dtype}; expected numbers 0 to 9")
    exist = np.ones(values.shape, bool) if mask is None else np.asarray(mask)
    if exist.dtype != bool or exist.shape != values.shape:
        raise GridError(
            f"the mask of {name} is {exist.dtype}{list(exist.shape)}; "
            f"expected bool{list(values.shape)}, as large as the grid"
        )
    exist = exist & (values != -1)
    known = np.isin(values, np.arange(COLOURS))
    if (exist & ~known).any():
        row, column = map(int, np.argwhere(exist & ~known)[0])
        raise GridError(
            f"{name} has {values[row, column]} in row {row}, column {column}; "
            "expected whole numbers 0 to 9, or -1 where there is no cell"
        )
    if not exist.any():
        raise GridError(f"{name} has no cells: every one is masked out or -1")
    height = int(np.flatnonzero(exist.any(axis=1))[-1]) + 1
    width = int(np.flatnonzero(exist.any(axis=0))[-1]) + 1
    colours = np.where(exist, values, 0)[:height, :width].astype(np.uint8)
    return Cells(colours, exist[:height, :width])


def _size(values: np.ndarray) -> str:
    return " x ".join(map(str, values.shape))


def differing(cells: Cells, other: Cells) -> Bool[np.ndarray, "height width"]:
    """The cells of the first grid that are not the same in the second, or not in it."""
    marked = cells.exist.copy()
    height, width = np.minimum(cells.shape, other.shape)
    here, there = cells.colours[:height, :width], other.colours[:height, :width]
    same = (here == there) & other.exist[:height, :width]
    marked[:height, :width] &= ~same
    return marked
