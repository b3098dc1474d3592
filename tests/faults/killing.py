"""Kill a run at its n-th file event, start it again, and compare with one that was left alone.

    python killing.py RUN FOLDER EVENT ...

RUN is a name in `RUNS`. Prints how many file events an undisturbed run has, and one line for each
event at which what was started again did not end with the same bits; so no such line is good news.

The process imports once and forks for every run, before JAX has any threads.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import worldloom as wl
from worldloom import store
from worldloom.loop import Column

_EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link")
_UNHEARD = ("fsync", "posix_fallocate")  # no audit event of their own

STEPS, CHUNK = 40, 5


def survivors(run: str, folder: Path, events: Sequence[int]) -> tuple[int, str]:
    """Events of an undisturbed run, and complaints about those in `events`: see `main`."""
    done = subprocess.run(
        [sys.executable, __file__, run, str(folder), *map(str, events)],
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, _, rest = done.stdout.partition("\n")
    return int(first), rest


def digest(records: dict[str, Any], state: Any) -> str:
    """The bits of a result."""
    found = hashlib.sha256(np.asarray(state).tobytes())
    for name in sorted(records):
        array = np.asarray(records[name][:])
        found.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def drive(sink: wl.Sink, folder: Path, *, length: int = STEPS, leave_at: int | None = None) -> str:
    """What `worldloom.run` does with a sink and a checkpoint, without JAX; resumes by itself.

    Left at a step, it looks as after a kill.
    """
    columns = [
        Column("a", np.dtype("f4"), (3, 2), length, (((0, 3), (0, 2)),)),
        Column("b.c", np.dtype("i8"), (), length // 4, ((),)),
        Column("empty", np.dtype("f8"), (0, 2), length, (((0, 0), (0, 2)),)),
        Column("end", np.dtype("u1"), (5,), 1, (((0, 5),),)),
    ]

    def counts(done: int, ended: bool = False) -> dict[str, int]:
        return {"a": done, "b.c": done // 4, "empty": done, "end": int(ended)}

    def rows(column: Column, first: int, stop: int) -> np.ndarray:
        size = int(np.prod(column.shape))
        values = np.arange(first * size + 1, stop * size + 1) * 37 % 251
        return values.reshape(stop - first, *column.shape).astype(column.dtype)

    state = folder / "state.loom"
    done = store.load(state) if state.exists() else None
    sink.open(columns, None if done is None else counts(done))
    if done is None:
        store.save(state, done := 0)
    for start in range(done, length, CHUNK):
        if start == leave_at:
            return ""
        before, after = counts(start), counts(start + CHUNK)
        for column in columns[:3]:
            if before[column.name] < after[column.name]:
                sink.write(
                    column,
                    before[column.name],
                    rows(column, before[column.name], after[column.name]),
                )
        if start // CHUNK % 2:
            sink.flush(after)
            store.save(state, start + CHUNK)
    sink.write(columns[3], 0, rows(columns[3], 0, 1))
    records = sink.close(counts(length, ended=True))
    store.save(state, length)
    return digest(records, length)


def real(sink: wl.Sink | None, folder: Path) -> str:
    """A run of JAX."""
    key = jax.random.key(0)

    def step(x: Any, t: Any) -> Any:
        x = x + jax.random.normal(jax.random.fold_in(key, t), x.shape)
        return x, {"x": x, "most": x.max()}

    result = wl.run(
        step,
        jax.numpy.zeros((3, 2)),
        length=STEPS,
        save={"out": wl.Every(), "some": wl.Every(4, of=lambda x: x.sum(), initial=True)},
        sink=sink,
        checkpoint=wl.Checkpoint(folder / "run", chunks=2),
        chunk_steps=CHUNK,
        resume=True,
    )
    records = {"some": result.records["some"], **result.records["out"]}
    return digest(records, result.state)


def npy(folder: Path) -> wl.Sink:
    return wl.NpySink(folder / "records")


def zarr(folder: Path) -> wl.Sink:
    return wl.ZarrSink(folder / "records", rows_per_chunk=7)


RUNS: dict[str, Callable[[Path], str]] = {
    "npy": lambda folder: drive(npy(folder), folder),
    "zarr": lambda folder: drive(zarr(folder), folder),
    "real-own": lambda folder: real(None, folder),
    "real-npy": lambda folder: real(npy(folder), folder),
    "real-zarr": lambda folder: real(zarr(folder), folder),
}


def kill_at(event: int, folder: Path, report: Callable[[int], None]) -> None:
    """From now on count file events below a folder; at number `event` this process is no more."""
    numbers, inside = itertools.count(1), os.fspath(folder)

    def happened(path: Any, dir_fd: Any = -1) -> None:
        path = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if isinstance(dir_fd, int) and dir_fd >= 0:
            path = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
        if path.startswith(inside):
            number = next(numbers)
            report(number)
            if number == event:
                os.kill(os.getpid(), signal.SIGKILL)

    def hook(name: str, args: tuple[Any, ...]) -> None:
        if name in _EVENTS and args:
            if isinstance(args[0], int):
                happened(os.readlink(f"/proc/self/fd/{args[0]}"))
            else:
                happened(args[0], args[-1] if name in ("os.remove", "os.rmdir") else -1)

    def heard(function: Callable) -> Callable:
        def call(descriptor: int, *rest: Any) -> Any:
            happened(os.readlink(f"/proc/self/fd/{descriptor}"))
            return function(descriptor, *rest)

        return call

    for name in _UNHEARD:
        setattr(os, name, heard(getattr(os, name)))
    sys.addaudithook(hook)


def fork(action: Callable[[], str]) -> tuple[int, str]:
    """How a fork that does this ended, and what it returned or said."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, action().encode())
            os._exit(0)
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}"[:2000].encode())
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as stream:
        said = stream.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def main(run: str, folder: Path, events: Sequence[int]) -> None:
    """Print events of an undisturbed run, and what went wrong after a kill at each of `events`."""
    if not run.startswith("real"):
        jax.process_index, jax.process_count = lambda: 0, lambda: 1
    action, work = RUNS[run], folder / "work"

    def afresh() -> None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()

    def counted() -> str:
        seen: list[int] = [0]
        kill_at(0, work, seen.append)
        return json.dumps([action(work), max(seen)])

    afresh()
    code, said = fork(counted)
    assert code == 0, said
    wanted, total = json.loads(said)
    print(total)
    for event in events:
        afresh()
        code, said = fork(lambda e=event: (kill_at(e, work, lambda _: None), action(work))[1])
        if code != -signal.SIGKILL and event <= total * 3 // 4:
            print(f"event {event}: not killed: {code} {said}")
        code, said = fork(lambda: action(work))
        if (code, said) != (0, wanted):
            print(f"event {event}: started again: {code} {said}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [int(word) for word in sys.argv[3:]])
