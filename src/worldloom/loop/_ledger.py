"""The ledger of records on disk: which rows count, who wrote them, and their checksums.

Each process that writes records keeps a CRC-32 of every `BLOCK` bytes of its rows as they pass by.
When rows are to count, the checksums go into one file with them, whole or not at all. So nothing is
read again while a run goes on; all rows that count are read once when it is resumed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from worldloom import _processes
from worldloom.loop._records import Column
from worldloom.loop._sink import SinkError
from worldloom.store._frames import raw_bytes
from worldloom.store._together import everyone

BLOCK = 16 * 2**20
"""Bytes of rows under one checksum."""

_ADVICE = (
    "Put back a copy of the records; or delete them and the checkpoint, and run again from the "
    "beginning"
)


class Sums:
    """Checksums of rows that come one after the other."""

    def __init__(self):
        self.blocks: list[int] = []
        """CRC-32 of each block of bytes; the last may not be full."""
        self.size = 0
        """How many bytes there were."""

    def add(self, rows: np.ndarray) -> None:
        """Take more rows."""
        data = raw_bytes(np.ascontiguousarray(rows))
        while data:
            if self.size % BLOCK == 0:
                self.blocks.append(0)
            piece = data[: BLOCK - self.size % BLOCK]
            self.blocks[-1] = zlib.crc32(piece, self.blocks[-1])
            self.size += len(piece)
            data = data[len(piece) :]

    def copy(self) -> Sums:
        """The same, to go on from."""
        other = Sums()
        other.blocks, other.size = list(self.blocks), self.size
        return other


@dataclasses.dataclass
class Part:
    """Rows of a column that the same processes wrote, each its own box of every row."""

    start: int
    """The first row."""
    boxes: list[list[list[int]]]
    files: list[str]
    """Where the box of each process is, below the place of the records."""
    rows: int = 0
    """How many rows the checksums are of."""
    sums: list[list[int]] = dataclasses.field(default_factory=list)
    """The checksums of each box."""

    def local_shape(self, box: int) -> tuple[int, ...]:
        """Shape of a row of a box."""
        return tuple(stop - start for start, stop in self.boxes[box])


@dataclasses.dataclass
class Entry:
    """One column as it is on disk."""

    dtype: str
    shape: list[int]
    parts: list[Part]

    @property
    def rows(self) -> int:
        """How many rows count."""
        return self.parts[-1].start + self.parts[-1].rows if self.parts else 0

    def pieces(self, rows: int) -> Iterator[tuple[Part, int]]:
        """The parts of the first `rows` rows, and how many of these each holds."""
        stops = [part.start for part in self.parts[1:]] + [rows]
        for part, stop in zip(self.parts, stops, strict=True):
            yield part, stop - part.start


Read = Callable[[Entry, Part, int, int, int], Iterator[np.ndarray]]
"""`read(entry, part, box, first, stop)` yields the rows of a box, counted from its part's first."""


class Ledger:
    """What is kept of a run, and where.

    **Arguments:**

    - `place`: the folder of the records.
    - `entries`: the columns by name, as `from_plain` gave them; nothing for a new run.
    - `read`: reads rows back.
    """

    def __init__(self, place: Path, entries: dict[str, Entry], read: Read):
        self.entries = entries
        self._place = place
        self._read = read
        self._sums: dict[str, Sums] = {}

    def take_up(
        self,
        columns: list[Column],
        rows: Mapping[str, int] | None,
        files: Callable[[Column, int, bool], list[str]],
    ) -> set[str]:
        """Check the first `rows` of each column, and go on after them.

        `files(column, start, first)` names the files of a new part. Returns the columns that go on
        in the part they have. The others get a new one.
        """
        with everyone(f"take up the records in {self._place}"):
            return {
                column.name
                for column in columns
                if self._take_up(column, rows[column.name] if rows else 0, files)
            }

    def mine(self, name: str) -> tuple[Path, int]:
        """The file that this process writes of a column, and the first row in it."""
        part = self.entries[name].parts[-1]
        return self._place / part.files[_processes.index()], part.start

    def add(self, name: str, rows: np.ndarray) -> None:
        """Take the checksum of more rows of this process."""
        self._sums[name].add(rows)

    def count(self, rows: Mapping[str, int]) -> None:
        """From now on the first `rows` of each column count. Waits for all processes."""
        blocks = {name: sums.blocks for name, sums in self._sums.items()}
        for process, data in enumerate(_processes.share(json.dumps(blocks).encode())):
            for name, theirs in json.loads(data).items():
                self.entries[name].parts[-1].sums[process] = theirs
        for name, count in rows.items():
            part = self.entries[name].parts[-1]
            part.rows = count - part.start
            assert self._sums[name].size == part.rows * _width(
                self.entries[name], part, _processes.index()
            )

    def check(self, name: str) -> None:
        """Raise unless all rows of a column that count are what was written."""
        entry = self.entries[name]
        for part, rows in entry.pieces(entry.rows):
            for box in range(len(part.boxes)):
                self._check(name, part, box, rows)

    def _take_up(
        self, column: Column, done: int, files: Callable[[Column, int, bool], list[str]]
    ) -> bool:
        dtype, shape = column.dtype.str, list(column.shape)
        boxes = [[list(axis) for axis in box] for box in column.boxes]
        entry = self.entries.get(column.name) if done else None
        if done and (entry is None or entry.rows < done):
            raise SinkError(
                f"{self._place} holds {entry.rows if entry else 0} records {column.name!r}; the "
                f"checkpoint counts {done}. {_ADVICE}"
            )
        if entry is None:
            entry = Entry(dtype, shape, [])
        if (entry.dtype, entry.shape) != (dtype, shape):
            raise SinkError(
                f"{self._place}: records {column.name!r} are {entry.dtype}{entry.shape}; this run "
                f"keeps {dtype}{shape}"
            )
        self.entries[column.name] = entry
        # A part begun after the checkpoint holds nothing that counts.
        parts = entry.parts = [part for part in entry.parts if part.start < done]
        self._sums[column.name] = Sums()
        goes_on = bool(parts) and parts[-1].boxes == boxes
        for part, rows in entry.pieces(done) if parts else ():
            for box in range(_processes.index(), len(part.boxes), _processes.count()):
                sums = self._check(column.name, part, box, rows)
                if goes_on and part is parts[-1]:
                    self._sums[column.name] = sums
        if not goes_on:
            parts.append(Part(done, boxes, files(column, done, not parts), sums=[[]] * len(boxes)))
        return goes_on

    def _check(self, name: str, part: Part, box: int, rows: int) -> Sums:
        """Read the first `rows` of a box again; returns their checksums."""
        entry = self.entries[name]
        sums, width = Sums(), _width(entry, part, box)
        for data in self._read(entry, part, box, 0, rows):
            sums.add(data)
        found = sums.copy()
        if sums.size % BLOCK:  # The last checksum may be of more rows.
            stop = min(part.rows, -(-len(sums.blocks) * BLOCK // width))
            for data in self._read(entry, part, box, rows, stop):
                sums.add(data)
        for i, _ in enumerate(found.blocks):
            if sums.blocks[i] != part.sums[box][i]:
                first = part.start + i * BLOCK // width
                last = part.start + min(rows, -(-(i + 1) * BLOCK // width)) - 1
                raise SinkError(
                    f"{self._place / part.files[box]}: records {name!r} are damaged: rows {first} "
                    f"to {last} are not what was written. {_ADVICE}"
                )
        return found


def _width(entry: Entry, part: Part, box: int) -> int:
    """Bytes of a row of a box."""
    return int(np.prod(part.local_shape(box), dtype=np.int64)) * np.dtype(entry.dtype).itemsize


def to_plain(entries: dict[str, Entry]) -> dict[str, Any]:
    """The columns as JSON values, with a checksum of their own."""
    columns = {name: dataclasses.asdict(entry) for name, entry in entries.items()}
    return {"sha256": _digest(columns), "columns": columns}


def from_plain(file: Path, document: Any) -> dict[str, Entry]:
    """What `to_plain` made this of, or an error that names the file."""
    match document:
        case {"sha256": str(digest), "columns": dict(columns)} if digest == _digest(columns):
            return {
                name: Entry(
                    entry["dtype"], entry["shape"], [Part(**part) for part in entry["parts"]]
                )
                for name, entry in columns.items()
            }
    raise SinkError(
        f"{file} is damaged, or of another version of Worldloom: the checksum of what it lists is "
        f"not there or does not match. {_ADVICE}"
    )


def parse(file: Path) -> Any:
    """The JSON value in a file that lists records."""
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise SinkError(f"{file.parent} holds no records: it has no {file.name}") from error
    except OSError as error:
        raise SinkError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SinkError(f"{file} is damaged: {error}. {_ADVICE}") from error


def _digest(columns: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()
