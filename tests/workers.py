"""Command lines run in another process, which is started anew when one of them ends or stops it.

A reader in C that crashes, hangs or fills the memory is then a result, and not the end of the test.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import resource
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

MEMORY = 3 * 2**30


@dataclasses.dataclass(frozen=True)
class Ended:
    """How one command line ended: `code` is negative for a signal."""

    code: int
    err: str
    grown: int
    """Bytes by which the most memory that was ever used has grown."""

    @property
    def sound(self) -> bool:
        """Whether it did its work, or said in a sentence why not."""
        told = "error: " in self.err and "error: unexpected " not in self.err
        refused = told or "╭─" in self.err  # what the library for command lines says is in a box
        return "Traceback" not in self.err and (self.code == 0 or (self.code in (1, 2) and refused))


class Worker:
    """Runs `worldloom.cli.main` with given words. `"read", FILE` reads all slices of a flow."""

    def __init__(self, folder: Path, seconds: float):
        self._folder, self._seconds = folder, seconds
        self._process: subprocess.Popen[str] | None = None

    def run(self, words: Sequence[str]) -> Ended:
        """One command line, to its end."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(list(words)), file=process.stdin, flush=True)
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            late = not ready.select(self._seconds)
        line = "" if late else process.stdout.readline()
        if line:
            return Ended(**json.loads(line))
        self.close()
        return Ended(process.returncode, "no end" if late else "a crash", 0)

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextlib.contextmanager
def worker(folder: Path, *, seconds: float = 60.0) -> Iterator[Worker]:
    """A `Worker` for the length of a block."""
    made = Worker(folder, seconds)
    try:
        yield made
    finally:
        made.close()


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    said = Path(f".said-{os.getpid()}")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    used = _most_memory()
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
    for line in sys.stdin:
        with said.open("w") as file:
            os.dup2(file.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        code = _run(json.loads(line))
        sys.stderr.flush()
        before, used = used, _most_memory()
        err = said.read_text(errors="replace")[-4000:]
        print(json.dumps({"code": code, "err": err, "grown": used - before}), file=answers)
        answers.flush()


def _run(words: list[str]) -> int:
    import traceback

    from worldloom.cli import main

    try:
        return _read(words[1]) if words[0] == "read" else main(words)
    except BaseException:
        traceback.print_exc()
        return 70


def _read(file: str) -> int:
    """Every slice of a flow, as a program in Python reads it; errors told as `main` tells them."""
    import logging

    import jaxtrace
    from worldloom import WorldloomError

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # as `main` does
    try:
        with jaxtrace.open_dataset(file) as flow:
            for i in range(len(flow)):
                flow.slice(i)
    except WorldloomError as error:
        print(f"worldloom: error: {error}", file=sys.stderr)
        return 1
    return 0


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    _serve()
