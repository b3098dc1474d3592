"""Records in memory-mapped `.npy` files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from worldloom import _processes, store
from worldloom.loop._ledger import Entry, Ledger, Part, from_plain, parse, to_plain
from worldloom.loop._records import Column
from worldloom.loop._sink import SinkError, sink_errors
from worldloom.store._files import atomic_write

INDEX = "index.json"


class NpySink:
    """Write records to memory-mapped `.npy` files, one an array, with bounded memory.

    **Arguments:**

    - `folder`: a new folder, or that of the run which is resumed.

    `np.load(folder / "name.npy", mmap_mode="r")` reads an array while the run goes on. A run of
    many processes leaves one file a process; [`worldloom.load_records`][] joins them.

    Rows have checksums, kept in `index.json`. They are compared when a run is resumed and by
    `load_records`; a changed row is a [`worldloom.SinkError`][].
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    def open(self, columns: Sequence[Column], rows: Mapping[str, int] | None) -> None:
        """Make the files, or take up those of the run that is resumed."""
        with sink_errors("open", self.folder):
            file = self.folder / INDEX
            entries = from_plain(file, parse(file)) if rows is not None or file.exists() else {}
            if rows is None and any(entry.rows for entry in entries.values()):
                raise SinkError(
                    f"{self.folder} already holds records; resume that run, delete the folder, "
                    "or give another one"
                )
            _processes.barrier("records-looked-at")
            self.folder.mkdir(parents=True, exist_ok=True)
            self._ledger = _ledger(self.folder, {} if rows is None else entries)
            self._maps: dict[str, np.memmap] = {}
            going_on = self._ledger.take_up(list(columns), rows, _files)
            for column in columns:
                self._open_column(column, column.name in going_on)
            self._count(rows or {column.name: 0 for column in columns})

    def write(self, column: Column, start: int, rows: np.ndarray) -> None:
        """Copy rows into the file's pages."""
        first = start - self._ledger.mine(column.name)[1]
        self._maps[column.name][first : first + len(rows)] = rows
        self._ledger.add(column.name, rows)

    def flush(self, rows: Mapping[str, int]) -> None:
        """Write the files' pages to the disk, then say how many rows count."""
        with sink_errors("write", self.folder):
            for mapped in self._maps.values():
                mapped.flush()
            self._count(rows)

    def close(self, rows: Mapping[str, int]) -> dict[str, Any]:
        """Cut the files to the rows that were written, and open them for reading."""
        self.flush(rows)
        self._maps.clear()
        with sink_errors("close", self.folder):
            for name, count in rows.items():
                file, start = self._ledger.mine(name)
                store.resize_mapped(file, count - start)
            _processes.barrier("records-closed")
            return _join_all(self.folder, self._ledger.entries)

    def _open_column(self, column: Column, goes_on: bool) -> None:
        file, start = self._ledger.mine(column.name)
        if goes_on:
            store.resize_mapped(file, column.rows - start)
            self._maps[column.name] = store.open_mapped(file, "r+")
        else:
            shape = (column.rows - start, *column.local_shape)
            self._maps[column.name] = store.create_mapped(file, shape, column.dtype)

    def _count(self, rows: Mapping[str, int]) -> None:
        """Say how many rows count, when all processes have written them."""
        self._ledger.count(rows)
        if _processes.index() == 0:
            with atomic_write(self.folder / INDEX) as file:
                file.write(json.dumps(to_plain(self._ledger.entries), indent=1).encode())
        _processes.barrier("records-index")


def load_npy(folder: Path) -> dict[str, np.ndarray]:
    """The records of a `NpySink`, checked."""
    entries = from_plain(folder / INDEX, parse(folder / INDEX))
    ledger = _ledger(folder, entries)
    for name in entries:
        ledger.check(name)
    return _join_all(folder, entries)


def _files(column: Column, start: int, first: bool) -> list[str]:
    """Names for the files of a new part."""
    count = len(column.boxes)
    if count == 1 and first:
        return [f"{column.name}.npy"]
    return [f"{column.name}.{start}.{process}-of-{count}.npy" for process in range(count)]


def _ledger(folder: Path, entries: dict[str, Entry]) -> Ledger:
    def read(entry: Entry, part: Part, box: int, first: int, stop: int) -> Iterator[np.ndarray]:
        yield _open_file(folder, entry, part, box)[first:stop]

    return Ledger(folder, entries, read)


def _open_file(folder: Path, entry: Entry, part: Part, box: int) -> np.memmap:
    """A file of a part, which must have the rows that count."""
    file = folder / part.files[box]
    with sink_errors("read", file):
        mapped = store.open_mapped(file, "r")
    whole = (part.rows, *part.local_shape(box))
    if (mapped.dtype, mapped.shape[1:]) != (np.dtype(entry.dtype), whole[1:]) or (
        len(mapped) < part.rows
    ):
        raise SinkError(
            f"{file} is damaged: its header says {mapped.dtype}{list(mapped.shape)}, but it was "
            f"written with at least {entry.dtype}{list(whole)}"
        )
    return mapped


def _join_all(folder: Path, entries: dict[str, Entry]) -> dict[str, np.ndarray]:
    return {name: _join(folder, entry) for name, entry in entries.items()}


def _join(folder: Path, entry: Entry) -> np.ndarray:
    if len(entry.parts) == 1 and len(entry.parts[0].files) == 1:
        return _open_file(folder, entry, entry.parts[0], 0)[: entry.rows]
    joined = np.empty((entry.rows, *entry.shape), np.dtype(entry.dtype))
    for part, rows in entry.pieces(entry.rows):
        for box, bounds in enumerate(part.boxes):
            where = tuple(slice(start, stop) for start, stop in bounds)
            data = _open_file(folder, entry, part, box)[:rows]
            joined[(slice(part.start, part.start + rows), *where)] = data
    return joined
