"""From the order of a VTK file to the order of a field: decided once, applied to every slice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxtrace.io._block import DUPLICATE_CELL, GHOSTS, HIDDEN_CELL, HIDDEN_POINT, Block
from jaxtrace.io._cells import QUADRATIC, corners, lattice, split
from jaxtrace.io._errors import DataError
from jaxtrace.io._geometry import Cloud, Geometry, Grid, Mesh

NAMES = "xyz"


class Layout:
    """How values of a file become values of a field.

    **Attributes:**

    - `geometry`: where the values are.
    - `axes`: which of x, y, z are left.
    - `notes`: what was decided, in words.
    """

    geometry: Geometry
    axes: tuple[int, ...]
    notes: list[str]
    _points: Callable[[np.ndarray], np.ndarray]
    _cells: Callable[[np.ndarray], np.ndarray]

    def __init__(self, block: Block, where: str):
        self.notes = []
        if block.count == 0:
            raise DataError(f"{where}: there are no points")
        for part in (block.points, *(block.axes or ())):
            if part is not None and not np.isfinite(part).all():
                raise DataError(f"{where}: a coordinate is not finite")
        if block.axes is not None:
            self._grid(block, where)
        else:
            self._mesh(block, where)

    def values(self, place: str, array: np.ndarray) -> np.ndarray:
        """An array `[points or cells, C]` of a file as `[*nodes, C]` or `[P, C]`."""
        return self._points(array) if place == "points" else self._cells(array)

    def _grid(self, block: Block, where: str) -> None:
        assert block.axes is not None
        shape = block.shape
        self.axes = tuple(i for i in range(3) if shape[i] > 1)
        if len(self.axes) < 2:
            raise DataError(
                f"{where}: the grid has {' x '.join(map(str, shape))} nodes; expected at least two "
                "along two axes"
            )
        self._note_flat()
        flips = []
        axes = []
        for i in self.axes:
            axis = block.axes[i]
            steps = np.diff(axis)
            if not ((steps > 0).all() or (steps < 0).all()):
                raise DataError(f"{where}: the {NAMES[i]} axis neither increases nor decreases")
            if steps[0] < 0:
                flips.append(len(axes))
                axis = axis[::-1]
            axes.append(axis)
        self.geometry = Grid(tuple(axes), (None,) * len(axes))
        ghosts = block.point_data.get(GHOSTS)
        hidden = None if ghosts is None else (ghosts[:, 0] & HIDDEN_POINT) > 0
        if GHOSTS in block.cell_data and (block.cell_data[GHOSTS] & HIDDEN_CELL).any():
            raise DataError(f"{where}: the grid has hidden cells; hide its points instead")
        if hidden is not None and hidden.any():
            self.notes.append(f"{int(hidden.sum())} hidden points are land")

        def arrange(values: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
            whole = values.reshape(*sizes[::-1], -1).transpose(2, 1, 0, 3)
            whole = whole.reshape(*[sizes[i] for i in self.axes], -1)
            return np.flip(whole, tuple(flips)) if flips else whole

        def points(values: np.ndarray) -> np.ndarray:
            if hidden is not None and hidden.any():
                values = np.where(hidden[:, None], np.nan, values)
            return arrange(values, shape)

        def cells(values: np.ndarray) -> np.ndarray:
            whole = arrange(values, tuple(max(n - 1, 1) for n in shape))
            for axis in range(len(self.axes)):
                whole = np.moveaxis(whole, axis, 0)
                inner = (whole[1:] + whole[:-1]) / 2
                whole = np.moveaxis(np.concatenate([whole[:1], inner, whole[-1:]]), 0, axis)
            return whole

        self._points, self._cells = points, cells

    def _mesh(self, block: Block, where: str) -> None:
        assert block.points is not None
        if block.extent is not None:
            if sum(n > 1 for n in block.shape) < 2:
                raise DataError(
                    f"{where}: the grid has {' x '.join(map(str, block.shape))} nodes; expected at "
                    "least two along two axes"
                )
            kind, found = lattice(block.shape)
            groups = [(kind, np.arange(len(found)), found)]
            self.notes.append("a curvilinear grid, split into simplices")
        else:
            assert block.types is not None
            assert block.offsets is not None
            assert block.connectivity is not None
            groups = corners(block.types, block.offsets, block.connectivity, where)
            used = sum(len(which) for _, which, _ in groups)
            if groups and used < len(block.types):
                self.notes.append(f"{len(block.types) - used} cells of lower dimension left out")
            if np.isin(block.types, list(QUADRATIC)).any():
                self.notes.append("cells of higher order count by their corners")
        total = sum(len(which) for _, which, _ in groups)
        groups = _without_ghosts(block, groups)
        dropped = total - sum(len(which) for _, which, _ in groups)
        if dropped:
            self.notes.append(f"{dropped} ghost or hidden cells left out")
        if total and total == dropped:
            raise DataError(f"{where}: every cell is a ghost cell")
        same = _merged(block)
        groups = [(kind, which, same[cells]) for kind, which, cells in groups]
        simplices = [split(kind, cells) for kind, _, cells in groups]
        if simplices:
            cells = np.concatenate(simplices)
            used = np.zeros(block.count, bool)
            used[cells] = True
            keep = np.flatnonzero(used)
            cells = (np.cumsum(used) - 1)[cells]
        else:
            keep, cells = np.unique(same), None
            self.notes.append("points without cells")
        twice = int((same != np.arange(len(same))).sum())
        if twice:
            self.notes.append(f"{twice} points that pieces share were merged")
        unused = block.count - twice - len(keep)
        if unused:
            self.notes.append(f"{unused} points that no cell has left out")
        positions = block.points[keep]
        self._flatten(positions, cells, where)
        positions = np.ascontiguousarray(positions[:, self.axes])
        self.geometry = Cloud(positions) if cells is None else Mesh(positions, cells)
        self._points = lambda values: values[keep]
        self._cells = _averager(groups, keep, block.count)

    def _flatten(self, positions: np.ndarray, cells: np.ndarray | None, where: str) -> None:
        """Find out which axes are left."""
        size = np.ptp(positions, axis=0)
        flat = [i for i in range(3) if size[i] <= 1e-6 * size.max()]
        if cells is not None and cells.shape[1] == 4:
            self.axes = (0, 1, 2)
            return
        if cells is not None and len(flat) != 1:
            raise DataError(
                f"{where}: triangles and quads that do not lie in a plane of x, y or z: a curved "
                "or tilted surface is no domain of a flow"
            )
        if len(flat) > 1:
            raise DataError(f"{where}: the points lie on a line")
        self.axes = tuple(i for i in range(3) if i not in flat)
        self._note_flat()

    def _note_flat(self) -> None:
        if len(self.axes) == 2:
            flat = NAMES[next(i for i in range(3) if i not in self.axes)]
            self.notes.append(
                f"{flat} is the same everywhere: 2-D, without the component along {flat}"
            )


Groups = list[tuple[str, np.ndarray, np.ndarray]]


def _without_ghosts(block: Block, groups: Groups) -> Groups:
    marks, hidden = block.cell_data.get(GHOSTS), block.point_data.get(GHOSTS)
    kept = []
    for kind, which, cells in groups:
        real = np.ones(len(which), bool)
        if marks is not None:
            real &= (marks[which, 0] & (DUPLICATE_CELL | HIDDEN_CELL)) == 0
        if hidden is not None:
            real &= ((hidden[cells, 0] & HIDDEN_POINT) == 0).all(axis=1)
        kept.append((kind, which[real], cells[real]))
    return kept


def _merged(block: Block) -> np.ndarray:
    """For each point the first one that is the same: another piece's, at the same place exactly.

    Points of one piece that coincide stay apart: they are the two sides of a wall.
    """
    count = block.count
    own = np.arange(count)
    if block.piece is None or block.points is None:
        return own
    points = block.points + 0.0  # -0.0 becomes 0.0
    order = np.lexsort((own, *points.T))
    ordered, piece = points[order], block.piece[order]
    new = np.ones(count, bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.cumsum(new) - 1
    again = np.zeros(count, bool)
    again[1:] = ~new[1:] & (piece[1:] == piece[:-1])
    walls = np.zeros(group[-1] + 1, bool)
    walls[group[again]] = True
    first = order[np.flatnonzero(new)][group]
    same = own.copy()
    same[order] = np.where(walls[group], order, first)
    return same


def _averager(groups: Groups, keep: np.ndarray, points: int) -> Callable[[np.ndarray], np.ndarray]:
    """A function that gives each point the mean of the cells around it."""

    def average(values: np.ndarray) -> np.ndarray:
        shown = np.zeros((len(keep), values.shape[1]), np.float64)
        count = np.zeros(len(keep))
        place = np.full(points, -1)
        place[keep] = np.arange(len(keep))
        for _, which, cells in groups:
            for column in range(cells.shape[1]):
                at = place[cells[:, column]]
                count += np.bincount(at, minlength=len(keep))
                for c in range(values.shape[1]):
                    shown[:, c] += np.bincount(at, values[which, c], minlength=len(keep))
        return shown / count[:, None]

    return average
