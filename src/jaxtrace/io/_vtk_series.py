"""Series of VTK files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace.fields._frame import Frame
from jaxtrace.io import _series, _times, _velocity
from jaxtrace.io._block import Block, join
from jaxtrace.io._errors import DataError
from jaxtrace.io._geometry import Cloud
from jaxtrace.io._layout import Layout
from jaxtrace.io._source import Slice
from jaxtrace.io._vtk import READERS, Header, header, read


class VtkSeries:
    """See `Source`. What is opened: every header, and points and cells of the first file."""

    def __init__(
        self,
        files: Sequence[Path],
        velocity: str | Sequence[str] | None,
        scalars: Sequence[str],
        times: Any,
    ):
        self.format, listed = _series.entries(files, tuple(READERS))
        first = _header(listed[0], 0)
        for piece in listed[0].files[1:]:
            if first.arrays != ():
                break
            # Pieces without points may lack arrays.
            first = dataclasses.replace(first, arrays=header(piece).arrays)
        self._moments: list[tuple[_series.Entry, int]] = []
        found: list[float | None] = []
        for i, entry in enumerate(listed):
            inside: tuple[float, ...] = ()
            if entry.time is None and (times is None or _can_hold_many(entry)):
                inside = first.times if i == 0 else _header(entry, i).times
            for step in range(max(len(inside), 1)):
                self._moments.append((entry, step))
                found.append(inside[step] if inside else entry.time)
        self.files = tuple(str(path) for entry in listed for path in entry.files)
        self.names = tuple(entry.name for entry, _ in self._moments)
        self.times = _times.settle(times, found, self.names)
        self.epoch = ""
        self.frame = Frame()
        block = self._block(0, None if first.arrays is None else ())
        sizes = {"points": block.count, "cells": block.cell_count}
        self.arrays = tuple(
            dataclasses.replace(array, shape=(sizes[array.place], array.components))
            for array in (block.infos() if first.arrays is None else first.arrays)
        )
        where = self.names[0]
        layout = Layout(block, where)
        self.geometry, self._layout = layout.geometry, layout
        self._fingerprint, self._count = block.fingerprint(), block.count
        self._vector = _velocity.choose(self.arrays, velocity, self.geometry.dim, where)
        self._scalars = tuple(_velocity.by_name(self.arrays, name, where) for name in scalars)
        for array in self._scalars:
            if array.components != 1:
                raise DataError(
                    f"{where}: scalars: {array.name!r} has {array.components} components, not 1"
                )
        self.velocity = tuple(array.name for array in self._vector)
        self.scalars = tuple(scalars)
        notes = list(layout.notes)
        on_cells = [a.name for a in (*self._vector, *self._scalars) if a.place == "cells"]
        if on_cells and isinstance(self.geometry, Cloud):
            raise DataError(f"{where}: {on_cells} are on cells, but there are only points")
        if on_cells:
            notes.append(f"{', '.join(on_cells)}: each point has the mean of the cells around it")
        self.notes = tuple(notes)

    def read(self, i: int) -> Slice:
        """See `Source`."""
        wanted = (*self._vector, *self._scalars)
        block = self._block(i, tuple(array.name for array in wanted))
        name = f"{self.names[i]} (slice {i})"
        if block.count != self._count:
            raise DataError(
                f"{name} has {block.count} points, slice 0 ({self.names[0]}) has {self._count}; "
                "expected the same mesh at all times"
            )
        if block.fingerprint() != self._fingerprint:
            raise DataError(
                f"{name}: points or cells differ from those of slice 0 ({self.names[0]}); expected "
                "the same mesh at all times"
            )
        values = {}
        for array in wanted:
            data = block.point_data if array.place == "points" else block.cell_data
            if array.name not in data:
                raise DataError(
                    f"{name} has no array {array.name!r} on {array.place}; there are: "
                    f"{_velocity.listing(block.infos())}"
                )
            values[array.name, array.place] = self._layout.values(array.place, data[array.name])
        parts = [values[array.name, array.place] for array in self._vector]
        if len(parts) == 1:
            velocity = self._components(parts[0], name)
        else:
            velocity = np.concatenate(parts, axis=-1)
        scalars = {a.name: values[a.name, a.place][..., 0] for a in self._scalars}
        return Slice(velocity, scalars)

    def _block(self, i: int, names: Sequence[str] | None) -> Block:
        entry, step = self._moments[i]
        try:
            return join([read(path, step, names) for path in entry.files], [*map(str, entry.files)])
        except DataError as error:
            raise DataError(f"slice {i}: {error}") from error

    def _components(self, vector: np.ndarray, name: str) -> np.ndarray:
        """The components along the axes that are left."""
        axes = self._layout.axes
        if vector.shape[-1] == 3:
            return vector[..., axes]
        if vector.shape[-1] == 2 and axes == (0, 1):
            return vector
        raise DataError(
            f"{name}: the velocity has {vector.shape[-1]} components; expected x, y and z"
        )


def _header(entry: _series.Entry, i: int) -> Header:
    try:
        return header(entry.files[0])
    except DataError as error:
        raise DataError(f"slice {i}: {error}") from error


def _can_hold_many(entry: _series.Entry) -> bool:
    return entry.files[0].suffix.lower() in (".vtkhdf", ".hdf")
