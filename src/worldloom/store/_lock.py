"""A folder that one program works in at a time."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from worldloom import _processes
from worldloom.store import _together
from worldloom.store._errors import InUseError
from worldloom.store._files import disk_errors, lock_file, still_there


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a folder for the length of a `with` block; whoever comes second gets an error.

    The lock is a hidden file beside the folder, which says which process holds it, on which host
    and since when. The operating system ends it with the process: what a killed process leaves is
    no obstacle. With several processes in one run the first holds it for all. The folder itself
    need not exist, and is not touched.

    **Raises:** `InUseError` if another program, or another part of this one, holds the folder.

    ```python
    from worldloom import store

    with store.locked("runs/one"):
        ...  # read and write below runs/one
    ```
    """
    place = Path(os.path.abspath(folder))
    with contextlib.ExitStack() as stack:
        with _together.everyone(f"lock {str(folder)!r}"):
            if _processes.index() == 0:
                stack.enter_context(_held(place))
        yield


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    path = folder.with_name(f".{folder.name}.lock")
    with disk_errors("lock", folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _take(path, folder)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        file.close()


def _take(path: Path, folder: Path) -> BinaryIO:
    while True:
        try:
            file, created = path.open("x+b"), True
        except FileExistsError:
            try:
                file, created = path.open("r+b"), False
            except FileNotFoundError:
                continue
        if not lock_file(file, created or _abandoned(file)):
            with file:
                raise InUseError(_who(file, folder))
        if still_there(path, file):
            break
        file.close()
    holder = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    file.truncate(0)
    file.write(json.dumps(holder).encode())
    file.flush()
    return file


def _who(file: BinaryIO, folder: Path) -> str:
    holder = _holder(file)
    who = (
        f"process {holder['process']} on {holder['host']} since {holder['since']}"
        if holder
        else "another process"
    )
    return (
        f"{str(folder)!r} is in use by {who}. Nothing was changed. Wait until it ends, stop it, or "
        "give another folder."
    )


def _abandoned(file: BinaryIO) -> bool:
    """Where the file system has no locks: whether whoever wrote the file is known to be gone."""
    holder = _holder(file)
    if not holder or holder["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(holder["process"]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _holder(file: BinaryIO) -> dict[str, Any]:
    file.seek(0)
    try:
        holder = json.loads(file.read(4096))
        return holder if {"process", "host", "since"} <= set(holder) else {}
    except (ValueError, TypeError):
        return {}
    finally:
        file.seek(0)
