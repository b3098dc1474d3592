"""A first look at a file, in another process: its reader may crash, hang or fill the memory."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from jaxtrace.io import _looker
from jaxtrace.io._errors import DataError

SECONDS, BYTES_PER_SECOND = 10.0, 2e6
_LIBRARIES = {"netcdf": "the NetCDF library", "vtk": "VTK"}


class _Looker:
    """The other process: started at the first file, and again when a file has ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self._one = threading.Lock()
        atexit.register(self.end)

    def ask(self, kind: str, path: Path, where: str) -> Any:
        """What a look at a file finds out; an error where the file ends or stops the process."""
        with self._one:
            try:
                return self._ask(kind, path, where)
            except DataError:
                raise
            except BaseException:  # its answer would be taken for that to the next question
                self.end()
                raise

    def _ask(self, kind: str, path: Path, where: str) -> Any:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        limit = SECONDS + path.stat().st_size / BYTES_PER_SECOND
        print(json.dumps([kind, str(path.absolute()), limit]), file=process.stdin, flush=True)
        if line := process.stdout.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise _damaged(where, answer["error"])
            return answer["found"]
        code = process.wait()
        self.end()
        if code == -signal.SIGXCPU:
            raise _damaged(where, f"{_LIBRARIES[kind]} does not come to an end with it")
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise _damaged(where, f"it crashes {_LIBRARIES[kind]} ({how})")

    def _running(self) -> subprocess.Popen[str]:
        # A process that was forked from ours must not take the answers to our questions.
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self._owner = os.getpid()
            self._process = subprocess.Popen(
                [sys.executable, "-P", _looker.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._process

    def end(self) -> None:
        """End the process, if there is one and it is ours."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.communicate()


_shared = _Looker()


def look(kind: str, path: Path, where: str) -> Any:
    """Let the reader of a kind of files open one in another process first.

    What crashes or hangs there is a `DataError` here.

    **Arguments:**

    - `kind`: `"netcdf"`: the HDF5 of netCDF-4, metadata only. `"vtk"`: VTK's old format, all of it.
    - `where`: opens the message of an error.

    **Returns:**

    The time in the file, for `"vtk"`; `None` where it has none.
    """
    return _shared.ask(kind, path, where)


def _damaged(where: str, why: str) -> DataError:
    why = " ".join(why.split())
    return DataError(f"{where}: the file is damaged or not what its name says: {why}")
