"""A rollout that is watched: the same rollout, with a recording, and the first world shown."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32

from jaxarc.envs import ArcState, Environment, MaskAction, PointAction, Rollout
from jaxarc.envs._environment import RolloutStep, ready
from jaxarc.envs._state import World
from jaxarc.utils.visualization._callbacks import print_summary
from jaxarc.utils.visualization._console import log_grid_to_console
from jaxarc.utils.visualization._recording import (
    NO_OPERATION,
    SUCCESS,
    TERMINATED,
    TEST,
    TRUNCATED,
    Recording,
    RecordingError,
)
from jaxarc.utils.visualization._settings import WatchSettings, find_settings
from worldloom import mesh, watch
from worldloom.watch._statistics import note_call, note_error


def watch_rollout(
    env: Environment,
    policy: Callable[..., Any],
    params: Any,
    key: Array,
    length: int,
    *,
    worlds: int = 1024,
    settings: WatchSettings | str = WatchSettings(),  # noqa: B008 (frozen)
    recorded: int | None = None,
    save_to: str | os.PathLike[str] | None = None,
    observations: bool = False,
    **options: Any,
) -> tuple[ArcState, Rollout, Recording | None]:
    """`env.rollout`, watched. States and rollout are bit for bit those of `env.rollout`.

    **Arguments:**

    - `policy`, `params`, `key`, `length`, `worlds`, `observations`, `options`: as for
      `env.rollout`.
    - `settings`: how much is watched: `"off"`, `"minimal"`, `"debug_standard"`, `"debug_full"`
      (these need the extra `hydra`), or settings of your own; `minimal` by default.
    - `recorded`: record the first so many worlds; all by default.
    - `save_to`: a file for the recording, small or written fast, as `compression` says.

    **Returns:** the last states, the rollout, and the recording, which is `None` with `"off"`.
    """
    debug = find_settings(settings).debug
    if debug.level == "off":
        given = {"worlds": worlds, "observations": observations, **options}
        return *env.rollout(policy, params, key, length, **given), None
    from worldloom import Every, run

    recorded = worlds if recorded is None else recorded
    if not 1 <= recorded <= worlds:
        raise ValueError(f"recorded is {recorded}; expected 1 to the number of worlds, {worlds}")
    most = max(max(len(task.demos), len(task.tests)) for task in env.tasks.tasks)
    if most > TEST:
        raise RecordingError(f"a recording counts {TEST} pairs of a task; there is one with {most}")
    inner, (lanes, seen) = ready(env, policy, params, key, worlds=worlds, observations=observations)
    step = _WatchedStep(inner, recorded, debug.period, debug.async_logging)
    tally = _Tally.begin() if debug.period else None
    result = run(step, (lanes, seen, tally), length=length, save=Every(), **options)
    rollout, trace = result.records
    if debug.period:
        jax.effects_barrier()
        _printer.wait()
        if debug.performance_monitoring:
            watch.print_statistics()
    recording = make_recording(env, rollout, trace, recorded)
    if save_to is not None:
        recording.save(save_to, level=9 if debug.memory_management.compression else 1)
    return inner.end(result.state[0], worlds), rollout, recording


class Trace(eqx.Module):
    """What a recording needs of a step beside the rollout; of the recorded worlds."""

    played: Int32[Array, "*steps worlds"]
    """The task, and in the lowest eight bits the pair, as in a recording."""
    similarity: Float32[Array, "*steps worlds"]


class _Tally(eqx.Module):
    """What is shown of the first world: its episode so far, and how often it is shown."""

    episode: Int32[Array, ""]
    steps: Int32[Array, ""]
    reward: Float32[Array, ""]
    every: Int32[Array, ""]

    @classmethod
    def begin(cls) -> _Tally:
        return cls(jnp.int32(0), jnp.int32(0), jnp.float32(0), jnp.int32(1))


class _WatchedStep(eqx.Module):
    """The step of a rollout, with a trace of it."""

    inner: RolloutStep
    recorded: int = eqx.field(static=True)
    period: int = eqx.field(static=True)
    in_background: bool = eqx.field(static=True)

    def __call__(self, carry: tuple[Any, ...], t: Array) -> tuple[Any, tuple[Rollout, Trace]]:
        lanes, seen, tally = carry
        (after, shown), kept, info = self.inner.take((lanes, seen), t)
        reward = kept.reward
        played = self._played(lanes, reward.shape[0])
        trace = Trace(played[: self.recorded], info.similarity[: self.recorded])
        if tally is not None:
            tally = self._show(tally, t, shown.grid[0], reward[0], info)
        return (after, shown, tally), (kept, trace)

    def _played(self, lanes: World, worlds: int) -> Int32[Array, " worlds"]:
        """Task and pair of every world; lanes to spare are dropped."""
        here = worlds // self.inner.devices.size

        def look(task, pair, on_test):
            pair = pair | jnp.where(on_test, TEST, 0)
            return ((task << 8) | pair)[:here]

        spread = mesh.each_device(look, self.inner.devices, in_axes=0, out_axes=0)
        return spread(lanes.task_index, lanes.pair_index, lanes.on_test_pair)

    def _show(self, tally: _Tally, t: Array, grid: Any, reward: Any, info: Any) -> _Tally:
        """Print the first world's grid when it is due, and a line at the end of its episode."""
        show, summarise = _IN_BACKGROUND if self.in_background else _AT_ONCE
        every = watch.callback(
            show,
            grid,
            t,
            name="grid",
            step=t,
            every=jnp.maximum(tally.every, self.period),
            rate=_RATES[self.period],
        )
        total = tally.reward + reward
        over = info.terminated[0] | info.truncated[0]
        watch.callback(
            summarise,
            tally.episode,
            tally.steps + 1,
            total,
            info.similarity[0],
            info.success[0],
            name="episode",
            when=over,
        )
        return _Tally(
            tally.episode + over.astype(jnp.int32),
            jnp.where(over, 0, tally.steps + 1),
            jnp.where(over, 0, total),
            every,
        )


def _show_grid(grid: np.ndarray, step: np.ndarray) -> None:
    log_grid_to_console(grid, title=f"world 0, step {step}")


class _Printer:
    """Prints from a thread of its own; what it has no time for is left out and counted."""

    def __init__(self, room: int):
        self._jobs: queue.Queue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.Queue(room)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.left_out = 0

    def later(self, func: Callable[..., None], *args: Any) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="jaxarc-printer", daemon=True
                )
                self._thread.start()
        try:
            self._jobs.put_nowait((func, tuple(map(np.array, args))))
        except queue.Full:
            self.left_out += 1

    def wait(self) -> None:
        """Until everything is printed."""
        self._jobs.join()

    def _work(self) -> None:
        while True:
            func, args = self._jobs.get()
            name = f"{func.__name__.strip('_')}, in the background"
            started = time.perf_counter()
            try:
                func(*args)
            except Exception:
                note_error(name)
            note_call(name, time.perf_counter() - started)
            self._jobs.task_done()


_printer = _Printer(room=64)


def _show_grid_later(*args: np.ndarray) -> None:
    _printer.later(_show_grid, *args)


def _print_summary_later(*args: np.ndarray) -> None:
    _printer.later(print_summary, *args)


# One of each for all rollouts: another object would be another program.
_AT_ONCE = (_show_grid, print_summary)
_IN_BACKGROUND = (_show_grid_later, _print_summary_later)
_RATES = {100: watch.Rate(fraction=0.05), 1: watch.Rate(fraction=0.25)}


def make_recording(env: Environment, rollout: Rollout, trace: Trace, recorded: int) -> Recording:
    """Put the records of a run together, as small as they go."""
    both = np.asarray(trace.played)
    task = both >> 8
    played = np.flatnonzero(np.bincount(task.ravel(), minlength=len(env.tasks)))
    place = np.zeros(len(env.tasks), np.int32)
    place[played] = np.arange(len(played))
    some = (slice(None), slice(recorded))
    flags = (rollout.terminated, rollout.truncated, rollout.success)
    terminated, truncated, success = (np.asarray(flag[some]).view(np.uint8) for flag in flags)
    ends = terminated * np.uint8(TERMINATED)
    ends |= truncated * np.uint8(TRUNCATED)
    ends |= success * np.uint8(SUCCESS)
    operation = np.asarray(rollout.action.operation[some])
    if operation.min() < 0 or operation.max() >= NO_OPERATION:
        known = (operation >= 0) & (operation < NO_OPERATION)
        operation = np.where(known, operation, NO_OPERATION)
    chosen = {"tasks": tuple(env.tasks.tasks[number] for number in played)}
    return Recording(
        task=place[task],
        pair=both.astype(np.uint8),
        operation=operation.astype(np.uint8),
        selection=_selection(rollout.action, some),
        reward=np.asarray(rollout.reward[some]),
        similarity=np.asarray(trace.similarity),
        ends=ends,
        tasks=type(env.tasks)(**chosen, name=env.tasks.name, version=env.tasks.version),
        config=env.config,
    )


def _selection(action: Any, some: tuple[slice, slice]) -> np.ndarray:
    if isinstance(action, MaskAction):
        return np.asarray(action.selection[some])
    if isinstance(action, PointAction):
        fields = (action.row, action.col)
    else:
        fields = (action.r1, action.c1, action.r2, action.c2)
    # A canvas has at most 32 cells a side, so -1 and 32 lie outside of every one.
    first = np.asarray(fields[0][some])
    selection = np.empty((*first.shape, len(fields)), np.int8)
    for place, field in enumerate(fields):
        np.clip(np.asarray(field[some]), -1, 32, out=selection[..., place], casting="unsafe")
    return selection
