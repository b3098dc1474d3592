"""The step in C: built with the system compiler, compared with the library, timed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from jaxarc.data import TaskSet

SIDE, ROW = 30, 32
KINDS = {"point": 0, "bbox": 1, "mask": 2}

GRID = np.dtype([("cells", np.int8, (SIDE, ROW)), ("height", np.int32), ("width", np.int32)])
PAIR = np.dtype([("input", GRID), ("output", GRID)])
TASK = np.dtype([("first", np.int32), ("demos", np.int32)])
WORLD = np.dtype(
    [
        ("grid", GRID),
        ("clip", np.int8, (SIDE, ROW)),
        ("clip_rows", np.uint32, SIDE),
        ("clip_height", np.int32),
        ("pair", np.int32),
        ("steps", np.int32),
        ("similarity", np.float32),
        ("dice", np.uint64),
    ],
    align=True,
)


class Ceiling:
    """The compiled C code and the tasks it plays."""

    def __init__(self, tasks: TaskSet, folder: Path):
        self._library = _build(folder)
        assert self._library.size_of_world() == WORLD.itemsize
        demos = [pair for task in tasks.tasks for pair in task.demos]
        counts = np.array([len(task.demos) for task in tasks.tasks])
        self.pairs = np.zeros(len(demos), PAIR)
        for place, pair in enumerate(demos):
            assert pair.output is not None
            for name, cells in (("input", pair.input), ("output", pair.output)):
                grid = self.pairs[place][name]
                height, width = cells.shape
                grid["cells"][:] = -1
                grid["cells"][:height, :width] = cells
                grid["height"], grid["width"] = height, width
        self.tasks = np.zeros(len(counts), TASK)
        self.tasks["first"] = np.cumsum(counts) - counts
        self.tasks["demos"] = counts

    def begin(self, batch: int, seed: int) -> np.ndarray:
        """Worlds at the start of random episodes."""
        worlds = np.zeros(batch, WORLD)
        self._library.start(
            _at(worlds), batch, _at(self.pairs), _at(self.tasks), len(self.tasks), seed
        )
        return worlds

    def edit(self, worlds: np.ndarray, operations: np.ndarray, selections: np.ndarray) -> None:
        """One operation on one selection, bits of 30 rows, in each world."""
        assert operations.dtype == np.int32
        assert selections.dtype == np.uint32
        assert selections.shape == (len(worlds), SIDE)
        operations, selections = map(np.ascontiguousarray, (operations, selections))
        self._library.edit(
            _at(worlds), len(worlds), _at(operations), _at(selections), _at(self.pairs)
        )

    def program(
        self, kind: str, *, batch: int, length: int, threads: int
    ) -> Callable[[], np.ndarray]:
        """A function that takes every world `length` random steps further."""
        worlds = self.begin(batch, seed=0)
        rewards = np.zeros((length, batch), np.float32)
        ends = np.zeros((length, batch), np.uint8)
        observations = np.zeros((batch, SIDE, SIDE), np.int8)

        def run() -> np.ndarray:
            self._library.rollout(
                _at(worlds),
                batch,
                length,
                KINDS[kind],
                _at(self.pairs),
                _at(self.tasks),
                len(self.tasks),
                _at(rewards),
                _at(ends),
                _at(observations),
                threads,
            )
            return ends

        return run


def _build(folder: Path) -> ctypes.CDLL:
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("the ceiling needs a C compiler named cc; leave it out with --no-ceiling")
    library = folder / "step.so"
    source = Path(__file__).with_name("step.c")
    flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True)
    loaded = ctypes.CDLL(str(library))
    number, address = ctypes.c_int32, ctypes.c_void_p
    loaded.size_of_world.restype = number
    loaded.start.argtypes = [address, number, address, address, number, ctypes.c_uint64]
    loaded.edit.argtypes = [address, number, address, address, address]
    loaded.rollout.argtypes = [address, number, number, number, address, address, number]
    loaded.rollout.argtypes += [address, address, address, number]
    return loaded


def _at(array: np.ndarray) -> int:
    return array.ctypes.data


def compare_with_library(ceiling: Ceiling, tasks: TaskSet, *, worlds: int = 512) -> None:
    """Take random steps of all kinds on both sides and require the same boards after each."""
    import jax

    from jaxarc.envs import (
        EnvironmentConfig,
        JaxArcConfig,
        MaskAction,
        UnifiedActionConfig,
        batch_reset,
        batch_step,
    )

    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=1000, record_history=False),
        action=UnifiedActionConfig(selection_format="mask"),
    )
    keys = jax.random.split(jax.random.key(0), worlds)
    state, _ = batch_reset(keys, config, tasks.buffer(height=SIDE, width=SIDE))
    by_hand = np.zeros(worlds, WORLD)
    task, demo = np.asarray(state.task_index), np.asarray(state.pair_index)
    by_hand["pair"] = ceiling.tasks["first"][task] + demo
    by_hand["grid"] = ceiling.pairs[by_hand["pair"]]["input"]

    rng = np.random.default_rng(0)
    for step in range(40):
        operations = rng.integers(0, 34, worlds, dtype=np.int32)  # none is handed in
        selections = _random_selections(rng, worlds)
        mask = ((selections[:, :, None] >> np.arange(SIDE, dtype=np.uint32)) & 1).astype(bool)
        live = ~np.asarray(state.done)  # a world that is solved stays as it is
        kept = by_hand.copy()
        ceiling.edit(by_hand, operations, selections)
        by_hand[~live] = kept[~live]
        state, shown, *_ = batch_step(
            state, MaskAction(operations, jax.numpy.asarray(mask)), config
        )

        rows = by_hand["clip_rows"][:, :, None] >> np.arange(SIDE, dtype=np.uint32)
        held = np.arange(SIDE)[:, None] < by_hand["clip_height"][:, None, None]
        filled = (rows & 1).astype(bool) & held
        clip = np.where(filled, by_hand["clip"][:, :, :SIDE], 0)
        same = {
            "grid": np.array_equal(by_hand["grid"]["cells"][:, :, :SIDE], shown.grid),
            "clipboard mask": np.array_equal(filled, state.clipboard_mask),
            "clipboard": np.array_equal(clip, np.where(filled, state.clipboard, 0)),
        }
        wrong = [name for name, good in same.items() if not good]
        if wrong:
            raise SystemExit(f"the C step and the library differ in {wrong} after step {step}")


def _random_selections(rng: np.random.Generator, worlds: int) -> np.ndarray:
    """Points, boxes, masks and nothing at all, as bits of rows."""
    corners = np.sort(rng.integers(0, SIDE, (2, 2, worlds)), axis=0)
    corners[1, :, : worlds // 3] = corners[0, :, : worlds // 3]
    row = np.arange(SIDE)[None]
    tall = (row >= corners[0, 0][:, None]) & (row <= corners[1, 0][:, None])
    wide = (1 << (corners[1, 1] + 1)) - (1 << corners[0, 1])
    boxes = np.where(tall, wide[:, None], 0)
    masks = rng.integers(0, 1 << SIDE, (worlds, SIDE)) & rng.integers(0, 1 << SIDE, (worlds, SIDE))
    chosen = np.where(np.arange(worlds)[:, None] < 2 * worlds // 3, boxes, masks)
    chosen[rng.random(worlds) < 0.03] = 0
    return chosen.astype(np.uint32)
