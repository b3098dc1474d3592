"""NetCDF files, checked before netCDF-C sees them.

netCDF-C believes what the header of a classic file says: an odd one makes it crash or take all
memory. So that header is read here first. Its form is that of the NetCDF classic format
specification: classic, 64-bit offset, and 64-bit data (CDF-5).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import BinaryIO

from jaxtrace.io._errors import DataError
from jaxtrace.io._look import look

_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}
_LONGEST_NAME, _MOST_DIMENSIONS = 1024, 1024
_RECORD = 0


class _Flaw(Exception):
    """What is wrong with a header."""


def check_netcdf(path: Path, where: str) -> None:
    """Refuse a NetCDF file that would crash or stop its reader, or take all memory.

    The header of a classic file is read here; a file of another kind is opened in another process
    first. `where` opens the message of an error.
    """
    if not path.is_file():
        raise DataError(f"{where}: expected a file")
    with path.open("rb") as file:
        if file.read(3) != b"CDF":
            look("netcdf", path, where)
            return
        file.seek(0)
        try:
            _Header(file, path.stat().st_size).check()
        except _Flaw as flaw:
            raise DataError(
                f"{where}: the file is damaged or not what its name says: {flaw}"
            ) from flaw


@dataclasses.dataclass(frozen=True)
class _Variable:
    name: str
    shape: tuple[int, ...]
    size: int
    begin: int

    @property
    def values(self) -> int:
        """Bytes of its data, or of one record of it."""
        total = self.size
        for length in self.shape[1:] if self.is_record else self.shape:
            total *= length
        return total

    @property
    def is_record(self) -> bool:
        return bool(self.shape) and self.shape[0] == _RECORD


class _Header:
    def __init__(self, file: BinaryIO, size: int):
        self._file, self._size = file, size
        magic = self._take(4)
        if magic[:3] != b"CDF" or magic[3] not in (1, 2, 5):
            raise _Flaw(f"it begins with {magic!r}")
        self._count = 8 if magic[3] == 5 else 4
        self._offset = 4 if magic[3] == 1 else 8
        self._types = 11 if magic[3] == 5 else 6

    def check(self) -> None:
        streaming = 2 ** (8 * self._count) - 1
        records = self._number(self._count)
        dimensions = [self._dimension() for _ in range(self._list(_DIMENSIONS))]
        if sum(length == _RECORD for _, length in dimensions) > 1:
            raise _Flaw("it has more than one dimension without a length")
        self._attributes("of the file")
        variables = [self._variable(dimensions) for _ in range(self._list(_VARIABLES))]
        for names in ([name for name, _ in dimensions], [one.name for one in variables]):
            if len(set(names)) < len(names):
                raise _Flaw("a name is there twice")
        end = self._file.tell()
        of_records = [one for one in variables if one.is_record]
        alone = len(of_records) == 1  # then records are not padded
        stride = sum(one.values if alone else _padded(one.values) for one in of_records)
        if records == streaming:
            records = 0
        for one in variables:
            needed = one.begin + one.values
            if one.is_record:
                needed = one.begin + (records - 1) * stride + one.values if records else 0
            if one.begin < end or needed > self._size:
                raise _Flaw(
                    f"the data of {one.name!r} is said to be at bytes {one.begin} to {needed}, "
                    f"and the file has {self._size} with a header of {end}"
                )

    def _take(self, count: int) -> bytes:
        if count > self._size - self._file.tell():
            raise _Flaw("its header is cut off, or a length in it is wrong")
        return self._file.read(count)

    def _number(self, count: int) -> int:
        return int.from_bytes(self._take(count), "big")

    def _list(self, tag: int) -> int:
        """How many entries a list has."""
        found, count = self._number(4), self._number(self._count)
        if (found, count) == (0, 0):
            return 0
        # Each entry has 8 bytes or more.
        if found != tag or count * 8 > self._size - self._file.tell():
            raise _Flaw(f"a list in its header has the mark {found} and {count} entries")
        return count

    def _name(self) -> str:
        length = self._number(self._count)
        if not 0 < length <= _LONGEST_NAME:
            raise _Flaw(f"a name in its header has {length} bytes")
        text = self._take(_padded(length))[:length]
        try:
            name = text.decode("utf-8")
        except UnicodeDecodeError:
            raise _Flaw(f"the name {text[:60]!r} in its header is not UTF-8") from None
        if not name.isprintable() or "/" in name:
            raise _Flaw(f"a name in its header is {name[:60]!r}")
        return name

    def _dimension(self) -> tuple[str, int]:
        return self._name(), self._length()

    def _length(self) -> int:
        length = self._number(self._count)
        if length >= 2 ** (8 * self._count - 1):
            raise _Flaw(f"a dimension has the length {length}")
        return length

    def _attributes(self, whose: str) -> None:
        for _ in range(self._list(_ATTRIBUTES)):
            name = self._name()
            size, count = self._type(f"the attribute {name!r} {whose}"), self._number(self._count)
            self._take(_padded(size * count))

    def _type(self, what: str) -> int:
        kind = self._number(4)
        if not 1 <= kind <= self._types:
            raise _Flaw(f"{what} has the type {kind}, which does not exist")
        return _SIZES[kind]

    def _variable(self, dimensions: list[tuple[str, int]]) -> _Variable:
        name = self._name()
        rank = self._number(self._count)
        if rank > _MOST_DIMENSIONS:
            raise _Flaw(f"the variable {name!r} has {rank} dimensions")
        shape = []
        for place in range(rank):
            which = self._number(self._count)
            if which >= len(dimensions):
                raise _Flaw(
                    f"the variable {name!r} has the dimension {which}, which does not exist"
                )
            shape.append(dimensions[which][1])
            if place and shape[-1] == _RECORD:
                raise _Flaw(f"the variable {name!r} has records along an inner dimension")
        self._attributes(f"of {name!r}")
        size = self._type(f"the variable {name!r}")
        self._number(self._count)  # its bytes, which netCDF-C computes anew
        return _Variable(name, tuple(shape), size, self._number(self._offset))


def _padded(count: int) -> int:
    return -(-count // 4) * 4
