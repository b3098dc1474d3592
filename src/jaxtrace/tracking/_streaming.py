"""Runs in fields that are streamed: the window of slices moves on while the run goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import worldloom as wl
from jaxtrace._config import float_dtype
from jaxtrace._errors import TrackError
from jaxtrace.fields._stream import Source, Window
from jaxtrace.tracking._schedule import Schedule
from worldloom import mesh as meshes


def windows_of(tree: Any) -> list[Window]:
    """All windows of streamed fields in a step."""
    leaves = jax.tree.leaves(tree, is_leaf=_is_window)
    return [leaf for leaf in leaves if _is_window(leaf)]


def open_at(tree: Any, schedule: Schedule, origin: float) -> Any:
    """The same step, its windows where the run begins."""
    if not windows_of(tree):
        return tree
    moved = []
    for window in windows_of(tree):
        first = int(_plan(window.source, schedule, origin)[1][0])
        moved.append(window if first == int(window.start) else Window(window.source, first))
    return _with_windows(tree, moved)


def run(
    step: Any,
    state: Any,
    *,
    schedule: Schedule,
    origin: float,
    mesh: Any,
    save: Any,
    sink: Any,
    checkpoint: Any,
    resume: bool,
    progress: Any,
) -> wl.RunResult:
    """`worldloom.run` for a step with windows, which move as the run needs them."""
    with contextlib.ExitStack() as stack:
        readers = [
            stack.enter_context(_reading(window.source, schedule, origin, mesh))
            for window in windows_of(step)
        ]

        def refresh(done: int) -> tuple[Any, int]:
            windows, reach = zip(*(reader.at(done) for reader in readers), strict=True)
            return _with_windows(step, list(windows)), min(reach)

        return wl.run(
            step,
            state,
            length=schedule.steps,
            save=save,
            sink=sink,
            checkpoint=checkpoint,
            resume=resume,
            progress=progress,
            refresh=refresh,
        )


class _Reader:
    """The windows that a run needs, one after the other; the next is read in the background."""

    def __init__(self, source: Source, starts: np.ndarray, firsts: np.ndarray, mesh: Any):
        self._source = source
        self._starts, self._firsts = starts, firsts
        self._mesh = mesh
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="jaxtrace-reader")
        self._at = -1
        self._window: Any = None
        self._next: tuple[int, Future] | None = None

    def at(self, step: int) -> tuple[Any, int]:
        """Arrays of the window that step `step` needs, and the step until which it will do."""
        number = int(np.searchsorted(self._starts, step, side="right")) - 1
        if number != self._at:
            if self._next is not None and self._next[0] == number:
                self._window = self._next[1].result()
            else:
                self._window = self._pool.submit(self._load, number).result()
            self._at = number
            if number + 1 < len(self._firsts):
                self._next = number + 1, self._pool.submit(self._load, number + 1)
        return self._window, int(self._starts[number + 1])

    def close(self) -> None:
        """Wait for what is being read, and end."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _load(self, number: int) -> Any:
        first = int(self._firsts[number])
        arrays = (tuple(map(jnp.asarray, self._source.load(first))), jnp.int32(first))
        if self._mesh is not None:
            arrays = meshes.replicate(arrays, self._mesh)
        return jax.block_until_ready(arrays)


@contextlib.contextmanager
def _reading(source: Source, schedule: Schedule, origin: float, mesh: Any) -> Iterator[_Reader]:
    reader = _Reader(source, *_plan(source, schedule, origin), mesh)
    try:
        yield reader
    finally:
        reader.close()


def _plan(source: Source, schedule: Schedule, origin: float) -> tuple[np.ndarray, np.ndarray]:
    """The steps at which windows begin, then the number of steps; and their first slices."""
    times = schedule.times(np.arange(schedule.steps + 1))
    # The device's clock rounds: a moment may be in the interval beside the one seen from here.
    size = max(np.abs(times - origin).max(), np.abs(source.times - origin).max())
    slack = 16 * np.finfo(float_dtype()).eps * size
    early = np.minimum(times[:-1], times[1:]) - slack
    late = np.maximum(times[:-1], times[1:]) + slack
    first, last = source.needed(early, late)
    most = int((last - first).max()) + 1
    if most > source.window:
        raise TrackError(
            f"one step of {schedule.dt:g} needs {most} slices of the streamed field, more than "
            f"its window={source.window} holds; give a larger window, or take shorter steps"
        )
    starts, firsts = [0], []
    at_most = len(source.times) - source.window
    while starts[-1] < schedule.steps:
        at = starts[-1]
        if schedule.dt > 0:
            start = min(int(first[at]), at_most)
            beyond = last[at:] > start + source.window - 1
        else:
            start = max(int(last[at]) - source.window + 1, 0)
            beyond = first[at:] < start
        firsts.append(start)
        starts.append(at + int(np.argmax(beyond)) if beyond.any() else schedule.steps)
    return np.asarray(starts), np.asarray(firsts)


def _is_window(node: Any) -> bool:
    return isinstance(node, Window)


def _with_windows(tree: Any, windows: list[Any]) -> Any:
    """The tree with other windows in the places of its own, in order."""
    rest = iter(windows)

    def swap(node: Any) -> Any:
        if not _is_window(node):
            return node
        new = next(rest)
        if isinstance(new, Window):
            return new
        return eqx.tree_at(lambda w: (w.parts, w.start), node, new)

    return jax.tree.map(swap, tree, is_leaf=_is_window)
