"""Memory that a process surely did not have before."""

from __future__ import annotations

import mmap

MB = 2**20


def fresh_pages(size: int) -> mmap.mmap:
    """So many bytes, all of them touched: the heap of a long test run has room for any array."""
    pages = mmap.mmap(-1, size)
    for start in range(0, size, MB):
        part = min(MB, size - start)
        pages[start : start + part] = bytes(part)
    return pages
