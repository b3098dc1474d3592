"""`Rival`: somebody else's program, timed in its own process and environment."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from worldloom._errors import WorldloomError
from worldloom.bench._environment import clean_environ, environment
from worldloom.bench._local import Sample

_SERVER = Path(__file__).with_name("_serve.py")


class RivalError(WorldloomError, RuntimeError):
    """A rival crashed, raised, did not answer in time, or answered nonsense."""


@dataclasses.dataclass(frozen=True)
class Rival:
    """A variant of [`worldloom.bench.compare`][] that runs in its own Python environment.

    Its script is a Python file that defines `setup(**options)`, which returns the function to time.
    Arrays of JAX that the function returns are waited for; other asynchronous work it must await
    itself.

    **Arguments:**

    - `script`: the file. It needs nothing of Worldloom.
    - `requirements`: packages of its environment, as in `("numpy==2.2.0",)`. The environment is
        made at first use (with uv where there is one, else with venv and pip) and kept in the
        user's cache folder. `None`: no environment, `python` is used as it is.
    - `python`: a version such as `"3.12"` or the path of an interpreter; this one by default.
    - `options`: arguments of `setup`, as JSON can carry them.
    - `environ`: environment variables to add, such as a number of threads.
    - `timeout`: seconds for the set-up, and for every sample.
    """

    script: str | Path
    requirements: Sequence[str] | None = None
    python: str | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)
    timeout: float | int = 600

    def __post_init__(self) -> None:
        if not Path(self.script).is_file():
            raise ValueError(f"Rival: script={str(self.script)!r} is not a file")

    def subject(self) -> RivalSubject:
        """Something to take samples of; the process starts with the first."""
        return RivalSubject(self)


class RivalSubject:
    """A rival and, once it is started, its process."""

    def __init__(self, rival: Rival):
        self.packages: Mapping[str, str] = {}
        self._rival = rival
        self._stack = contextlib.ExitStack()

    def first(self) -> tuple[float, float | None]:
        """Start the process, wait until it is set up, and call it once."""
        self._process = self._stack.enter_context(_process(self._rival))
        ready = self._process.answer("ready", doing="setting up")
        self.packages = dict(json.loads(ready)["packages"])
        return self.sample(1).wall, None

    def sample(self, repeats: int) -> Sample:
        """Time so many calls, over there, by its own clock."""
        self._process.say(f"run {repeats}")
        answer = self._process.answer("seconds", doing=f"running {repeats} times")
        wall, cpu = map(float, answer.split())
        return Sample(wall, cpu, 0)

    def close(self) -> None:
        """End the process."""
        self._stack.close()


@contextlib.contextmanager
def _process(rival: Rival) -> Iterator[_Process]:
    """The process of a rival, which is over when the block ends."""
    if rival.requirements is None:
        python = rival.python or sys.executable
    else:
        python = str(environment(rival.requirements, python=rival.python))
    script = str(Path(rival.script).resolve())
    with tempfile.TemporaryFile() as log:
        try:
            child = subprocess.Popen(
                [python, "-I", str(_SERVER), script, json.dumps(dict(rival.options))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env={**clean_environ(), **rival.environ},
            )
        except OSError as error:
            raise RivalError(f"cannot start {python} for the rival {script}: {error}") from error
        process = _Process(rival, child, log)
        try:
            yield process
        finally:
            process.end()


class _Process:
    """Lines to and from a rival, with a limit on patience."""

    def __init__(self, rival: Rival, child: subprocess.Popen[str], log: IO[bytes]):
        assert child.stdin is not None
        assert child.stdout is not None
        self._rival, self._child, self._log = rival, child, log
        self._input, self._output = child.stdin, child.stdout
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def say(self, line: str) -> None:
        """Send a command."""
        try:
            self._input.write(line + "\n")
            self._input.flush()
        except OSError as error:
            raise RivalError(self._story("is gone")) from error

    def answer(self, expected: str, *, doing: str) -> str:
        """Wait for the expected word and return what follows it."""
        timeout = self._rival.timeout
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            self._child.kill()  # now, or it would run beside the others
            self._child.wait()
            message = f"did not answer within {timeout:g} s while {doing}"
            raise RivalError(self._story(message)) from None
        if line is None:
            code = self._child.wait()
            raise RivalError(self._story(f"ended with exit code {code} while {doing}"))
        word, _, rest = line.strip().partition(" ")
        if word == "error":
            raise RivalError(f"the rival {self._rival.script} raised:\n{json.loads(rest)}")
        if word != expected:
            raise RivalError(self._story(f"answered {line.strip()!r} while {doing}"))
        return rest

    def end(self) -> None:
        """Close its input, which asks it to end; insist if it does not."""
        with contextlib.suppress(BrokenPipeError):  # it ended before us
            self._input.close()
        try:
            self._child.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._reader.join()
        self._output.close()

    def _read(self) -> None:
        for line in self._output:
            self._lines.put(line)
        self._lines.put(None)

    def _story(self, what: str) -> str:
        """What happened, with the last lines that the rival printed."""
        self._log.seek(0)
        tail = self._log.read().decode("utf-8", "replace").strip().splitlines()[-12:]
        said = "\nIts last lines were:\n" + "\n".join(tail) if tail else ""
        return f"the rival {self._rival.script} {what}.{said}"
