"""Where values are: the nodes of a grid, the points of a mesh, or points alone."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeAlias

import numpy as np

from jaxtrace._config import float_dtype
from jaxtrace.fields import StructuredField, TetField, TimeSeriesField


@dataclasses.dataclass(frozen=True, eq=False)
class Grid:
    """A rectilinear grid.

    **Attributes:**

    - `axes`: two or three arrays of increasing coordinates.
    - `period`: for each axis its period, or `None`.
    """

    kind: ClassVar[str] = "grid"
    makes: ClassVar[type] = StructuredField
    axes: tuple[np.ndarray, ...]
    period: tuple[float | None, ...]

    @property
    def dim(self) -> int:
        """2 or 3."""
        return len(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes along each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def points(self) -> int:
        """How many nodes there are."""
        return int(np.prod(self.shape))

    @property
    def cells(self) -> int:
        """How many boxes there are between the nodes."""
        return int(np.prod([n - 1 for n in self.shape]))

    @property
    def bounds(self) -> np.ndarray:
        """`[2, dim]`, the corners."""
        return np.array([[a[0] for a in self.axes], [a[-1] for a in self.axes]], np.float64)

    @property
    def coordinates(self) -> np.ndarray:
        """`[P, dim]`, the place of each node."""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(-1, self.dim)

    @property
    def nbytes(self) -> int:
        """Bytes that the grid itself takes on the device."""
        return sum(self.shape) * float_dtype().itemsize + self.points

    def field(self, data: Any, times: Any, **options: Any) -> StructuredField:
        """A field of values `[T, *nodes, C]`."""
        options.setdefault("period", self.period)
        return StructuredField(data, self.axes, times, **options)


@dataclasses.dataclass(frozen=True, eq=False)
class _Placed:
    """Points wherever they are."""

    positions: np.ndarray

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.positions.shape[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of points."""
        return (len(self.positions),)

    @property
    def points(self) -> int:
        """How many points there are."""
        return len(self.positions)

    @property
    def bounds(self) -> np.ndarray:
        """`[2, dim]`, the corners of the box around the points."""
        return np.stack([self.positions.min(axis=0), self.positions.max(axis=0)])

    @property
    def coordinates(self) -> np.ndarray:
        """`[P, dim]`, the place of each point."""
        return self.positions


@dataclasses.dataclass(frozen=True, eq=False)
class Mesh(_Placed):
    """A mesh of triangles or tetrahedra.

    **Attributes:**

    - `positions`: `[P, dim]`.
    - `simplices`: `[M, dim + 1]`.
    """

    kind: ClassVar[str] = "mesh"
    makes: ClassVar[type] = TetField
    simplices: np.ndarray

    @property
    def cells(self) -> int:
        """How many simplices there are."""
        return len(self.simplices)

    @property
    def nbytes(self) -> int:
        """Bytes that the mesh and its search take on the device, about."""
        numbers = self.dim * (self.dim + 1) * float_dtype().itemsize
        # Corners and neighbours; the hash of bins has about this many bytes a cell.
        bins = 64 if self.dim == 3 else 32
        return self.cells * (numbers + 8 * (self.dim + 1) + bins)

    def field(self, data: Any, times: Any, **options: Any) -> TetField:
        """A field of values `[T, P, C]`."""
        return TetField(data, self.positions, self.simplices, times, **options)


@dataclasses.dataclass(frozen=True, eq=False)
class Cloud(_Placed):
    """Points without cells.

    **Attributes:**

    - `positions`: `[P, dim]`.
    """

    kind: ClassVar[str] = "points"
    makes: ClassVar[type] = TimeSeriesField

    @property
    def cells(self) -> int:
        """None."""
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes that the points and their search take on the device, about."""
        return self.points * (self.dim * float_dtype().itemsize + 64)

    def field(self, data: Any, times: Any, **options: Any) -> TimeSeriesField:
        """A field of values `[T, P, C]`."""
        return TimeSeriesField(data, self.positions, times, **options)


Geometry: TypeAlias = Grid | Mesh | Cloud
