"""A recording: what was done in every step, and nothing that can be computed again from it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Int8, Int32, UInt8, UInt32

from jaxarc.data import Pair, RawTask, TaskSet
from jaxarc.envs import (
    BboxAction,
    EnvironmentConfig,
    JaxArcConfig,
    MaskAction,
    PointAction,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
)
from worldloom import store
from worldloom._errors import WorldloomError
from worldloom._reading import reading
from worldloom.store._files import disk_errors

KIND, VERSION = "jaxarc recording", 1
TERMINATED, TRUNCATED, SUCCESS = 1, 2, 4  # bits of `ends`
TEST = 128  # bit of `pair`
NO_OPERATION = 255
Outcome = Literal["solved", "wrong", "cut off", "unfinished"]


class RecordingError(WorldloomError, ValueError):
    """A file is no recording, or a recording contradicts itself."""


@dataclasses.dataclass(frozen=True)
class Episode:
    """One episode of a recording.

    `outcome` is `"solved"`, `"wrong"` (handed in, not right), `"cut off"` (out of steps) or
    `"unfinished"` (the recording ended first).
    """

    number: int
    world: int
    start: int
    length: int
    task: int
    task_id: str
    pair: int
    on_test_pair: bool
    outcome: Outcome
    reward: float
    similarity: float


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """What a replay needs of every step of some worlds; see `watch_rollout`.

    17 bytes a world and step with points, 19 with boxes. Grids are not in it: the operations
    are applied again when somebody looks. The tasks that were played are in it, so a recording
    needs nothing else to be replayed.

    - `task`, `pair`: what was played; the highest bit of `pair` is set on test pairs.
    - `operation`, `selection`: what was done; 255 is an operation that does not exist. A mask is
      one word a row.
    - `reward`, `similarity`: after the step.
    - `ends`: bits: 1 terminated, 2 truncated, 4 success.

    ```python
    import jax
    import jaxarc
    from jaxarc.utils.visualization import Recording, watch_rollout

    env = jaxarc.make("AGI1-train", ids=["007bbfb7"])

    def policy(params, observation, key):
        return env.random_action(key, worlds=4)

    _, rollout, recording = watch_rollout(env, policy, None, jax.random.key(0), 20, worlds=4)
    recording.save("run.loom")
    print(Recording.load("run.loom").episodes[0])
    ```
    """

    task: Int32[np.ndarray, "steps worlds"]
    pair: UInt8[np.ndarray, "steps worlds"]
    operation: UInt8[np.ndarray, "steps worlds"]
    selection: Int8[np.ndarray, "steps worlds fields"] | UInt32[np.ndarray, "steps worlds rows"]
    reward: Float32[np.ndarray, "steps worlds"]
    similarity: Float32[np.ndarray, "steps worlds"]
    ends: UInt8[np.ndarray, "steps worlds"]
    tasks: TaskSet
    config: JaxArcConfig

    @property
    def steps(self) -> int:
        """Number of steps of each world."""
        return self.task.shape[0]

    @property
    def worlds(self) -> int:
        """Number of worlds."""
        return self.task.shape[1]

    @cached_property
    def episodes(self) -> tuple[Episode, ...]:
        """All episodes, in the order in which they began."""
        over = (self.ends & (TERMINATED | TRUNCATED)) != 0
        spans = []
        for world in range(self.worlds):
            stops = (np.flatnonzero(over[:, world]) + 1).tolist()
            starts = [0, *stops]
            if starts[-1] < self.steps:
                stops.append(self.steps)
            spans += [(start, world, stop) for start, stop in zip(starts, stops, strict=False)]
        return tuple(
            self._episode(number, world, start, stop)
            for number, (start, world, stop) in enumerate(sorted(spans))
        )

    def own(self, episodes: Sequence[Episode]) -> None:
        """Refuse episodes that are not of this recording: another's would be shown as its own."""
        for episode in episodes:
            if not 0 <= episode.number < len(self.episodes) or (
                self.episodes[episode.number] != episode
            ):
                raise RecordingError(
                    f"episode {episode.number} of task {episode.task_id!r} is not one of the "
                    f"{len(self.episodes)} episodes of this recording: take them from its .episodes"
                )

    def _episode(self, number: int, world: int, start: int, stop: int) -> Episode:
        task, pair = int(self.task[start, world]), int(self.pair[start, world])
        played = self.tasks.tasks[task]
        return Episode(
            number=number,
            world=world,
            start=start,
            length=stop - start,
            task=task,
            task_id=played.id,
            pair=pair & ~TEST,
            on_test_pair=bool(pair & TEST),
            outcome=self._outcome(self.ends[start:stop, world], played),
            reward=float(self.reward[start:stop, world].sum()),
            similarity=float(self.similarity[stop - 1, world]),
        )

    def _outcome(self, ends: UInt8[np.ndarray, " steps"], task: RawTask) -> Outcome:
        last = int(ends[-1])
        solved = bool(last & SUCCESS)
        if self.config.environment.episode_mode == "test":
            solved = int(((ends & SUCCESS) != 0).sum()) == len(task.tests)
        if last & TERMINATED:
            return "solved" if solved else "wrong"
        return "cut off" if last & TRUNCATED else "unfinished"

    def action(self, step: Any, world: Any) -> PointAction | BboxAction | MaskAction:
        """The actions at some places: indices of steps and worlds, of one shape."""
        operation = self.operation[step, world].astype(np.int32)
        fields = self.selection[step, world]
        match self.config.action.selection_format:
            case "point":
                return PointAction(operation, *np.moveaxis(fields.astype(np.int32), -1, 0))
            case "bbox":
                return BboxAction(operation, *np.moveaxis(fields.astype(np.int32), -1, 0))
        return MaskAction(operation, jnp.asarray(fields))

    def save(self, path: str | os.PathLike[str], *, level: int = 3) -> Path:
        """Write the recording to one compressed, checksummed file.

        **Arguments:**

        - `level`: 1 (fast) to 22 (small).
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        config = self.config
        meta = {
            "kind": KIND,
            "version": VERSION,
            "environment": dataclasses.asdict(config.environment),
            "canvas": list(config.canvas),
            "selection_format": config.action.selection_format,
            "allowed_operations": config.action.allowed_operations,
            "tasks": self.tasks.name,
            "data_version": self.tasks.version,
        }
        path = Path(path)
        with disk_errors("write", path):
            path.parent.mkdir(parents=True, exist_ok=True)
        tree = {**arrays, "tasks": _pack_tasks(self.tasks)}
        store.save(path, tree, meta=_plain(meta), level=level)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read a recording. A damaged file, or one of another kind, is a named error."""
        with reading(os.fspath(path), "a recording", RecordingError):
            meta = store.read_meta(path)
            if meta.get("kind") != KIND:
                raise RecordingError(f"{os.fspath(path)!r} is no recording of JaxARC")
            if meta["version"] != VERSION:
                raise RecordingError(
                    f"{os.fspath(path)!r} has version {meta['version']}; this JaxARC reads "
                    f"{VERSION}"
                )
            made = cls._from_file(meta, store.load(path))
            made._check(os.fspath(path))
            return made

    @classmethod
    def _from_file(cls, meta: Mapping[str, Any], tree: Any) -> Recording:
        allowed = meta["allowed_operations"]
        config = JaxArcConfig(
            environment=EnvironmentConfig(**meta["environment"]),
            dataset=UnifiedDatasetConfig(
                max_grid_height=meta["canvas"][0], max_grid_width=meta["canvas"][1]
            ),
            action=UnifiedActionConfig(
                selection_format=meta["selection_format"],
                allowed_operations=None if allowed is None else tuple(allowed),
            ),
        )
        tasks = TaskSet(_unpack_tasks(tree["tasks"]), meta["tasks"], meta["data_version"])
        return cls(**{name: tree[name] for name in _ARRAYS}, tasks=tasks, config=config)

    def _check(self, where: str) -> None:
        if self.task.size and not 0 <= self.task.min() <= self.task.max() < len(self.tasks):
            raise RecordingError(f"{where!r} plays tasks that it does not hold")
        counts = np.array([(len(t.demos), len(t.tests)) for t in self.tasks.tasks], np.int32)
        on_test = (self.pair & TEST) != 0
        limit = counts.reshape(-1, 2)[self.task, on_test.astype(np.int32)]
        if ((self.pair & ~np.uint8(TEST)) >= limit).any():
            raise RecordingError(f"{where!r} plays pairs that its tasks do not have")


_ARRAYS = ("task", "pair", "operation", "selection", "reward", "similarity", "ends")


def _plain(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in meta.items()}


def _pack_tasks(tasks: TaskSet) -> dict[str, Any]:
    """All tasks as a few arrays; a hidden output is 0 x 0."""
    pairs = [pair for task in tasks.tasks for pair in task.demos + task.tests]
    side = max((max(pair.input.shape) for pair in pairs), default=1)
    side = max([side, *(max(p.output.shape) for p in pairs if p.output is not None)])
    cells = np.zeros((len(pairs), 2, side, side), np.uint8)
    sizes = np.zeros((len(pairs), 2, 2), np.uint8)
    for place, pair in enumerate(pairs):
        for which, grid in enumerate((pair.input, pair.output)):
            if grid is not None:
                cells[place, which, : grid.shape[0], : grid.shape[1]] = grid
                sizes[place, which] = grid.shape
    counts = [(len(task.demos), len(task.tests)) for task in tasks.tasks]
    return {
        "ids": list(tasks.ids),
        "counts": np.array(counts, np.int32).reshape(-1, 2),
        "cells": cells,
        "sizes": sizes,
    }


def _unpack_tasks(tree: Mapping[str, Any]) -> tuple[RawTask, ...]:
    pairs = []
    for cells, sizes in zip(tree["cells"], tree["sizes"].tolist(), strict=True):
        shown, output = (
            grid[:height, :width] for grid, (height, width) in zip(cells, sizes, strict=True)
        )
        pairs.append(Pair(shown, output if output.size else None))
    tasks, at = [], 0
    for id, (demos, tests) in zip(tree["ids"], tree["counts"].tolist(), strict=True):
        middle, end = at + demos, at + demos + tests
        tasks.append(RawTask(id, tuple(pairs[at:middle]), tuple(pairs[middle:end])))
        at = end
    return tuple(tasks)
