"""A mesh of triangles or tetrahedra, on the host: its geometry and who touches whom."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from jaxtrace._errors import FieldError, TraceWarning
from jaxtrace.fields._field import finite


def check_cells(points: Any, cells: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points as float64 and cells as int32, or an error that says what is wrong with them.

    Cells without volume are left out, with a warning. Cells that are inside out are as good as
    others.
    """
    points = np.asarray(points, np.float64)
    cells = np.asarray(cells)
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise FieldError(f"points has shape {list(points.shape)}; expected [P, 2] or [P, 3]")
    dim = points.shape[1]
    if cells.ndim != 2 or cells.shape[1] != dim + 1:
        name = "tetrahedra [M, 4]" if dim == 3 else "triangles [M, 3]"
        raise FieldError(f"cells has shape {list(cells.shape)}; {dim}-D points need {name}")
    if not np.issubdtype(cells.dtype, np.integer):
        raise FieldError(f"cells has type {cells.dtype}; expected indices of points")
    if len(cells) == 0:
        raise FieldError("cells is empty: a mesh needs at least one cell")
    finite(points, "points")
    bad = (cells < 0) | (cells >= len(points))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise FieldError(f"cells[{i}, {j}] = {cells[i, j]}, but there are {len(points)} points")
    edges = points[cells[:, 1:]] - points[cells[:, :1]]
    volume = np.abs(np.linalg.det(edges))
    flat = volume <= 1e-10 * np.linalg.norm(edges, axis=2).max(axis=1) ** dim
    if flat.all():
        raise FieldError("no cell of the mesh has a volume")
    if flat.any():
        warnings.warn(
            f"{int(flat.sum())} of {len(cells)} cells have no volume and are left out; the first "
            f"is cell {int(np.argmax(flat))}",
            TraceWarning,
            stacklevel=4,
        )
        cells = cells[~flat]
    return points, cells.astype(np.int32)


def sort_cells(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Cells in an order in which neighbours in space are close in memory."""
    centre = points[cells].mean(axis=1)
    low, high = centre.min(axis=0), centre.max(axis=0)
    dim = points.shape[1]
    side = (len(cells) / 16) ** (1 / dim)
    scale = np.maximum(high - low, 1e-30)
    at = np.floor((centre - low) / scale * side).astype(np.int64)
    key = np.zeros(len(cells), np.int64)
    for bit in range(20):
        for axis in range(dim):
            key |= ((at[:, axis] >> bit) & 1) << (bit * dim + axis)
    return cells[np.argsort(key, kind="stable")]


def geometry(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """`[M, dim*dim + dim]`: rows that give barycentric coordinates 1..dim, and the first corner."""
    corner = points[cells[:, 0]]
    edges = (points[cells[:, 1:]] - corner[:, None]).transpose(0, 2, 1)
    inverse = np.linalg.inv(edges)
    return np.concatenate([inverse.reshape(len(cells), -1), corner], axis=1)


def neighbours(cells: np.ndarray) -> np.ndarray:
    """`[M, dim+1]`: the cell that shares all corners but the j-th; -1 where there is none."""
    count, corners = cells.shape
    faces = np.stack([np.delete(cells, j, axis=1) for j in range(corners)], axis=1)
    faces = np.sort(faces.reshape(-1, corners - 1), axis=1)
    order = np.lexsort(faces.T)
    same = (faces[order[1:]] == faces[order[:-1]]).all(axis=1)
    left, right = order[:-1][same], order[1:][same]
    found = np.full(count * corners, -1, np.int32)
    found[left] = right // corners
    found[right] = left // corners
    return found.reshape(count, corners)


def pushed_out(
    points: np.ndarray, cells: np.ndarray, inverse: np.ndarray, open_faces: np.ndarray
) -> np.ndarray:
    """A point just outside the centre of each face in `open_faces`, rows (cell, corner).

    Just outside: a thousandth of the height of the cell over that face.
    """
    dim = points.shape[1]
    cell, corner = open_faces.T
    gradients = inverse[cell].reshape(-1, dim, dim)
    first = -gradients.sum(axis=1)
    gradient = np.where((corner == 0)[:, None], first, gradients[np.arange(len(cell)), corner - 1])
    corners = points[cells[cell]]
    own = corners[np.arange(len(cell)), corner]
    centre = (corners.sum(axis=1) - own) / dim
    square = (gradient**2).sum(axis=1, keepdims=True)
    return centre - 1e-3 * gradient / square
