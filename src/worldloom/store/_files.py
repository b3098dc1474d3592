"""Files and folders that are either whole or not there: the one way in which anything is written.

    bytes        `atomic_write`, `write_whole`
    a library that wants a path       `replacing`
    a folder     `replacing_folder`

None of them removes what it did not write: a folder is never replaced by a file, and a folder only
where all that is in it was written by `replacing_folder`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from worldloom.store._errors import DiskError, ForeignFileError, MissingError, StoreError

WRITTEN = ".written"
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


@contextlib.contextmanager
def disk_errors(action: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` of the block into a named error: "Could not `action`: ...: `path`"."""
    try:
        yield
    except StoreError:
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
        path = real_place(path)
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


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file in a folder, which is made if it is not there; return its path."""
    path = Path(path)
    with disk_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden place beside `path`, for a library that writes a file there. Its folder is made.

    When the block ends without an error the file takes the place of `path`. Whatever happens before
    leaves what was there as it was.
    """
    with disk_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        target = real_place(path)
        hidden = _hidden(target)
        try:
            yield hidden
            os.replace(hidden, target)
        finally:
            hidden.unlink(missing_ok=True)
        sync_folder(target.parent)


@contextlib.contextmanager
def replacing_folder(path: Path, *, mark: str = WRITTEN) -> Iterator[Path]:
    """A hidden folder beside `path` that takes its place when the block ends without an error.

    What is there may be a folder that this function made, with nothing else in it; anything else is
    refused, before and after the block.

    **Arguments:**

    - `mark`: where in the folder the list of its files is kept, for the next time.
    """
    with disk_errors("write", path):
        check_folder_is_ours(path, mark=mark)
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        hidden, old = _hidden(target), _hidden(target, "old")
        try:
            hidden.mkdir()
            yield hidden
            files = sorted(_files_in(hidden))
            (hidden / mark).write_text(json.dumps(files), encoding="utf-8")
            if target.exists():
                check_folder_is_ours(path, mark=mark)
                os.replace(target, old)
            os.replace(hidden, target)
            if old.exists():
                _remove(old, mark)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
        sync_folder(target.parent)


def check_folder_is_ours(path: Path, *, mark: str = WRITTEN) -> None:
    """Refuse anything at `path` but a folder in which all is from `replacing_folder`."""
    if not path.exists():
        return
    if not path.is_dir():
        raise ForeignFileError(f"{str(path)!r} is a file, and a folder is to be written there.")
    known = {mark, *_listed(path, mark)}
    for name in sorted(_files_in(path)):
        if name not in known:
            raise ForeignFileError(
                f"The folder {str(path)!r} holds {name!r}, which was not written by this program. "
                "Choose another name, or move the folder away."
            )


def real_place(path: Path) -> Path:
    """Where a file of this name is written: where a link points to. Only files are replaced."""
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise ForeignFileError(
            f"{str(path)!r} is a folder, and a file is to be written there. Choose another name."
        )
    if place.exists() and not place.is_file():
        raise ForeignFileError(f"{str(path)!r} is a device or a pipe, not a file.")
    return place


def _hidden(target: Path, what: str = "unfinished") -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.{what}")


def _files_in(folder: Path) -> Iterator[str]:
    """Everything in a folder that is no folder, by its place in it; empty folders end in `/`."""
    for at, folders, files in os.walk(folder):
        inner = Path(at).relative_to(folder)
        links = [name for name in folders if (Path(at) / name).is_symlink()]
        yield from ((inner / name).as_posix() for name in (*files, *links))
        if not folders and not files and inner.parts:
            yield f"{inner.as_posix()}/"


def _listed(folder: Path, mark: str) -> list[str]:
    """The files that `replacing_folder` wrote into a folder, as it says itself."""
    try:
        found = json.loads((folder / mark).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _remove(folder: Path, mark: str) -> None:
    """Remove what we wrote, and folders that are empty then."""
    for name in (*_listed(folder, mark), mark):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            (folder / name).unlink()
    for at, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):  # what came in meanwhile stays
            os.rmdir(at)


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
