"""Where a file goes: its ending, and a place beside it until it is whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxtrace._errors import TraceError
from worldloom.store._files import disk_errors, sync_folder


class ExportError(TraceError):
    """Tracks cannot be written there, or read from there."""


def ending(path: Path, known: Sequence[str]) -> str:
    """The ending of `path`, one of those that are known."""
    found = path.suffix.lower()
    if found not in known:
        raise ExportError(
            f"path {str(path)!r} ends in {found or 'nothing'!r}; expected one of {', '.join(known)}"
        )
    return found


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden place beside `path`, for a file or a folder, that takes its place at the end.

    Whatever happens before leaves what was there as it was.
    """
    with disk_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
        old = path.with_name(f".{path.name}.{os.getpid()}.old")
        try:
            yield hidden
            if path.is_dir():
                os.replace(path, old)
            os.replace(hidden, path)
        finally:
            for leftover in (hidden, old):
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink(missing_ok=True)
        sync_folder(path.parent)
