"""`run`: the one long loop. The host's half of it; the device's is in `_program`."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array

from worldloom import check, store
from worldloom._errors import WorldloomError
from worldloom._processes import gather, largest
from worldloom._signals import exit_with_signal
from worldloom._way import way
from worldloom.compile import count_compiles
from worldloom.loop._checkpoint import Checkpoint, Keeper
from worldloom.loop._interrupt import catch_interrupt
from worldloom.loop._npy_sink import NpySink
from worldloom.loop._pace import Pace
from worldloom.loop._program import Faults, OnFault, Program, chunk, observe
from worldloom.loop._progress import NoProgress, Progress, ProgressBar
from worldloom.loop._records import local_part
from worldloom.loop._setup import Setup
from worldloom.loop._sink import MemorySink, Sink, SinkError


class Fault(NamedTuple):
    """A check that failed."""

    world: int | None
    """Index of the world; `None` if the check is one for the whole state."""
    step: int
    """Number of steps done when it failed first."""
    message: str
    """The name of the check."""


class FaultError(WorldloomError, RuntimeError):
    """A check failed and the run was to stop. `result` holds the run so far."""

    result: RunResult


class RunInterrupted(WorldloomError, KeyboardInterrupt):
    """A signal ended a run after the running chunk.

    Nobody need catch it: a process that it ends exits with 128 + the signal, 130 for Ctrl-C.
    """

    result: RunResult
    """The run so far."""
    signal: signal.Signals
    """What was sent: SIGINT (Ctrl-C), SIGTERM, SIGHUP, or one of `WORLDLOOM_SAVE_SIGNALS`."""


@dataclasses.dataclass(frozen=True)
class RunResult:
    """What a run leaves."""

    state: Any
    """The state after the last step."""
    records: Any
    """What `save` asked for: its pytree, with an array for each record, rows first."""
    steps: int
    """How many steps are done, those before a resume included."""
    faults: tuple[Fault, ...]
    """The first failure of each world, in order of worlds."""
    compile_seconds: float
    """Time to build or load the program."""
    run_seconds: float
    """Time for everything else."""

    def __repr__(self) -> str:
        return (
            f"RunResult(steps={self.steps}, faults={len(self.faults)}, "
            f"compile_seconds={self.compile_seconds:.3g}, run_seconds={self.run_seconds:.3g})"
        )


def run(
    step: Callable[[Any, Any], tuple[Any, Any]],
    state: Any,
    inputs: Any = None,
    *,
    length: int,
    save: Any = None,
    sink: Sink | None = None,
    progress: bool | str | Progress = False,
    checkpoint: Checkpoint | str | Path | None = None,
    resume: bool = False,
    checks: Mapping[str, Callable[[Any], Any]] | None = None,
    on_fault: OnFault = "stop",
    chunk_steps: int | None = None,
    refresh: Callable[[int], tuple[Callable, int]] | None = None,
) -> RunResult:
    """Take a state through `length` steps of a compiled loop.

    The loop runs on the device in chunks; between chunks, and while the next one computes, the
    host takes records away, draws progress and saves checkpoints. One program serves chunks of
    any length. Memory is bounded, whatever the length.

    **Arguments:**

    - `step`: `step(state, x) -> (state, output)`, pure. `x` is `inputs[t]`, or the step number `t`
        if there are no inputs. Bind data that does not change as arguments:
        `jax.tree_util.Partial(step, field=field)`.
    - `state`: a pytree of arrays. It is copied once and not touched.
    - `inputs`: a pytree of arrays with a leading axis of `length`, on the device or on the host;
        memory-mapped arrays are read window by window.
    - `length`: number of steps.
    - `save`: what to keep: [`worldloom.Every`][], [`worldloom.At`][], [`worldloom.Final`][], or a
        pytree of them. By default only the last state.
    - `sink`: where records go: [`worldloom.MemorySink`][] (default), [`worldloom.NpySink`][],
        [`worldloom.ZarrSink`][]. With a checkpoint the default is a `NpySink` in its folder.
    - `progress`: `True` or a label for a bar; or an object with `start`, `update` and `stop`.
    - `checkpoint`: where and how often the run saves itself; see [`worldloom.Checkpoint`][].
    - `resume`: go on from the newest checkpoint of this same run, bit for bit, if there is one; a
        larger `length` prolongs it.
    - `checks`: messages and functions of the state that are true where a world has failed: one
        value, or one for each world.
    - `on_fault`: what a failed check does. `"stop"` raises [`worldloom.FaultError`][] at that
        step; `"drop"` freezes the world in its last good state; `"keep"` goes on and reports.
    - `chunk_steps`: steps in a chunk; by default as many as take about a quarter of a second.
    - `refresh`: for data of the step that are too large to be held at once. `refresh(t)` returns
        the step to use from step number `t` on, the same but for its arrays, and the number until
        which it will do.

    **Returns:**

    A [`worldloom.RunResult`][].

    ```python
    import jax.numpy as jnp
    import worldloom as wl

    def decay(x, t):
        x = 0.5 * x
        return x, x.sum()

    result = wl.run(decay, jnp.ones(3), length=4, save=wl.Every(2))
    assert result.records.tolist() == [0.75, 0.1875]
    assert result.state.tolist() == [0.0625] * 3
    ```
    """
    if checkpoint is None and resume:
        raise ValueError("resume=True needs `checkpoint`: the folder to resume from")
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    if checkpoint is not None and isinstance(sink, MemorySink):
        raise SinkError(
            "sink=MemorySink() with a checkpoint: a run that goes on would have lost the records "
            "of before; leave `sink` out, or give NpySink(folder) or ZarrSink(path)"
        )
    setup = Setup(
        step,
        state,
        inputs,
        length=length,
        save=save,
        checks=checks or {},
        on_fault=on_fault,
        refresh=refresh,
        config=None if checkpoint is None else checkpoint.config,
    )
    pace = Pace(setup, length, chunk_steps)
    buffers = [setup.buffers(), setup.buffers()]
    if checkpoint is not None:
        setup.trace(buffers[0])
    with contextlib.ExitStack() as locks:
        keeper = None
        if checkpoint is not None:
            locks.enter_context(store.locked(checkpoint.folder))
            keeper = Keeper(checkpoint, setup)
        if sink is None:
            sink = MemorySink() if checkpoint is None else NpySink(checkpoint.records)
        elif folder := getattr(sink, "folder", None):
            locks.enter_context(store.locked(folder))
        return _Driver(setup, pace, buffers, sink, _meter(progress), keeper).run(resume)


class _Pending(NamedTuple):
    """A chunk that the device is working on."""

    start: int
    stop: int
    buffers: list[list[Array]]
    reached: Array


class _Driver:
    """The loop on the host: sends a chunk, and sees to the one before while it computes."""

    def __init__(
        self,
        setup: Setup,
        pace: Pace,
        buffers: list[list[list[Array]]],
        sink: Sink,
        progress: Progress,
        keeper: Keeper | None,
    ):
        self._setup = setup
        self._spare = buffers
        self._length = pace.length
        self._pace = pace
        self._sink = sink
        self._progress = progress
        self._keeper = keeper
        self._carry = setup.carry
        self._sent = 0
        self._reached = 0
        self._pending: _Pending | None = None
        self._compile_seconds = 0.0

    def run(self, resume: bool) -> RunResult:
        began = time.perf_counter()
        self._begin(resume)
        self._progress.start(self._reached, self._length)
        asked = 0
        with catch_interrupt() as interrupt:
            try:
                while self._sent < self._length and not self._halted and not asked:
                    before, self._pending = self._pending, self._send()
                    if before is not None:
                        self._receive(before)
                    if not self._pace.known:
                        self._drain()
                    asked, save = largest(interrupt.signal, self._due())
                    if save and not asked:
                        self._drain()
                        self._save()
                self._drain()
            finally:
                self._progress.stop()
            if self._keeper is not None and not self._halted:
                self._save()
            result = self._result(time.perf_counter() - began)
            (asked,) = largest(asked or interrupt.signal)
        if self._halted:
            self._raise_fault(result)
        if asked:
            interrupt.pass_on()
            self._raise_interrupted(result, signal.Signals(asked))
        return result

    @property
    def _halted(self) -> bool:
        """Whether a fault stopped the device before it had done all that was sent."""
        return self._pending is None and self._reached < self._sent

    def _begin(self, resume: bool) -> None:
        """Start from the beginning, or where the newest checkpoint left off."""
        records = self._setup.records
        if self._keeper is not None and not resume:
            self._keeper.refuse_existing()
        found = self._keeper.load(self._saved()) if self._keeper is not None and resume else None
        columns = records.all_columns()
        if found is None:
            self._sink.open(columns, None)
            if self._keeper is not None:
                self._keeper.save(0, self._saved())
        else:
            self._sent = self._reached = found[0]
            self._carry = self._setup.unpack(found[1])
            rows = (
                records.by_name(self._reached)
                if self._reached
                else dict.fromkeys(records.by_name(0), 0)
            )
            self._sink.open(columns, rows)
        if self._reached == 0:
            self._observe([i for i, save in enumerate(records.saves) if save.initial])

    def _observe(self, which: list[int]) -> None:
        """Write the next row of some saves, or their first, from the state as it is."""
        if which:
            kept = observe(self._setup.program, self._carry.state, tuple(which))
            for i, values in zip(which, kept, strict=True):
                row = self._setup.records.saves[i].rows(self._reached) if self._reached else 0
                for column, value in zip(self._setup.records.columns[i], values, strict=True):
                    self._sink.write(column, row, local_part(column, value)[None])

    def _send(self) -> _Pending:
        """Hand the next chunk to the device, without waiting for it."""
        setup, start = self._setup, self._sent
        stop = min(self._pace.next(start), setup.refresh(start, self._length))
        window, offset = setup.inputs.window(start, stop, setup.replicated)
        began = time.perf_counter()
        with count_compiles() as compiles:
            self._carry, buffers, reached = chunk(
                setup.program,
                setup.step,
                self._carry,
                self._spare.pop(),
                window,
                np.int32(offset),
                np.asarray(setup.records.rows(start), np.int32),
                np.int32(start),
                np.int32(stop),
            )
        if compiles.seconds:
            self._compile_seconds += time.perf_counter() - began
        self._pace.sent()
        self._sent = stop
        return _Pending(start, stop, buffers, reached)

    def _receive(self, pending: _Pending) -> None:
        """Wait for a chunk and take its records away."""
        with check.reraise():
            self._reached = int(pending.reached)
        self._pace.received(self._reached - pending.start)
        records = self._setup.records
        firsts, ends = records.rows(pending.start), records.rows(self._reached)
        for i, columns in enumerate(records.columns):
            for column, buffer in zip(columns, pending.buffers[i], strict=True):
                if count := ends[i] - firsts[i]:
                    self._sink.write(column, firsts[i], local_part(column, buffer, count))
        self._spare.append(pending.buffers)
        self._progress.update(self._reached)

    def _drain(self) -> None:
        """Wait until the device has nothing left to do."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self._receive(pending)

    def _due(self) -> bool:
        return self._keeper is not None and self._keeper.due()

    def _saved(self) -> dict[str, Any]:
        return self._setup.pack(self._carry)

    def _save(self) -> None:
        assert self._keeper is not None
        if self._keeper.saved == self._reached:
            return
        self._sink.flush(self._setup.records.by_name(self._reached))
        self._keeper.save(self._reached, self._saved())

    def _result(self, seconds: float) -> RunResult:
        records = self._setup.records
        self._observe([i for i, save in enumerate(records.saves) if save.after(self._reached)])
        rows = records.by_name(self._reached, ended=True)
        return RunResult(
            state=self._setup.program.state.fill(self._carry.state),
            records=records.assemble(self._sink.close(rows)),
            steps=self._reached,
            faults=_decode(self._setup.program, self._carry.faults),
            compile_seconds=self._compile_seconds,
            run_seconds=seconds - self._compile_seconds,
        )

    def _raise_interrupted(self, result: RunResult, asked: signal.Signals) -> None:
        where = "nothing is saved: a run that is given a checkpoint can go on"
        if self._keeper is not None:
            where = f"saved in {str(self._keeper.folder)!r}: the same " + way(
                "call with resume=True goes on from there", "command goes on from there"
            )
        how = "" if asked == signal.SIGINT else f" by {asked.name}"
        done = f"{result.steps} of {self._length} steps"
        error = RunInterrupted(f"interrupted{how} after {done}; {where}")
        error.result, error.signal = result, asked
        exit_with_signal(RunInterrupted)
        raise error

    def _raise_fault(self, result: RunResult) -> None:
        first = min(result.faults, key=lambda fault: fault.step)
        world = "" if first.world is None else f"world {first.world}: "
        more = f" (and {len(result.faults) - 1} more)" if len(result.faults) > 1 else ""
        error = FaultError(f"{world}{first.message}, at step {first.step}{more}")
        error.result = result
        raise error


def _decode(program: Program, faults: Faults) -> tuple[Fault, ...]:
    """Failed checks in words, by world."""
    if not program.checks:
        return ()
    codes, steps = (gather(x) for x in faults)
    single = codes.ndim == 0
    return tuple(
        Fault(
            None if single else int(world),
            int(steps.flat[world]),
            program.checks[codes.flat[world] - 1][0],
        )
        for world in np.flatnonzero(codes)
    )


def _meter(progress: bool | str | Progress) -> Progress:
    if isinstance(progress, bool):
        return ProgressBar() if progress else NoProgress()
    return ProgressBar(progress) if isinstance(progress, str) else progress
