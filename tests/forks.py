"""Command lines, each run in a process of its own that is forked from one which has imported all.

A reader in C that crashes ends the fork and nothing else, and the fork may use only so much memory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Ended:
    """How one command line ended: `code` is negative for a signal."""

    code: int
    err: str
    peak: int
    """Bytes that it had in memory at most, beyond what it began with."""

    @property
    def sound(self) -> bool:
        """Whether it did its work, or said in a sentence why not."""
        told = "worldloom: error: " in self.err and "worldloom: error: unexpected " not in self.err
        return "Traceback" not in self.err and (self.code == 0 or (self.code in (1, 2) and told))


class Forks:
    """Runs `worldloom.cli.main` with given words, in forks of one prepared process."""

    def __init__(self, folder: Path, *, seconds: int = 30, memory: int = 2 * GIB):
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(seconds), str(memory)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, words: Sequence[str], **environ: str) -> Ended:
        """One command line, to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([list(words), environ]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        return Ended(**json.loads(answer))

    def close(self) -> None:
        """End the prepared process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextlib.contextmanager
def forks(folder: Path, **options: Any) -> Iterator[Forks]:
    """`Forks` for the length of a block."""
    made = Forks(folder, **options)
    try:
        yield made
    finally:
        made.close()


def _serve(seconds: int, memory: int) -> None:
    _prepare()
    # What commands print is read back from a file: pipes would block.
    for line in sys.stdin:
        words, environ = json.loads(line)
        print(json.dumps(_fork(words, environ, seconds, memory)), flush=True)


def _prepare() -> None:
    import netCDF4  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import vtk  # noqa: F401
    import xarray  # noqa: F401
    import zarr  # noqa: F401

    import acbo.cli
    import acbo.data  # noqa: F401
    import jaxarc.cli
    import jaxarc.data  # noqa: F401
    import jaxtrace.cli
    import jaxtrace.export
    import jaxtrace.io  # noqa: F401
    import worldloom.bench
    import worldloom.cli  # noqa: F401


def _fork(words: list[str], environ: dict[str, str], seconds: int, memory: int) -> dict[str, Any]:
    place = Path(f".forked-{os.getpid()}.err")
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.environ.update(environ)
            signal.alarm(seconds)
            used = _resident()
            limit = _virtual() + memory
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            with place.open("w") as file, Path(os.devnull).open("w") as nothing:
                os.dup2(nothing.fileno(), 1)
                os.dup2(file.fileno(), 2)
            try:
                code = _read(words[1]) if words[0] == "read" else _main(words)
            except BaseException:
                import traceback

                traceback.print_exc()
            sys.stderr.flush()
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - used
            Path(f"{place}.peak").write_text(str(grown))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    peak = Path(f"{place}.peak")
    grown = int(peak.read_text()) if peak.exists() else 0
    peak.unlink(missing_ok=True)
    err = place.read_text(errors="replace")[-4000:] if place.exists() else ""
    return {"code": os.waitstatus_to_exitcode(status), "err": err, "peak": grown}


def _main(words: list[str]) -> int:
    from worldloom.cli import main

    return main(words)


def _read(file: str) -> int:
    """Every slice of a flow, as a program in Python reads it; errors told as `main` tells them."""
    import jaxtrace
    from worldloom import WorldloomError

    try:
        flow = jaxtrace.open_dataset(file)
        for i in range(len(flow)):
            flow.slice(i)
    except WorldloomError as error:
        print(f"worldloom: error: {error}", file=sys.stderr)
        return 1
    return 0


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _virtual() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    _serve(*map(int, sys.argv[1:]))
