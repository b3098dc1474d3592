"""Records in memory-mapped `.npy` files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from worldloom import _processes, store
from worldloom.loop._records import Column
from worldloom.loop._sink import SinkError


class NpySink:
    """Write records to memory-mapped `.npy` files, one an array, with bounded memory.

    **Arguments:**

    - `folder`: a new folder, or that of the run which is resumed.

    `np.load(folder / "name.npy", mmap_mode="r")` reads an array while the run goes on. A run of
    many processes leaves one file a process; [`worldloom.load_records`][] joins them.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._index_file = self.folder / "index.json"

    def open(self, columns: Sequence[Column], rows: Mapping[str, int] | None) -> None:
        """Make the files, or take up those of the run that is resumed."""
        if rows is None and self._index_file.exists() and _counted(self.folder):
            raise SinkError(
                f"{self.folder} already holds records; resume that run, delete the folder, "
                "or give another one"
            )
        self._index = {} if rows is None else _read_index(self.folder)
        _processes.barrier("records-looked-at")
        self._maps: dict[str, np.memmap] = {}
        self._starts: dict[str, int] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        for column in columns:
            self._open_column(column, 0 if rows is None else rows[column.name])
        self._write_index(rows or {column.name: 0 for column in columns})

    def write(self, column: Column, start: int, rows: np.ndarray) -> None:
        """Copy rows into the file's pages."""
        first = start - self._starts[column.name]
        self._maps[column.name][first : first + len(rows)] = rows

    def flush(self, rows: Mapping[str, int]) -> None:
        """Write the files' pages to the disk, then say how many rows count."""
        for mapped in self._maps.values():
            mapped.flush()
        _processes.barrier("records-flushed")
        self._write_index(rows)

    def close(self, rows: Mapping[str, int]) -> dict[str, Any]:
        """Cut the files to the rows that were written, and open them for reading."""
        self.flush(rows)
        self._maps.clear()
        for name, start in self._starts.items():
            store.resize_mapped(self._mine(name), rows[name] - start)
        _processes.barrier("records-closed")
        return load_records(self.folder)

    def _open_column(self, column: Column, done: int) -> None:
        """Go on with the part that these processes were writing, or begin a new one."""
        boxes = [[list(axis) for axis in box] for box in column.boxes]
        entry = self._index.setdefault(
            column.name, {"dtype": column.dtype.str, "shape": list(column.shape), "parts": []}
        )
        # A part begun after the checkpoint holds nothing that counts.
        parts = entry["parts"] = [p for p in entry["parts"] if p["start"] < done or p["start"] == 0]
        if not parts or parts[-1]["boxes"] != boxes:
            files = [f"{column.name}.{done}.{p}-of-{len(boxes)}.npy" for p in range(len(boxes))]
            if len(boxes) == 1 and not parts:
                files = [f"{column.name}.npy"]
            parts.append({"start": done, "boxes": boxes, "files": files})
            shape = (column.rows - done, *column.local_shape)
            self._maps[column.name] = store.create_mapped(
                self._mine(column.name), shape, column.dtype
            )
        else:
            path = self._mine(column.name)
            store.resize_mapped(path, column.rows - parts[-1]["start"])
            self._maps[column.name] = store.open_mapped(path, "r+")
        self._starts[column.name] = parts[-1]["start"]

    def _mine(self, name: str) -> Path:
        """The file in which this process writes its part of a column."""
        return self.folder / self._index[name]["parts"][-1]["files"][_processes.index()]

    def _write_index(self, rows: Mapping[str, int]) -> None:
        if _processes.index() == 0:
            index = {name: {**entry, "rows": rows[name]} for name, entry in self._index.items()}
            temporary = self._index_file.with_suffix(".tmp")
            temporary.write_text(json.dumps(index, indent=1))
            os.replace(temporary, self._index_file)
        _processes.barrier("records-index")


def load_records(folder: str | Path) -> dict[str, np.ndarray]:
    """Read what a `NpySink` wrote: arrays by name, whole, whoever wrote their parts.

    An array that one process wrote is memory-mapped. One with many parts is joined in memory.
    A run that is not finished yields the rows that its newest checkpoint counts.
    """
    folder = Path(folder)
    return {name: _join(folder, entry) for name, entry in _read_index(folder).items()}


def _join(folder: Path, entry: dict[str, Any]) -> np.ndarray:
    rows, parts = entry["rows"], entry["parts"]
    if len(parts) == 1 and len(parts[0]["files"]) == 1:
        return store.open_mapped(folder / parts[0]["files"][0], "r")[:rows]
    joined = np.empty((rows, *entry["shape"]), np.dtype(entry["dtype"]))
    stops = [part["start"] for part in parts[1:]] + [rows]
    for part, stop in zip(parts, stops, strict=True):
        for box, file in zip(part["boxes"], part["files"], strict=True):
            where = tuple(slice(start, end) for start, end in box)
            data = store.open_mapped(folder / file, "r")
            joined[(slice(part["start"], stop), *where)] = data[: stop - part["start"]]
    return joined


def _counted(folder: Path) -> bool:
    """Whether a checkpoint was ever made with these records."""
    return any(entry["rows"] for entry in _read_index(folder).values())


def _read_index(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "index.json").read_text())
    except FileNotFoundError as error:
        raise SinkError(f"{folder} holds no records: it has no index.json") from error
    except ValueError as error:
        raise SinkError(f"{folder / 'index.json'} is damaged: {error}") from error
