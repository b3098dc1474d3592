"""Several processes of one program on this machine, started and ended together."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any

from worldloom._signals import ending_signals
from worldloom.mesh import _reaper
from worldloom.mesh._errors import LaunchError
from worldloom.mesh._start import COORDINATOR, DEVICES, PROCESS, PROCESSES

TIMED_OUT = 124


def launch(
    command: Sequence[str],
    *,
    processes: int,
    devices_per_process: int = 1,
    timeout: float | int | None = None,
    grace: float | int = 5,
) -> int:
    """Run `command` as several processes of one run on this machine; return an exit code.

    The command calls `mesh.start()`, which joins them. Their output is passed on line by line,
    each line after the number of its process: `[1] loss 0.3`. They get no input.

    When a process fails, the others are ended, and a message says which failed and how. SIGINT,
    SIGTERM, SIGHUP and the signals that `WORLDLOOM_SAVE_SIGNALS` names are forwarded once, and a
    run saves itself; a second Ctrl-C kills. When this function has returned, or the process that
    called it has died in whatever way, all are gone, along with what they started (unless that left
    its process group).

    **Arguments:**

    - `command`: the program and its arguments, as for `subprocess.run`.
    - `processes`: how many of it to start.
    - `devices_per_process`: CPU devices that JAX shows in each; the accelerators each gets.
    - `timeout`: seconds after which all are ended.
    - `grace`: seconds between asking a process to end and killing it.

    **Exit code:** 0 when all ended with 0. Otherwise that of the process that failed first;
    128 + n when it was killed by signal n; 128 + n after a forwarded signal n; 124 after the
    time-out; 141 when nobody reads the output any more.

    ```python
    import sys
    from worldloom import mesh

    code = mesh.launch([sys.executable, "-c", "print('hello')"], processes=2)
    assert code == 0
    ```
    """
    command = list(command)
    if processes < 1 or devices_per_process < 1:
        raise LaunchError(
            "processes and devices_per_process must be at least 1, got "
            f"processes={processes}, devices_per_process={devices_per_process}."
        )
    if not command or shutil.which(command[0]) is None:
        raise LaunchError(
            f"command {command!r} does not start with a program that can be run."
            if command
            else "command is empty: nothing to launch."
        )
    with _Workers(command, processes, devices_per_process, grace) as workers:
        return workers.wait(timeout)


class _Workers:
    """The processes of one launch. Leaving the `with` block ends them all."""

    def __init__(
        self, command: list[str], processes: int, devices: int, grace: float | int
    ) -> None:
        self._command = command
        self._count = processes
        self._devices = devices
        self._grace = grace
        self._workers: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        self._alive: set[int] = set()
        self._write = threading.Lock()
        # Holds ("ended", worker, code), ("unread", worker, 0) and ("signal", number, 0). A
        # SimpleQueue may be put to from a signal handler.
        self._events: queue.SimpleQueue[tuple[str, int, int]] = queue.SimpleQueue()
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> _Workers:
        with contextlib.ExitStack() as stack:
            groups = stack.enter_context(_reaper_process())
            stack.enter_context(self._signals())
            stack.callback(self._end_all)
            address = f"127.0.0.1:{_free_port()}"
            for index in range(self._count):
                self._start(index, address, groups)
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._cleanup.close()

    def wait(self, timeout: float | int | None) -> int:
        """Until all have ended, one has failed, time is over, or Ctrl-C came after a signal."""
        started = time.monotonic()
        interrupted = 0
        while self._alive:
            left = None if timeout is None else timeout - (time.monotonic() - started)
            try:
                kind, which, code = self._events.get(timeout=left and max(left, 0.001))
            except queue.Empty:
                self._say(f"time-out after {timeout:g} s. All processes are ended.")
                return TIMED_OUT
            if kind == "unread":
                return 128 + signal.SIGPIPE
            if kind == "signal":
                if not interrupted:
                    interrupted = which
                    self._signal_all(signal.Signals(which))
                elif which == signal.SIGINT:
                    self._say("SIGINT again: all processes are killed.")
                    self._grace = 0
                    return 128 + which
                # Others come more than once when a scheduler signals a whole group of processes.
            else:
                self._alive.discard(which)
                if code != 0 and not interrupted:
                    self._report(which, code, time.monotonic() - started)
                    return code if code > 0 else 128 - code
        return 128 + interrupted if interrupted else 0

    def _start(self, index: int, address: str, groups: IO[bytes]) -> None:
        environment = os.environ | {
            COORDINATOR: address,
            PROCESSES: str(self._count),
            PROCESS: str(index),
            DEVICES: str(self._devices),
            "JAX_NUM_CPU_DEVICES": str(self._devices),
            "PYTHONUNBUFFERED": "1",
        }
        try:
            worker = subprocess.Popen(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise LaunchError(f"cannot start {self._command[0]!r}: {error}") from error
        groups.write(b"%d\n" % worker.pid)
        groups.flush()
        self._workers.append(worker)
        self._alive.add(index)
        assert worker.stdout is not None
        assert worker.stderr is not None
        for target, arguments in (
            (self._pass_on, (index, worker.stdout, sys.stdout)),
            (self._pass_on, (index, worker.stderr, sys.stderr)),
            (self._await, (index, worker)),
        ):
            thread = threading.Thread(target=target, args=arguments, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _await(self, index: int, worker: subprocess.Popen[bytes]) -> None:
        code = worker.wait()
        # What the worker started and left behind.
        _signal_group(worker, signal.SIGKILL)
        self._events.put(("ended", index, code))

    def _pass_on(self, index: int, source: IO[bytes], target: Any) -> None:
        with source:
            for line in source:
                text = line.decode(errors="replace").rstrip("\n")
                try:
                    with self._write:
                        target.write(f"[{index}] {text}\n")
                        target.flush()
                except (OSError, ValueError):  # Whoever read it is gone, or it was closed.
                    self._events.put(("unread", index, 0))
                    return

    def _say(self, message: str) -> None:
        with self._write:
            print(f"worldloom launch: {message}", file=sys.stderr, flush=True)

    def _report(self, index: int, code: int, seconds: float) -> None:
        if code > 0:
            how = f"ended with exit code {code}"
        else:
            how = f"was killed by {signal.Signals(-code).name} (signal {-code})"
        others = self._count - 1
        rest = f" The other {others} {'is' if others == 1 else 'are'} ended." if others else ""
        self._say(
            f"process {index} of {self._count} {how} after {seconds:.1f} s.{rest} If the run keeps "
            "checkpoints, start it again to resume from the last one, with the same or another "
            "number of processes."
        )

    def _signal_all(self, number: signal.Signals) -> None:
        for index in self._alive:
            _signal_group(self._workers[index], number)

    def _end_all(self) -> None:
        """Ask, wait, kill; then take the last of their output."""
        if self._grace > 0:
            self._signal_all(signal.SIGTERM)
        deadline = time.monotonic() + self._grace
        for worker in self._workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(timeout=max(deadline - time.monotonic(), 0))
        for worker in self._workers:
            if worker.returncode is None:
                _signal_group(worker, signal.SIGKILL)
        for worker in self._workers:
            worker.wait()
        for thread in self._threads:
            thread.join(timeout=5)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals become events, but for those that are to be ignored, as under `nohup`.

        Only the main thread of a program can receive them.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, lambda which, _: self._events.put(("signal", which, 0)))
            for number in ending_signals()
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _signal_group(worker: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.pid, number)


@contextlib.contextmanager
def _reaper_process() -> Iterator[IO[bytes]]:
    """A process that kills the groups written to it if this one dies."""
    reaper = subprocess.Popen(
        [sys.executable, "-I", "-S", _reaper.__file__],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    assert reaper.stdin is not None
    with reaper, reaper.stdin:
        yield reaper.stdin
        # Not said when the block was cut short: then the groups may still be there.
        reaper.stdin.write(b"done\n")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
