"""Fields on meshes of tetrahedra or triangles."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError
from jaxtrace.fields import _simplices as simplices
from jaxtrace.fields._bins import bins_of_boxes
from jaxtrace.fields._field import (
    Hint,
    Sample,
    Time,
    apart,
    apply_outside,
    check_outside,
    finite,
)
from jaxtrace.fields._frame import Frame
from jaxtrace.fields._nodes import NodeField
from jaxtrace.fields._stream import Stream, tables_of
from jaxtrace.fields._structured import _times
from jaxtrace.fields._time import Slices
from jaxtrace.fields._walk import Mesh, locate, place, search
from worldloom import compiled

# Cells for each bin of the hash. Fewer make lists shorter, and a cell is then in more of them.
BIN_CELLS = 8


class TetField(NodeField):
    """A field on the points of a mesh of tetrahedra (3-D) or triangles (2-D), linear in each cell.

    Places are found by walking from cell to cell, and exactly, in any mesh: neighbours need not
    share their points (hanging nodes, duplicated points), and the domain may have holes.

    **Arguments:**

    - `data`: `[T, P, C]`, values at points; or a [`jaxtrace.fields.Stream`][] of them.
    - `points`: `[P, 2]` or `[P, 3]`.
    - `cells`: `[M, 3]` triangles or `[M, 4]` tetrahedra: indices of points, in any orientation.
        Cells without volume are left out, with a warning.
    - `times`: `[T]`, increasing. One slice needs none: it is a steady flow.
    - `time_method`: `"linear"` or `"cubic"` between slices.
    - `outside`: as in [`jaxtrace.StructuredField`][]. With `"clamp"` a place outside has the value
        of the nearest face of the cell through which it was left.

    ```python
    import numpy as np
    import jaxtrace as jt

    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    cells = np.array([[0, 1, 2], [0, 2, 3]])
    field = jt.TetField(points[None], points, cells)  # the velocity is the position
    assert np.allclose(field.sample([[0.3, 0.6]], t=0.0), [[0.3, 0.6]])
    ```
    """

    mesh: Mesh
    _points: Float[Array, "points dim"]
    low: Float[Array, " dim"]
    high: Float[Array, " dim"]
    outside: str = eqx.field(static=True)

    def __init__(
        self,
        data: Any,
        points: Any,
        cells: Any,
        times: Any = None,
        *,
        time_method: str = "linear",
        outside: str = "status",
        frame: Frame | None = None,
    ):
        check_outside(outside)
        points, cells = simplices.check_cells(points, cells)
        if isinstance(data, Stream):
            times = _times(times, None)
            shape = (len(points), *np.shape(data.read(0))[1:])
        else:
            data = np.asarray(data)
            times = _times(times, len(data))
            shape = data.shape[1:]
            finite(data, "data")
        if len(shape) != 2 or shape[0] != len(points):
            raise FieldError(
                f"slices of data are {list(shape)}; expected [P, C] with {len(points)} points"
            )

        def prepare(one: np.ndarray, i: int) -> np.ndarray:
            if one.shape != shape:
                raise FieldError(f"it has shape {list(one.shape)}; expected {list(shape)}")
            finite(one, "it")
            return one

        self.slices = Slices(times, time_method)
        self.tables = tables_of(data, times, time_method, prepare)
        self.mesh = build_mesh(points, cells)
        self._points = as_float(points)
        used = points[np.unique(cells)]
        self.low, self.high = as_float(used.min(axis=0)), as_float(used.max(axis=0))
        self.outside = outside
        self.frame = frame or Frame()

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """2 or 3."""
        return self.mesh.dim

    @property
    def data(self) -> Float[Array, "slices points components"]:
        """The values at points."""
        return self.tables.whole

    @property
    def positions(self) -> Float[Array, "points dim"]:
        """The points of the mesh."""
        return self._points

    @property
    def bounds(self) -> np.ndarray:
        """`[2, dim]`, the corners of the box around the mesh."""
        return np.stack([self.low, self.high])

    def first_hint(self, n: int, *, values: bool = True) -> Int[Array, " n"]:
        """No cell is known."""
        return jnp.full(n, -1, jnp.int32)

    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """See `Field.evaluate`."""
        n = x.shape[1]
        wanted = jnp.ones(n, bool) if active is None else active
        found = locate(self.mesh, lax.stop_gradient(x), hint, wanted)
        b = place(self.mesh, x, found.cell, lax.stop_gradient(found.barycentric))
        if self.outside == "clamp":
            edge = [jnp.maximum(part, 0.0) for part in b]
            whole = sum(edge[1:], edge[0])
            b = [jnp.where(found.inside, own, e / whole) for own, e in zip(b, edge, strict=True)]
        corners = self.mesh.corners(found.cell)

        def interpolate(read):
            terms = [read(corner) * b[j] for j, corner in enumerate(corners)]
            return sum(terms[1:], terms[0])

        value = apart(active, lambda: self.tables.blend(self.slices, t, interpolate), x[0])
        value, status = apply_outside(value, found.inside, self.outside)
        return Sample(value, status, found.cell)


def build_mesh(points: np.ndarray, cells: np.ndarray) -> Mesh:
    """The tables that walking needs, soft neighbours included."""
    dim = points.shape[1]
    cells = simplices.sort_cells(points, cells)
    rows = simplices.geometry(points, cells)
    neighbour = simplices.neighbours(cells)
    corners = points[cells]
    bins = bins_of_boxes(corners.min(axis=1), corners.max(axis=1), len(cells) / BIN_CELLS)
    mesh = Mesh(
        geometry=as_float(rows.reshape(-1)),
        neighbour=jnp.asarray(neighbour.reshape(-1)),
        corner=jnp.asarray(cells.reshape(-1)),
        bins=bins,
        dim=dim,
    )
    open_faces = np.argwhere(neighbour < 0)
    beyond = simplices.pushed_out(points, cells, rows[:, : dim * dim], open_faces)
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    in_box = ((beyond >= low) & (beyond <= high)).all(axis=1)
    open_faces, beyond = open_faces[in_box], beyond[in_box]
    if len(open_faces):
        soft = neighbour.copy()
        soft[open_faces[:, 0], open_faces[:, 1]] = _cells_at(mesh, beyond)
        mesh = eqx.tree_at(lambda m: m.neighbour, mesh, jnp.asarray(soft.reshape(-1)))
    return mesh


def _cells_at(mesh: Mesh, places: np.ndarray) -> np.ndarray:
    """The cell that contains each place; -1 where there is none."""
    found = np.empty(len(places), np.int32)
    size = 1 << max(6, min(14, (len(places) - 1).bit_length()))
    for at in range(0, len(places), size):
        part = places[at : at + size]
        padded = np.concatenate([part, np.repeat(part[-1:], size - len(part), axis=0)])
        found[at : at + size] = np.asarray(_search_cells(mesh, as_float(padded.T)))[: len(part)]
    return found


@compiled
def _search_cells(mesh: Mesh, x: Float[Array, "dim n"]) -> Int[jax.Array, " n"]:
    found = search(mesh, x)
    return jnp.where(found.inside, found.cell, -1)
