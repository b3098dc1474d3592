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
    edges = _edges(points, cells)
    volume = np.abs(_determinant(edges))
    squares = np.stack([np.sum(np.square(edge), axis=0) for edge in edges])
    flat = volume <= 1e-10 * np.sqrt(squares.max(axis=0)) ** dim
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
    for bit in range(min(int(side).bit_length(), 31 // dim)):
        for axis in range(dim):
            key |= ((at[:, axis] >> bit) & 1) << (bit * dim + axis)
    return cells[order_of(key)]


def order_of(keys: np.ndarray) -> np.ndarray:
    """The order in which keys from 0 to 2**31 increase, equal ones as they stand.

    Key and place in one integer: sorting numbers is several times faster than sorting places.
    """
    places = np.arange(len(keys), dtype=np.int64)
    return np.sort(keys << 32 | places) & 0xFFFFFFFF


def geometry(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """`[M, dim*dim + dim]`: rows that give barycentric coordinates 1..dim, and the first corner."""
    edges = _edges(points, cells)
    if len(edges) == 3:
        a, b, c = edges
        rows = [*_cross(b, c), *_cross(c, a), *_cross(a, b)]
    else:
        (ax, ay), (bx, by) = edges
        rows = [by, -bx, -ay, ax]
    volume = _determinant(edges)
    corner = points[cells[:, 0]]
    return np.concatenate([np.stack([row / volume for row in rows], axis=1), corner], axis=1)


def _edges(points: np.ndarray, cells: np.ndarray) -> list[list[np.ndarray]]:
    """From the first corner of each cell to the others: a list of coordinates each."""
    columns = np.ascontiguousarray(points.T)
    first = [x[cells[:, 0]] for x in columns]
    return [
        [x[cells[:, j]] - start for x, start in zip(columns, first, strict=True)]
        for j in range(1, cells.shape[1])
    ]


def _cross(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    return [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]


def _determinant(edges: list[list[np.ndarray]]) -> np.ndarray:
    """Twice or six times the volume of cells with these edges."""
    if len(edges) == 3:
        normal = _cross(edges[0], edges[1])
        x, y, z = edges[2]
        return normal[0] * x + normal[1] * y + normal[2] * z
    (ax, ay), (bx, by) = edges
    return ax * by - ay * bx


def neighbours(cells: np.ndarray) -> np.ndarray:
    """`[M, dim+1]`: the cell that shares all corners but the j-th; -1 where there is none."""
    count, corners = cells.shape
    place = np.argsort(cells, axis=1)  # which corner of the cell each of them is, in order
    ordered = np.take_along_axis(cells, place, axis=1)
    faces = np.stack([np.delete(ordered, j, axis=1) for j in range(corners)], axis=1)
    key = _key(faces.reshape(-1, corners - 1))
    order = np.argsort(key)
    same = key[order[1:]] == key[order[:-1]]
    left, right = order[:-1][same], order[1:][same]
    found = np.full(count * corners, -1, np.int32)
    found[left] = right // corners
    found[right] = left // corners
    result = np.empty((count, corners), np.int32)
    np.put_along_axis(result, place, found.reshape(count, corners), axis=1)
    return result


def _key(rows: np.ndarray) -> np.ndarray:
    """One integer for each row of indices, equal for equal rows."""
    size = int(rows.max()) + 1
    key = rows[:, 0].astype(np.int64)
    longest = size
    for column in rows.T[1:]:
        if longest > 2**62 // size:  # too long: number what there is so far
            key = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
            longest = len(rows)
        key = key * size + column
        longest *= size
    return key


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
