"""The records of a run as columns: named arrays with one row a record."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, TypeAlias

import jax
import jax.tree_util as jtu
import numpy as np

from worldloom import _processes
from worldloom.loop._save import At, Save, is_save

Box: TypeAlias = tuple[tuple[int, int], ...]
"""A part of an array: start and stop along each axis."""


@dataclasses.dataclass(frozen=True)
class Column:
    """One recorded array, before it is filled."""

    name: str
    """Unique, and fit to be a file name."""
    dtype: np.dtype
    shape: tuple[int, ...]
    """Shape of one row, over all processes."""
    rows: int
    """Number of rows when the run is complete."""
    boxes: tuple[Box, ...]
    """The part of a row that each process holds."""

    @property
    def box(self) -> Box:
        """The part of a row that this process holds."""
        return self.boxes[_processes.index()]

    @property
    def local_shape(self) -> tuple[int, ...]:
        """Shape of this process's part of a row."""
        return tuple(stop - start for start, stop in self.box)

    @property
    def row_bytes(self) -> int:
        """Bytes of this process's part of a row."""
        return int(np.prod(self.local_shape, dtype=np.int64)) * self.dtype.itemsize


@dataclasses.dataclass(frozen=True)
class Records:
    """How the `save` pytree of a run maps to columns, and columns back to a pytree."""

    saves: tuple[Save, ...]
    columns: tuple[tuple[Column, ...], ...]
    """The columns of each save."""
    tree: Any
    values: tuple[Any, ...]
    """Structure of what each save records."""

    def all_columns(self) -> list[Column]:
        """The columns of all saves."""
        return [column for columns in self.columns for column in columns]

    def rows(self, done: int) -> list[int]:
        """How many records of each save exist after `done` steps."""
        return [save.rows(done) for save in self.saves]

    def by_name(self, done: int, *, ended: bool = False) -> dict[str, int]:
        """How many rows each column has after `done` steps, in the loop or when it has ended."""
        return {
            column.name: rows + save.after(done) if ended else rows
            for save, columns, rows in zip(self.saves, self.columns, self.rows(done), strict=True)
            for column in columns
        }

    def assemble(self, arrays: dict[str, Any]) -> Any:
        """The pytree that `save` asked for, from arrays by column name."""
        values = [
            jtu.tree_unflatten(value, [arrays[column.name] for column in columns])
            for value, columns in zip(self.values, self.columns, strict=True)
        ]
        return jtu.tree_unflatten(self.tree, values)


def flatten_saves(save: Any, length: int) -> tuple[tuple[Save, ...], list[str], Any]:
    """The saves of a pytree, a name for each, and the pytree's structure."""
    found, tree = jtu.tree_flatten_with_path(save, is_leaf=is_save)
    saves = []
    for path, leaf in found:
        if not isinstance(leaf, Save):
            raise TypeError(
                f"save{jtu.keystr(path)} is {leaf!r}; expected Every, At, Final or a pytree of them"
            )
        if isinstance(leaf, At) and leaf.steps and leaf.steps[-1] > length:
            raise ValueError(
                f"save{jtu.keystr(path)} asks for step {leaf.steps[-1]} of a run of {length} steps"
            )
        saves.append(leaf)
    return tuple(saves), [jtu.keystr(path) for path, _ in found], tree


def plan_records(
    saves: tuple[Save, ...],
    names: list[str],
    tree: Any,
    shapes: list[Any],
    shardings: list[list[Any]] | None,
    length: int,
) -> Records:
    """Lay out columns for records of these shapes.

    **Arguments:**

    - `saves`, `names`, `tree`: as `flatten_saves` gave them.
    - `shapes`: for each save, the pytree of shapes of one record.
    - `shardings`: for each save, where the leaves of one record live; `None` on one device.
    - `length`: number of steps of the run.
    """
    taken: set[str] = set()
    columns, values = [], []
    for i, (save, name, shape) in enumerate(zip(saves, names, shapes, strict=True)):
        found, value = jtu.tree_flatten_with_path(shape)
        values.append(value)
        columns.append(
            tuple(
                Column(
                    name=_file_name(name + jtu.keystr(path), taken),
                    dtype=np.dtype(leaf.dtype),
                    shape=tuple(leaf.shape),
                    rows=save.rows(length) + save.after(length),
                    boxes=_boxes(leaf.shape, shardings[i][j] if shardings else None),
                )
                for j, (path, leaf) in enumerate(found)
            )
        )
    return Records(saves, tuple(columns), tree, tuple(values))


def local_part(column: Column, array: jax.Array, count: int = 1) -> np.ndarray:
    """What this process holds of a row, or of the first `count` rows of an array of rows.

    Where every device holds all of it this is a view: copy it before the array is donated.
    """
    rows = array.ndim - len(column.shape)
    first = (*[slice(count)] * rows, ...)
    if array.is_fully_replicated:
        return np.asarray(array)[first]
    part = np.empty((*[count] * rows, *column.local_shape), column.dtype)
    for shard in array.addressable_shards:
        where = tuple(
            slice(*(bound - start for bound in s.indices(size)[:2]))
            for s, size, (start, _) in zip(
                shard.index[rows:], column.shape, column.box, strict=True
            )
        )
        part[(..., *where)] = np.asarray(shard.data)[first]
    return part


def _boxes(shape: tuple[int, ...], sharding: Any) -> tuple[Box, ...]:
    whole = tuple((0, size) for size in shape)
    if sharding is None or _processes.count() == 1:
        return (whole,) * _processes.count()
    held: dict[int, list[Box]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        box = tuple(s.indices(size)[:2] for s, size in zip(index, shape, strict=True))
        held.setdefault(device.process_index, []).append(box)
    return tuple(
        tuple(
            (min(s for s, _ in axis), max(e for _, e in axis))
            for axis in zip(*held[p], strict=True)
        )
        for p in range(_processes.count())
    )


def _file_name(path: str, taken: set[str]) -> str:
    """`['a'][0].x` as `a.0.x`; with a number behind it where that is taken."""
    base = re.sub(r"[^A-Za-z0-9_-]+", ".", path).strip(".") or "records"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name
