"""The file: a header, zstd frames, and a manifest at the end. `docs/guide/store.md` tells all.

0   8  magic
8   4  format version
12  4  zero
16  8  offset of the manifest = end of the frames
24  8  length of the manifest; the file ends with it
32 32  SHA-256 of bytes 0..32 of the header followed by the manifest
64     frames, in the order of the manifest's parts, without gaps
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from worldloom.store._errors import (
    DamagedError,
    Flaw,
    ForeignFileError,
    UnstorableError,
    VersionError,
)
from worldloom.store._files import disk_errors
from worldloom.store._frames import BLOCK, Frame, compress, decompress, raw_bytes, run_all
from worldloom.store._manifest import Manifest, Part, from_json, to_json

MAGIC = b"\x89LOOM\r\n\x1a"
VERSION = 1
MAX_MANIFEST = 32 * 1024 * 1024

_HEADER = struct.Struct("<8sIIQQ")
_START = _HEADER.size + 32


@dataclass(frozen=True)
class Box:
    """Elements to write: the part of leaf number `leaf` that begins at `start`."""

    leaf: int
    start: tuple[int, ...]
    elements: np.ndarray


def write(file: BinaryIO, manifest: Manifest, boxes: Iterable[Box], level: int) -> None:
    """Write a whole file. `manifest` comes without parts; they are made from `boxes`."""
    file.write(bytes(_START))
    started: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []

    def arrays() -> Iterator[np.ndarray]:
        for box in boxes:
            if box.elements.size:
                started.append((box.leaf, box.start, box.elements.shape))
                yield box.elements

    parts: list[Part] = []
    frames: list[Frame] = []
    offset = _START
    with contextlib.closing(compress(arrays(), level)) as stream:
        for last, stored, frame in stream:
            file.write(stored)
            offset += frame.size
            frames.append(frame)
            if last:
                parts.append(Part(*started[len(parts)], tuple(frames)))
                frames.clear()
    text = to_json(replace(manifest, parts=tuple(parts)))
    if len(text) > MAX_MANIFEST:
        raise UnstorableError(
            f"The manifest would have {len(text)} bytes; at most {MAX_MANIFEST} are allowed. "
            "Stack small leaves into larger arrays, or keep long text out of the tree and meta."
        )
    file.write(text)
    head = _HEADER.pack(MAGIC, VERSION, 0, offset, len(text))
    file.seek(0)
    file.write(head + hashlib.sha256(head + text).digest())


class Reader:
    """An open file whose manifest is checked; its frames are checked when they are read."""

    def __init__(self, path: Path, file: BinaryIO):
        self.path = path
        self._file = file
        size = os.fstat(file.fileno()).st_size
        end, text = self._read_manifest(size)
        with self.naming_flaws():
            self.manifest = from_json(text)
            if _START + sum(part.stored for part in self.manifest.parts) != end:
                raise Flaw("the frames do not fill the file")

    def _read_manifest(self, size: int) -> tuple[int, bytes]:
        head = self._pread(min(size, _START), 0)
        if head[:8] != MAGIC[: len(head)] or not head:
            raise ForeignFileError(f"{str(self.path)!r} was not written by worldloom.store.")
        if len(head) < _START:
            raise DamagedError(f"{str(self.path)!r} is truncated: it ends inside its header.")
        _, version, zero, offset, length = _HEADER.unpack_from(head)
        if version != VERSION:
            raise VersionError(
                f"{str(self.path)!r} has format version {version}; this Worldloom reads version "
                f"{VERSION}. Use the Worldloom that wrote it, or a newer one."
            )
        with self.naming_flaws():
            if offset < _START or offset + length != size:
                raise Flaw(f"it has {size} bytes where its header promises {offset + length}")
            if length > MAX_MANIFEST:
                raise Flaw(f"its manifest has {length} bytes, more than {MAX_MANIFEST}")
            text = self._pread(length, offset)
            if zero or hashlib.sha256(head[: _HEADER.size] + text).digest() != head[-32:]:
                raise Flaw("the checksum of its manifest does not match")
        return offset, text

    def read(self, boxes: Mapping[int, np.ndarray]) -> None:
        """Read part number `i` of the manifest into the C-contiguous array `boxes[i]`."""
        run_all(self._read_frame, self._frames(boxes))

    def _frames(self, boxes: Mapping[int, np.ndarray]) -> Iterator[tuple[Any, ...]]:
        offset = _START
        for number, part in enumerate(self.manifest.parts):
            if number not in boxes:
                offset += part.stored
                continue
            raw = raw_bytes(boxes[number])
            for i, frame in enumerate(part.frames):
                yield part.leaf, offset, frame, raw[i * BLOCK : (i + 1) * BLOCK]
                offset += frame.size

    def _read_frame(self, item: tuple[int, int, Frame, memoryview]) -> None:
        leaf, offset, frame, out = item
        with self.naming_flaws(f"leaf {self.manifest.leaves[leaf].path}: "):
            decompress(self._pread(frame.size, offset), frame, out)

    def _pread(self, size: int, offset: int) -> bytes:
        with disk_errors("read", self.path):
            data = os.pread(self._file.fileno(), size, offset)
        if len(data) != size:
            raise DamagedError(f"{str(self.path)!r} became shorter while it was read.")
        return data

    @contextlib.contextmanager
    def naming_flaws(self, where: str = "") -> Iterator[None]:
        """Turn a flaw found by the block into an error that names the file."""
        try:
            yield
        except Flaw as flaw:
            raise DamagedError(f"{str(self.path)!r} is damaged: {where}{flaw}.") from flaw


@contextlib.contextmanager
def open_reader(path: Path) -> Iterator[Reader]:
    """Open a file for reading and check its header and manifest."""
    with disk_errors("read", path):
        file = path.open("rb")
    with file:
        yield Reader(path, file)
