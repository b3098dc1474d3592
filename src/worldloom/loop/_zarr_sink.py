"""Records in a Zarr group."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from worldloom import _processes
from worldloom._extras import import_extra
from worldloom.loop._ledger import BLOCK, Entry, Ledger, Part, from_plain, parse, to_plain
from worldloom.loop._records import Column
from worldloom.loop._sink import SinkError, sink_errors
from worldloom.store._files import atomic_write

GROUP = "zarr.json"
_ATTRIBUTE = "worldloom"


class ZarrSink:
    """Write records to a Zarr group, compressed, with bounded memory.

    **Arguments:**

    - `path`: a new folder, or that of the run which is resumed.
    - `rows_per_chunk`: rows in one Zarr chunk; as many are held back until a chunk is full.

    Rows have checksums, kept in the group's attribute `worldloom`. They are compared when a run is
    resumed and by [`worldloom.load_records`][]; a changed row is a [`worldloom.SinkError`][].
    Chunks have checksums as well, which every reader of Zarr compares; but to other readers a
    chunk that is missing is one of zeros.

    Needs the extra `worldloom[trace]`.
    """

    def __init__(self, path: str | Path, *, rows_per_chunk: int = 64):
        if rows_per_chunk < 1:
            raise ValueError(f"ZarrSink(rows_per_chunk={rows_per_chunk}): must be at least 1")
        self.path = self.folder = Path(path)
        self.rows_per_chunk = rows_per_chunk

    def open(self, columns: Sequence[Column], rows: Mapping[str, int] | None) -> None:
        """Make the group, or take up that of the run which is resumed."""
        import_extra("zarr", extra="trace", purpose="writing records to Zarr")
        with _zarr_errors("open", self.path):
            self._attributes, entries = self._look(resumed=rows is not None)
            _processes.barrier("zarr-looked-at")
            self._ledger = _ledger(self.path, {} if rows is None else entries)
            self._ledger.take_up(list(columns), rows, lambda c, *_: [c.name] * len(c.boxes))
            if rows is None:
                if _processes.index() == 0:
                    # What is left of a start that was killed. Until arrays are made anew, the group
                    # lists them: so the next start knows them, wherever this one is killed.
                    for name in entries:
                        shutil.rmtree(self.path / name, ignore_errors=True)
                    self.path.mkdir(parents=True, exist_ok=True)
                self._count({column.name: 0 for column in columns})
            if _processes.index() == 0:
                for column in columns:
                    self._make_or_resize(column, resumed=rows is not None)
            _processes.barrier("zarr-made")
            self._columns = {column.name: column for column in columns}
            self._arrays = {name: _open_array(self.path / name, "r+") for name in self._columns}
            self._held: dict[str, tuple[int, np.ndarray]] = {}
            for column in columns:
                self._refuse_shared_chunks(column)
                done = 0 if rows is None else rows[column.name]
                first = done - done % self._arrays[column.name].chunks[0]
                held = self._arrays[column.name][_region(column.box, first, done)]
                self._held[column.name] = (first, held)
            if rows is not None:
                self._count(rows)

    def write(self, column: Column, start: int, rows: np.ndarray) -> None:
        """Hold rows back until a chunk is full, then write it whole."""
        first, held = self._held[column.name]
        block = np.concatenate([held, rows])
        full = len(block) - len(block) % self._arrays[column.name].chunks[0]
        with _zarr_errors("write", self.path):
            self._store(column, first, block[:full])
        self._held[column.name] = (first + full, block[full:])
        self._ledger.add(column.name, rows)

    def flush(self, rows: Mapping[str, int]) -> None:
        """Write what is held back; its chunk is written again, whole, when it is full."""
        with _zarr_errors("write", self.path):
            for name, (first, held) in self._held.items():
                self._store(self._columns[name], first, held)
            self._count(rows)

    def close(self, rows: Mapping[str, int]) -> dict[str, Any]:
        """Cut the arrays to the rows that were written, and open them for reading."""
        self.flush(rows)
        with _zarr_errors("close", self.path):
            if _processes.index() == 0:
                for name, count in rows.items():
                    _resize(self._arrays[name], count)
            _processes.barrier("zarr-cut")
            return {name: _open_array(self.path / name, "r") for name in rows}

    def _look(self, *, resumed: bool) -> tuple[dict[str, Any], dict[str, Entry]]:
        """Attributes of the group that is there, and the records it lists, if there is one."""
        if (self.path / GROUP).exists():
            attributes, entries = _read_group(self.path)
            if not resumed and any(entry.rows for entry in entries.values()):
                raise SinkError(
                    f"{self.path} already holds records; resume their run, delete them, or give "
                    "another path"
                )
            return attributes, entries
        if resumed:
            raise SinkError(f"{self.path} holds no records of the run to resume: it has no {GROUP}")
        if self.path.exists() and any(not x.name.startswith(".") for x in self.path.iterdir()):
            raise SinkError(
                f"{self.path} already exists, and is not a group of records; give another path"
            )
        return {}, {}

    def _make_or_resize(self, column: Column, *, resumed: bool) -> None:
        if resumed:
            _resize(_open_array(self.path / column.name, "r+"), column.rows)
            return
        import zarr
        from zarr.codecs import ZstdCodec

        chunks = (min(self.rows_per_chunk, column.rows), *column.local_shape)
        zarr.create_array(
            self.path / column.name,
            shape=(column.rows, *column.shape),
            dtype=column.dtype,
            chunks=tuple(max(n, 1) for n in chunks),
            compressors=ZstdCodec(level=0, checksum=True),
            fill_value=0,
            zarr_format=3,
        )

    def _store(self, column: Column, first: int, rows: np.ndarray) -> None:
        """Write rows from the first of a chunk on; what a last chunk lacks is zero.

        So chunks are always written whole, and what is left of a killed run is never read.
        """
        array = self._arrays[column.name]
        lacks = min(-len(rows) % array.chunks[0], array.shape[0] - first - len(rows))
        if len(rows):
            rows = np.pad(rows, [(0, lacks)] + [(0, 0)] * len(column.shape))
            array[_region(column.box, first, first + len(rows))] = rows

    def _count(self, rows: Mapping[str, int]) -> None:
        """Say how many rows count, when all processes have written them."""
        self._ledger.count(rows)
        if _processes.index() == 0:
            attributes = self._attributes | {_ATTRIBUTE: to_plain(self._ledger.entries)}
            group = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
            with atomic_write(self.path / GROUP) as file:
                file.write(json.dumps(group, indent=1).encode())
        _processes.barrier("zarr-index")

    def _refuse_shared_chunks(self, column: Column) -> None:
        """Two processes must never write one chunk: the later would undo the earlier."""
        sizes = self._arrays[column.name].chunks[1:]
        for (start, stop), whole, size in zip(column.box, column.shape, sizes, strict=True):
            if start % size or (stop % size and stop != whole):
                raise SinkError(
                    f"{self.path}: chunks of {column.name!r} are {size} wide, and more than one "
                    f"process would write the chunk at {start}:{stop}; resume with the former "
                    "number of processes, with one, or use NpySink"
                )


def load_zarr(path: Path) -> dict[str, Any]:
    """The records of a `ZarrSink`, checked."""
    import_extra("zarr", extra="trace", purpose="reading records from Zarr")
    _, entries = _read_group(path)
    ledger = _ledger(path, entries)
    arrays = {}
    for name, entry in entries.items():
        ledger.check(name)
        with _zarr_errors("read", path / name):
            array = _open_array(path / name, "r")
            arrays[name] = array if array.shape[0] == entry.rows else array[: entry.rows]
    return arrays


def _read_group(path: Path) -> tuple[dict[str, Any], dict[str, Entry]]:
    """Attributes of a group, and the records that it lists."""
    match parse(path / GROUP):
        case {"attributes": dict(attributes)} if _ATTRIBUTE in attributes:
            return attributes, from_plain(path / GROUP, attributes[_ATTRIBUTE])
    raise SinkError(f"{path / GROUP} is damaged, or not of a group that ZarrSink made")


def _ledger(path: Path, entries: dict[str, Entry]) -> Ledger:
    def read(entry: Entry, part: Part, box: int, first: int, stop: int) -> Iterator[np.ndarray]:
        file = path / part.files[box]
        with _zarr_errors("read", file):
            array = _open_array(file, "r")
            if array.dtype != np.dtype(entry.dtype) or array.shape[1:] != tuple(entry.shape):
                raise SinkError(
                    f"{file / GROUP} is damaged: it says {array.dtype}{list(array.shape)}, but the "
                    f"array was made as {entry.dtype} with rows of {entry.shape}"
                )
            size = max(1, int(np.prod(part.local_shape(box)))) * array.dtype.itemsize
            batch = -(-BLOCK // (size * array.chunks[0])) * array.chunks[0]
            stop = min(stop, array.shape[0] - part.start)
            bounds = tuple((start, end) for start, end in part.boxes[box])
            for start in range(first, stop, batch):
                end = min(start + batch, stop)
                yield array[_region(bounds, part.start + start, part.start + end)]

    return Ledger(path, entries, read)


def _region(box: Sequence[tuple[int, int]], first: int, stop: int) -> tuple[slice, ...]:
    return (slice(first, stop), *(slice(a, b) for a, b in box))


def _open_array(path: Path, mode: Any) -> Any:
    import zarr

    return zarr.open_array(path, mode=mode, zarr_format=3)


def _resize(array: Any, rows: int) -> None:
    if array.shape[0] != rows:
        array.resize((rows, *array.shape[1:]))


@contextlib.contextmanager
def _zarr_errors(action: str, place: Path) -> Iterator[None]:
    """Turn what Zarr says in the block into a `SinkError`: of damaged files it may say anything."""
    with sink_errors(action, place):
        try:
            yield
        except SinkError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise SinkError(f"cannot {action} records in {place}: {what}") from error
