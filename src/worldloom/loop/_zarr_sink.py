"""Records in a Zarr group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from worldloom import _processes
from worldloom._extras import import_extra
from worldloom.loop._records import Column
from worldloom.loop._sink import SinkError


class ZarrSink:
    """Write records to a Zarr group, compressed, with bounded memory.

    **Arguments:**

    - `path`: a new folder, or that of the run which is resumed.
    - `rows_per_chunk`: rows in one Zarr chunk; as many are held back until a chunk is full.

    Needs the extra `worldloom[trace]`.
    """

    def __init__(self, path: str | Path, *, rows_per_chunk: int = 64):
        if rows_per_chunk < 1:
            raise ValueError(f"ZarrSink(rows_per_chunk={rows_per_chunk}): must be at least 1")
        self.path = self.folder = Path(path)
        self.rows_per_chunk = rows_per_chunk

    def open(self, columns: Sequence[Column], rows: Mapping[str, int] | None) -> None:
        """Make the group, or take up that of the run which is resumed."""
        zarr = import_extra("zarr", extra="trace", purpose="writing records to Zarr")
        if rows is None and self.path.exists() and self._counted(zarr):
            raise SinkError(
                f"{self.path} already exists; resume its run, delete it, or give another path"
            )
        if rows is not None and not self.path.exists():
            raise SinkError(f"{self.path} holds no records of the run to resume")
        _processes.barrier("zarr-looked-at")
        if rows is None and _processes.index() == 0:
            group = zarr.create_group(self.path, overwrite=True)
            group.attrs["rows"] = {}
            for column in columns:
                group.create_array(
                    column.name,
                    shape=(column.rows, *column.shape),
                    dtype=column.dtype,
                    chunks=tuple(max(n, 1) for n in (self._rows(column), *column.local_shape)),
                )
        if rows is not None and _processes.index() == 0:
            for column in columns:
                zarr.open_array(self.path / column.name, mode="r+").resize(
                    (column.rows, *column.shape)
                )
        _processes.barrier("zarr-made")
        self._group: Any = zarr.open_group(self.path, mode="r+")
        self._columns = {column.name: column for column in columns}
        self._held: dict[str, tuple[int, np.ndarray]] = {}
        for column in columns:
            self._refuse_shared_chunks(column)
            done = 0 if rows is None else rows[column.name]
            first = done - done % self._group[column.name].chunks[0]
            self._held[column.name] = (
                first,
                self._group[column.name][self._region(column, first, done)],
            )

    def write(self, column: Column, start: int, rows: np.ndarray) -> None:
        """Hold rows back until a chunk is full, then write it whole."""
        first, held = self._held[column.name]
        block = np.concatenate([held, rows])
        full = len(block) - len(block) % self._group[column.name].chunks[0]
        self._store(column, first, block[:full])
        self._held[column.name] = (first + full, block[full:])

    def flush(self, rows: Mapping[str, int]) -> None:
        """Write what is held back; its chunk is written again, whole, when it is full."""
        for name, (first, held) in self._held.items():
            self._store(self._columns[name], first, held)
        _processes.barrier("zarr-flushed")
        if _processes.index() == 0:
            self._group.attrs["rows"] = dict(rows)

    def close(self, rows: Mapping[str, int]) -> dict[str, Any]:
        """Cut the arrays to the rows that were written, and open them for reading."""
        self.flush(rows)
        _processes.barrier("zarr-closed")
        if _processes.index() == 0:
            for name, count in rows.items():
                array = self._group[name]
                if array.shape[0] != count:
                    array.resize((count, *array.shape[1:]))
        _processes.barrier("zarr-cut")
        zarr = import_extra("zarr", extra="trace", purpose="reading records from Zarr")
        group = zarr.open_group(self.path, mode="r")
        return {name: group[name] for name in rows}

    def _counted(self, zarr: Any) -> bool:
        """Whether there is something that must not be overwritten."""
        try:
            return any(zarr.open_group(self.path, mode="r").attrs["rows"].values())
        except (KeyError, FileNotFoundError):
            return True

    def _rows(self, column: Column) -> int:
        return min(self.rows_per_chunk, column.rows)

    def _region(self, column: Column, first: int, stop: int) -> tuple[slice, ...]:
        return (slice(first, stop), *(slice(a, b) for a, b in column.box))

    def _store(self, column: Column, first: int, rows: np.ndarray) -> None:
        if len(rows):
            self._group[column.name][self._region(column, first, first + len(rows))] = rows

    def _refuse_shared_chunks(self, column: Column) -> None:
        """Two processes must never write one chunk: the later would undo the earlier."""
        sizes = self._group[column.name].chunks[1:]
        for (start, stop), whole, size in zip(column.box, column.shape, sizes, strict=True):
            if start % size or (stop % size and stop != whole):
                raise SinkError(
                    f"{self.path}: chunks of {column.name!r} are {size} wide, and more than one "
                    f"process would write the chunk at {start}:{stop}; resume with the former "
                    "number of processes, with one, or use NpySink"
                )
