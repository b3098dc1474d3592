"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from worldloom.store._errors import DiskError, ForeignFileError, MissingError

_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


@contextlib.contextmanager
def disk_errors(action: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` of the block into a named error: "Could not `action`: ...: `path`"."""
    try:
        yield
    except (DiskError, MissingError):
        raise
    except FileNotFoundError as error:
        missing = f"Could not {action}: no such file or folder"
        raise MissingError(error.errno, missing, str(path)) from error
    except IsADirectoryError as error:
        raise ForeignFileError(f"Could not {action}: {str(path)!r} is a folder.") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise DiskError(error.errno or 0, f"Could not {action}: {reason}", str(path)) from error


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends without an error.

    The bytes go to a hidden file in the same folder, which is synced and renamed. Whatever
    happens before the rename (an exception, a full disk, a kill) leaves the old file as it was.
    """
    with disk_errors("write", path):
        hidden, file = _open_hidden(path)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(hidden, path)
        except BaseException:
            with contextlib.suppress(OSError):
                hidden.unlink()
            raise
        sync_folder(path.parent)


def _open_hidden(path: Path) -> tuple[Path, BinaryIO]:
    """The first hidden file beside `path` that no living process writes to, open and empty.

    A writer holds a lock on its hidden file. One that exists without a lock was left by a
    process that was killed, and is used again; so leftovers never pile up. Where the file
    system has no locks, a hidden file that exists is taken to be in use.
    """
    for slot in itertools.count():
        hidden = path.with_name(f".{path.name}.{slot}.unfinished")
        try:
            file = hidden.open("x+b")
            created = True
        except FileExistsError:
            try:
                file = hidden.open("r+b")
            except FileNotFoundError:
                continue
            created = False
        if lock_file(file, created) and still_there(hidden, file):
            file.truncate(0)
            return hidden, file
        file.close()
    raise AssertionError("unreachable")


def lock_file(file: BinaryIO, free: bool) -> bool:
    """Lock an open file; `False` if another holds it. `free` is the answer where locks are none."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return free
        raise
    return True


def still_there(hidden: Path, file: BinaryIO) -> bool:
    """Is the open file the one of that name, or did its writer rename it before our lock?"""
    try:
        return os.path.samestat(hidden.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
