"""Bytes of arrays as checksummed zstd frames, several at a time."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import zstandard

from worldloom.store._errors import Flaw

BLOCK = 4 * 1024 * 1024
"""Bytes of an array in one frame; the last frame of an array may hold fewer."""

LARGEST_FRAME = BLOCK + BLOCK // 128 + 512
"""No honest frame is longer: zstd adds less than this to bytes that do not compress."""

_WORKERS = min(8, os.cpu_count() or 1)

BLOCKS_AT_ONCE = _WORKERS
"""So many frames are read at once; each is in memory compressed, and as what it holds."""


@dataclass(frozen=True)
class Frame:
    """Length and SHA-256 of one zstd frame as it lies in the file."""

    size: int
    sha256: str


def compress(arrays: Iterable[np.ndarray], level: int) -> Generator[tuple[bool, bytes, Frame]]:
    """Frames of all `arrays` in order, each with a flag: the last frame of its array?

    At most a few blocks a worker are in memory, whatever the size of the arrays. An array of
    no elements has no frames and gives nothing.
    """

    def blocks() -> Iterator[tuple[bool, memoryview]]:
        for array in arrays:
            raw = raw_bytes(array)
            for start in range(0, len(raw), BLOCK):
                yield start + BLOCK >= len(raw), raw[start : start + BLOCK]

    def work(block: tuple[bool, memoryview]) -> tuple[bool, bytes, Frame]:
        last, raw = block
        stored = zstandard.ZstdCompressor(level=level, write_content_size=True).compress(raw)
        return last, stored, Frame(len(stored), hashlib.sha256(stored).hexdigest())

    return _in_order(work, blocks())


def decompress(stored: bytes, frame: Frame, out: memoryview) -> None:
    """Check one frame and write its content to `out`, whose length it must have."""
    if hashlib.sha256(stored).hexdigest() != frame.sha256:
        raise Flaw("the checksum of its data does not match")
    try:
        # The decompressor allocates what the frame header claims: look at it first.
        claimed = zstandard.get_frame_parameters(stored).content_size
        if claimed != len(out):
            raise Flaw(f"a frame holds {claimed} bytes where {len(out)} were expected")
        content = zstandard.ZstdDecompressor().decompress(stored, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise Flaw(f"a frame is not valid zstd ({error})") from error
    out[:] = content


def run_all(work: Callable[[Any], None], items: Iterable[Any]) -> None:
    """`work` on every item, on as many threads as there are cores; the first error is raised."""
    for _ in _in_order(work, items):
        pass


def raw_bytes(array: np.ndarray) -> memoryview:
    """The bytes of a C-contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _in_order(work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any]:
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="worldloom-store") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * _WORKERS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
