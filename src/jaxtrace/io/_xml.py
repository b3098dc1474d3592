"""The numbers in a VTK file of XML, checked before VTK sees them.

VTK asks for as much memory as a file says that it needs, and ends the process where it gets none.
So counts, extents and the sizes in front of each block of data must be such that the file can hold
them.
"""

from __future__ import annotations

import base64
import binascii
import mmap
import re
from collections.abc import Iterator
from pathlib import Path

from jaxtrace.io._errors import DataError

_TAG = re.compile(rb"<([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)\s*/?>")
_ATTRIBUTE = re.compile(rb"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_COUNT = re.compile(rb"\s*\d{1,18}\s*")
_LARGEST = {b"NumberOfPoints", b"NumberOfCells", b"NumberOfTuples", b"NumberOfComponents"}
_LARGEST |= {b"NumberOfVerts", b"NumberOfLines", b"NumberOfStrips", b"NumberOfPolys"}
# Values of a file for each of its bytes: eight bits, or what a compressor can make of a byte.
_PLAIN, _SQUEEZED = 8, {b"vtkZLibDataCompressor": 1100, b"vtkLZ4DataCompressor": 300}
_SQUEEZED_AT_MOST = 10_000


class _Flaw(Exception):
    """What is wrong with a file."""


def check_xml(path: Path) -> None:
    """Refuse a file that asks for more than it can hold."""
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is damaged or not what its name says: it is empty")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            _Document(data).check()
        except _Flaw as flaw:
            raise DataError(
                f"{path}: the file is damaged or not what its name says: {flaw}"
            ) from flaw


class _Document:
    def __init__(self, data: mmap.mmap):
        self._data, self._size = data, len(data)
        appended = data.find(b"<AppendedData")
        self._end = appended if appended >= 0 else self._size
        self._big, self._word, self._most, self._squeezed = False, 4, _PLAIN, False
        self._start, self._raw = -1, False
        if appended >= 0:
            opening = data[appended : data.find(b">", appended) + 1]
            self._raw = b'"raw"' in opening or b"'raw'" in opening
            mark = data.find(b"_", appended + len(opening))
            self._start = mark + 1 if mark >= 0 else -1

    def check(self) -> None:
        """Every tag, and what stands in front of the data of each array."""
        for name, attributes, after in self._tags():
            if name == b"VTKFile":
                self._settle(attributes)
            self._check_numbers(attributes)
            if name in (b"DataArray", b"Array"):
                form = attributes.get(b"format", b"ascii")
                if form == b"appended":
                    self._check_appended(attributes)
                elif form == b"binary":
                    self._check_block(after, raw=False)

    def _tags(self) -> Iterator[tuple[bytes, dict[bytes, bytes], int]]:
        for tag in _TAG.finditer(self._data, 0, self._end):
            found = _ATTRIBUTE.finditer(tag[2])
            yield tag[1], {one[1]: one[2] or one[3] or b"" for one in found}, tag.end()

    def _settle(self, attributes: dict[bytes, bytes]) -> None:
        self._big = attributes.get(b"byte_order") == b"BigEndian"
        self._word = 8 if attributes.get(b"header_type") == b"UInt64" else 4
        compressor = attributes.get(b"compressor")
        self._squeezed = bool(compressor)
        if compressor:
            self._most = _SQUEEZED.get(compressor, _SQUEEZED_AT_MOST)

    def _check_numbers(self, attributes: dict[bytes, bytes]) -> None:
        room = self._most * self._size
        for name, text in attributes.items():
            said = f'{name.decode(errors="replace")}="{text.decode(errors="replace")[:60]}"'
            if name in _LARGEST:
                if not _COUNT.fullmatch(text) or int(text) > room:
                    raise _Flaw(f"{said} in a file of {self._size} bytes")
            elif name in (b"Extent", b"WholeExtent"):
                try:
                    ends = [int(word) for word in text.split()]
                except ValueError:
                    raise _Flaw(said) from None
                lengths = [b - a + 1 for a, b in zip(ends[::2], ends[1::2], strict=False)]
                if len(ends) != 6 or min(lengths) < 0:
                    raise _Flaw(said)
                if lengths[0] * lengths[1] * lengths[2] > room or max(map(abs, ends)) > 2**31:
                    raise _Flaw(f"{said} in a file of {self._size} bytes")

    def _check_appended(self, attributes: dict[bytes, bytes]) -> None:
        text = attributes.get(b"offset", b"")
        if not _COUNT.fullmatch(text) or self._start < 0:
            raise _Flaw("an array says that its data is appended, and not where")
        self._check_block(self._start + int(text), raw=self._raw)

    def _check_block(self, at: int, *, raw: bool) -> None:
        """The words before the data of an array: its bytes, or those of its compressed blocks."""
        first, left = self._words(at, 3 if self._squeezed else 1, raw=raw)
        if not first:
            return
        if not self._squeezed:
            if first[0] > left:
                raise _Flaw(f"an array of {first[0]} bytes where {left} are left")
            return
        count, block, last = first
        if count * self._word > left or max(count * block, last) > self._most * left:
            raise _Flaw(
                f"an array of {count} blocks of {block} bytes where {left} compressed ones are left"
            )
        sizes, _ = self._words(at, 3 + count, raw=raw)
        if sum(sizes[3:]) > left:
            raise _Flaw(f"an array of {sum(sizes[3:])} compressed bytes where {left} are left")

    def _words(self, at: int, count: int, *, raw: bool) -> tuple[list[int], int]:
        """Words at a place, and how many bytes there are from there on; none for an empty array."""
        size = count * self._word
        if raw:
            content, left = self._data[at : at + size], self._size - at
        else:
            while at < self._size and self._data[at : at + 1].isspace():
                at += 1
            if self._data[at : at + 1] == b"<":
                return [], 0
            left = (self._size - at) * 3 // 4
            try:
                content = base64.b64decode(self._data[at : at + -(-size // 3) * 4], validate=True)
            except binascii.Error:
                raise _Flaw("what stands before the data of an array is not base64") from None
        if len(content) < size:
            raise _Flaw("an array begins behind the end of the file")
        starts = range(0, size, self._word)
        order = "big" if self._big else "little"
        return [int.from_bytes(content[i : i + self._word], order) for i in starts], left
