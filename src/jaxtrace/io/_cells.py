"""Cells of every kind as simplices, so that cells which share a face split it in the same way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxtrace.io._errors import DataError
from jaxtrace.io._vtk import cell_name

# VTK's numbers of the cells that are known: their kind, and where its corners are among their
# points. Cells of higher order count by their corners.
_HEX, _QUAD = (0, 1, 2, 3, 4, 5, 6, 7), (0, 1, 2, 3)
KINDS: dict[int, tuple[str, tuple[int, ...]]] = {
    5: ("triangle", (0, 1, 2)),
    8: ("quad", (0, 1, 3, 2)),
    9: ("quad", _QUAD),
    10: ("tetra", (0, 1, 2, 3)),
    11: ("hexahedron", (0, 1, 3, 2, 4, 5, 7, 6)),
    12: ("hexahedron", _HEX),
    13: ("wedge", (0, 1, 2, 3, 4, 5)),
    14: ("pyramid", (0, 1, 2, 3, 4)),
    22: ("triangle", (0, 1, 2)),
    23: ("quad", _QUAD),
    24: ("tetra", (0, 1, 2, 3)),
    25: ("hexahedron", _HEX),
    26: ("wedge", (0, 1, 2, 3, 4, 5)),
    27: ("pyramid", (0, 1, 2, 3, 4)),
    28: ("quad", _QUAD),
    29: ("hexahedron", _HEX),
    30: ("quad", _QUAD),
    31: ("wedge", (0, 1, 2, 3, 4, 5)),
    32: ("wedge", (0, 1, 2, 3, 4, 5)),
    33: ("hexahedron", _HEX),
    34: ("triangle", (0, 1, 2)),
    37: ("pyramid", (0, 1, 2, 3, 4)),
}
QUADRATIC = frozenset(range(22, 38))
POINTS_AND_LINES = frozenset((0, 1, 2, 3, 4, 21, 35))
DIMENSION = {"triangle": 2, "quad": 2, "tetra": 3, "hexahedron": 3, "wedge": 3, "pyramid": 3}

_FACES: dict[str, tuple[tuple[int, ...], ...]] = {
    "hexahedron": (
        (0, 1, 2, 3),
        (4, 5, 6, 7),
        (0, 1, 5, 4),
        (1, 2, 6, 5),
        (2, 3, 7, 6),
        (3, 0, 4, 7),
    ),
    "wedge": ((0, 1, 2), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    "pyramid": ((0, 1, 2, 3), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
}


def corners(
    types: np.ndarray, offsets: np.ndarray, connectivity: np.ndarray, where: str
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """`(kind, which cells, their corners)` for each kind of cell of the highest dimension."""
    found = []
    for number in np.unique(types):
        if int(number) in POINTS_AND_LINES:
            continue
        if int(number) not in KINDS:
            raise DataError(
                f"{where}: cells of VTK's type {int(number)} ({cell_name(int(number))}) cannot be "
                "split into simplices; triangulate the mesh before it is written"
            )
        kind, order = KINDS[int(number)]
        which = np.flatnonzero(types == number)
        fewest = int(np.diff(offsets)[which].min())
        if fewest <= max(order):
            raise DataError(f"{where}: a cell that is a {kind} has only {fewest} points")
        found.append((kind, which, connectivity[offsets[which][:, None] + np.array(order)]))
    highest = max((DIMENSION[kind] for kind, _, _ in found), default=0)
    return [part for part in found if DIMENSION[part[0]] == highest]


def split(kind: str, cells: np.ndarray) -> np.ndarray:
    """The simplices of cells, `[M, 3]` or `[M, 4]`.

    A cell becomes cones from its corner with the smallest index over the faces that do not have it;
    a face with four corners is split by the diagonal from its smallest index. The diagonal of a
    face depends on the face alone, so both cells beside it agree.
    """
    if kind in ("triangle", "tetra"):
        return cells
    if kind == "quad":
        return _distinct(_halves(cells))
    parts = []
    apex = cells.argmin(axis=1)
    for corner in range(cells.shape[1]):
        some = cells[apex == corner]
        if len(some) == 0:
            continue
        for face in _FACES[kind]:
            if corner in face:
                continue
            sides = some[:, face]
            triangles = sides if len(face) == 3 else _halves(sides)
            top = np.tile(some[:, corner], len(triangles) // len(some))
            parts.append(np.column_stack([top, triangles]))
    return _distinct(np.concatenate(parts))


def _halves(quads: np.ndarray) -> np.ndarray:
    """Two triangles for each quad, with the diagonal from its smallest index."""
    even = quads.argmin(axis=1) % 2 == 0
    turned = np.where(even[:, None], quads, np.roll(quads, -1, axis=1))
    return np.concatenate([turned[:, [0, 1, 2]], turned[:, [0, 2, 3]]])


def _distinct(simplices: np.ndarray) -> np.ndarray:
    """Without simplices that have a corner twice: they come from collapsed cells."""
    ordered = np.sort(simplices, axis=1)
    return simplices[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]


def lattice(shape: Sequence[int]) -> tuple[str, np.ndarray]:
    """The cells of a curvilinear grid: hexahedra, or quads where one axis has one node."""
    long = [i for i, n in enumerate(shape) if n > 1]
    index = np.arange(int(np.prod(shape))).reshape(tuple(shape)[::-1]).transpose(2, 1, 0)
    index = index.reshape([shape[i] for i in long])
    low, high = slice(None, -1), slice(1, None)
    square = [(low, low), (high, low), (high, high), (low, high)]
    if len(long) == 2:
        picks: list[tuple[slice, ...]] = list(square)
    else:
        picks = [(*at, end) for end in (low, high) for at in square]
    cells = np.stack([index[pick].ravel(order="F") for pick in picks], axis=1)
    return ("quad" if len(long) == 2 else "hexahedron"), cells
