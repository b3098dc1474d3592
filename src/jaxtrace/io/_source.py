"""What a dataset needs to know of a series of files, whatever their format."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from jaxtrace.fields._frame import Frame
from jaxtrace.io._block import ArrayInfo
from jaxtrace.io._geometry import Geometry


class Slice(NamedTuple):
    """One moment of a dataset.

    - `velocity`: `[*nodes, dim]` of a grid, `[P, dim]` of a mesh or of points.
    - `scalars`: `[*nodes]` or `[P]`, by name.
    """

    velocity: np.ndarray
    scalars: dict[str, np.ndarray]


@runtime_checkable
class Source(Protocol):
    """A series of files that were opened. Slices can be read in any order, from any thread."""

    format: str
    files: tuple[str, ...]
    names: tuple[str, ...]
    """For each slice the file that it is in."""
    times: np.ndarray
    epoch: str
    frame: Frame
    geometry: Geometry
    arrays: tuple[ArrayInfo, ...]
    velocity: tuple[str, ...]
    scalars: tuple[str, ...]
    notes: tuple[str, ...]

    def read(self, i: int) -> Slice:
        """One slice, in the type of the file."""
        ...
