"""What one file holds at one time, as NumPy arrays, and how pieces are joined."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jaxtrace.io._errors import DataError

DUPLICATE_CELL, HIDDEN_CELL, HIDDEN_POINT = 1, 32, 2
GHOSTS = "vtkGhostType"


@dataclasses.dataclass(frozen=True)
class ArrayInfo:
    """An array in a file.

    **Attributes:**

    - `name`: its name.
    - `place`: `"points"` or `"cells"`.
    - `components`: numbers at each point or cell.
    - `dtype`: the type in the file.
    - `shape`: its shape in the file, times left out.
    - `units`: its units; empty where the file says nothing.
    """

    name: str
    place: str
    components: int
    dtype: str
    shape: tuple[int, ...] = ()
    units: str = ""

    def __str__(self) -> str:
        many = "scalar" if self.components == 1 else f"{self.components}-vector"
        units = f", {self.units}" if self.units else ""
        return f"{self.name} ({many} on {self.place}, {self.dtype}{units})"


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """A VTK data set. Points and cells of grids are in VTK's order: x runs fastest.

    `extent` is that of a grid, first and last index of each axis. A rectilinear grid has `axes`, a
    curvilinear one `points`, everything else `points` and cells. `piece` is the number of the file
    that each point is from.
    """

    extent: tuple[int, ...] | None = None
    axes: tuple[np.ndarray, ...] | None = None
    points: np.ndarray | None = None
    types: np.ndarray | None = None
    offsets: np.ndarray | None = None
    connectivity: np.ndarray | None = None
    piece: np.ndarray | None = None
    point_data: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    cell_data: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    time: float | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes along x, y and z of a grid."""
        assert self.extent is not None
        return tuple(b - a + 1 for a, b in zip(self.extent[::2], self.extent[1::2], strict=True))

    @property
    def count(self) -> int:
        """How many points there are."""
        if self.points is not None:
            return len(self.points)
        return int(np.prod(self.shape))

    @property
    def cell_count(self) -> int:
        """How many cells there are."""
        if self.types is not None:
            return len(self.types)
        return int(np.prod([max(n - 1, 1) for n in self.shape]))

    def flaw(self) -> str:
        """What contradicts itself, in words; empty for a sound block."""
        sizes = {"points": self.count, "cells": self.cell_count}
        for place, arrays in (("points", self.point_data), ("cells", self.cell_data)):
            for name, values in arrays.items():
                if len(values) != sizes[place]:
                    return f"{name!r} has {len(values)} values for {sizes[place]} {place}"
        if self.extent is not None:
            if min(self.shape) < 0:
                return f"its extent is {self.extent}"
            if self.axes is not None and self.shape != tuple(map(len, self.axes)):
                return f"{self.shape} nodes, but axes of {tuple(map(len, self.axes))}"
            if self.points is not None and len(self.points) != np.prod(self.shape):
                return f"{self.shape} nodes, but {len(self.points)} points"
        if self.types is None or self.offsets is None or self.connectivity is None:
            return ""
        steps, ends = np.diff(self.offsets), self.offsets[[0, -1]]
        if len(steps) != len(self.types) or (steps < 0).any():
            return f"the corners of {len(self.types)} cells are not one after the other"
        if ends.min() < 0 or ends.max() > len(self.connectivity):
            return f"cells have corners up to {ends.max()}, there are {len(self.connectivity)}"
        if len(self.connectivity) and not 0 <= self.connectivity.min() <= (
            last := self.connectivity.max()
        ) < max(self.count, 1):
            return f"a corner of a cell is point {last}, there are {self.count} points"
        return ""

    def fingerprint(self) -> int:
        """Changes when a point or a cell does."""
        parts = (self.points, self.types, self.offsets, self.connectivity, *(self.axes or ()))
        found = zlib.crc32(repr(self.extent).encode())
        for part in parts:
            if part is not None:
                kind = np.float64 if part.dtype.kind == "f" else np.int64
                found = zlib.crc32(np.ascontiguousarray(part, kind).data, found)
        return found

    def infos(self) -> tuple[ArrayInfo, ...]:
        """What arrays there are."""
        places = (("points", self.point_data), ("cells", self.cell_data))
        return tuple(
            ArrayInfo(name, place, values.shape[1], str(values.dtype), values.shape)
            for place, arrays in places
            for name, values in arrays.items()
            if name != GHOSTS
        )


def join(blocks: Sequence[Block], names: Sequence[str]) -> Block:
    """One block of several pieces, whose files are called `names`."""
    if len(blocks) == 1:
        return blocks[0]
    full = [(b, n) for b, n in zip(blocks, names, strict=True) if b.count > 0]
    if not full:
        return blocks[0]
    _same_arrays(full)
    blocks = [block for block, _ in full]
    if any((b.extent is None) != (blocks[0].extent is None) for b in blocks):
        raise DataError(f"{names[0]}: pieces are grids and meshes, expected one kind")
    return _join_meshes(blocks) if blocks[0].extent is None else _join_grids(blocks, names)


def _same_arrays(full: Iterable[tuple[Block, str]]) -> None:
    (first, first_name), *others = full
    known = {(a.place, a.name): a.components for a in first.infos()}
    for block, name in others:
        here = {(a.place, a.name): a.components for a in block.infos()}
        for place, array in sorted(known.keys() ^ here.keys()):
            has, lacks = (first_name, name) if (place, array) in known else (name, first_name)
            raise DataError(
                f"pieces differ: {has} has the array {array!r} on {place}, {lacks} has not. Write "
                "all pieces with the same arrays, or name another velocity"
            )
        for key, components in known.items():
            if here[key] != components:
                raise DataError(
                    f"pieces differ: {key[1]!r} has {components} components in {first_name}, "
                    f"{here[key]} in {name}"
                )


def _join_meshes(blocks: Sequence[Block]) -> Block:
    counts = [block.count for block in blocks]
    starts = np.concatenate([[0], np.cumsum(counts)])
    ends, offsets = 0, [np.zeros(1, np.int64)]
    for block in blocks:
        assert block.offsets is not None
        offsets.append(block.offsets[1:] + ends)
        ends += int(block.offsets[-1])
    cells = [
        b.connectivity + start
        for b, start in zip(blocks, starts, strict=False)
        if b.connectivity is not None
    ]
    return Block(
        points=np.concatenate([b.points for b in blocks if b.points is not None]),
        types=np.concatenate([b.types for b in blocks if b.types is not None]),
        offsets=np.concatenate(offsets),
        connectivity=np.concatenate(cells),
        piece=np.repeat(np.arange(len(blocks)), counts),
        point_data=_stack([b.point_data for b in blocks], counts),
        cell_data=_stack([b.cell_data for b in blocks], [b.cell_count for b in blocks]),
        time=blocks[0].time,
    )


def _stack(
    parts: Sequence[Mapping[str, np.ndarray]], counts: Sequence[int]
) -> dict[str, np.ndarray]:
    """Arrays one after the other. A piece may lack the marks of ghosts: it has none."""
    whole = {n: np.concatenate([p[n] for p in parts]) for n in parts[0] if n != GHOSTS}
    if any(GHOSTS in part for part in parts):
        pairs = zip(parts, counts, strict=True)
        whole[GHOSTS] = np.concatenate(
            [part.get(GHOSTS, np.zeros((count, 1), np.uint8)) for part, count in pairs]
        )
    return whole


def _join_grids(blocks: Sequence[Block], names: Sequence[str]) -> Block:
    extents = np.array([b.extent for b in blocks])
    low, high = extents[:, ::2].min(axis=0), extents[:, 1::2].max(axis=0)
    shape = tuple(int(n) for n in high - low + 1)
    cells = tuple(max(n - 1, 1) for n in shape)
    covered = np.zeros(cells[::-1], bool)
    points: dict[str, np.ndarray] = {}
    values: dict[str, np.ndarray] = {}
    axes = [np.full(n, np.nan) for n in shape]
    for block in blocks:
        assert block.extent is not None
        first = np.array(block.extent[::2]) - low
        nodes, own = block.shape, tuple(max(n - 1, 1) for n in block.shape)
        here = _window(first, nodes)
        there = _window(first, own)
        covered[there] = True
        for i, axis in enumerate(block.axes or ()):
            axes[i][first[i] : first[i] + nodes[i]] = axis
        given = dict(block.point_data)
        if block.points is not None:
            given[""] = block.points
        for target, source, size, window, part in (
            (points, given, shape, here, nodes),
            (values, dict(block.cell_data), cells, there, own),
        ):
            for name, array in source.items():
                if name == GHOSTS:
                    # What another piece has is no ghost in the whole; what is hidden stays so.
                    array = array & (HIDDEN_POINT | HIDDEN_CELL)
                whole = target.setdefault(
                    name, np.zeros((*size[::-1], array.shape[1]), array.dtype)
                )
                whole[window] = array.reshape(*part[::-1], -1)
    if not covered.all():
        raise DataError(f"the pieces {names[0]} to {names[-1]} leave a part of their grid empty")
    curved = points.pop("", None)
    flat = lambda arrays: {n: a.reshape(-1, a.shape[-1]) for n, a in arrays.items()}  # noqa: E731
    return Block(
        extent=tuple(int(v) for pair in zip(low, high, strict=True) for v in pair),
        axes=None if curved is not None else tuple(axes),
        points=None if curved is None else curved.reshape(-1, 3),
        point_data=flat(points),
        cell_data=flat(values),
        time=blocks[0].time,
    )


def _window(first: np.ndarray, sizes: Sequence[int]) -> tuple[slice, ...]:
    """Where a piece lies in arrays whose axes are z, y, x."""
    pairs = zip(first[::-1], sizes[::-1], strict=True)
    return tuple(slice(int(a), int(a) + n) for a, n in pairs)
