"""`worldloom arc rollout`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from worldloom.cli import Command, UsageError, seed_or_fresh

if TYPE_CHECKING:
    import numpy as np

    from worldloom import Column, Progress


@dataclasses.dataclass(frozen=True)
class Rollout:
    """What `worldloom arc rollout` does."""

    dataset: str = "AGI1-train"
    """The tasks: AGI1-train, AGI1-eval, AGI2-train, AGI2-eval, AGI1 or AGI2."""

    worlds: int = 1024
    """How many worlds play at once."""

    steps: int = 100
    """How many steps each of them takes."""

    actions: Literal["point", "bbox", "mask"] = "point"
    """How an action selects cells."""

    seed: int | None = None
    """Decides tasks and actions; a fresh one by default, which the output tells."""

    def __post_init__(self):
        for name in ("worlds", "steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name} must be 1 or more, got {getattr(self, name)}")


def run(config: Rollout) -> None:
    """Let random actions play, and print how fast that went and what came of it."""
    import jax

    import worldloom
    from jaxarc.data import NAMES
    from jaxarc.envs import UnifiedActionConfig, make
    from worldloom.batch import format_bytes

    if config.dataset not in NAMES:
        raise UsageError(f"no data set {config.dataset!r}; there are: {', '.join(NAMES)}")
    seed = seed_or_fresh(config.seed)
    env = make(config.dataset)
    chosen = UnifiedActionConfig(selection_format=config.actions)
    env = dataclasses.replace(env, config=dataclasses.replace(env.config, action=chosen))

    def policy(params: Any, observation: Any, key: Any) -> Any:
        return env.random_action(key, worlds=config.worlds)

    clock, tally = _Clock(worldloom.ProgressBar("rollout", delay=0.0)), _Tally()
    state, _ = env.rollout(
        policy,
        None,
        jax.random.key(seed),
        config.steps,
        worlds=config.worlds,
        progress=clock,
        sink=tally,
    )
    steps = config.worlds * config.steps
    tests = env.config.environment.episode_mode == "test"
    of_state = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    of_tasks = sum(leaf.nbytes for leaf in jax.tree.leaves(env.buffer))
    print(
        f"{config.dataset} {env.tasks.version}: {env.buffer.num_tasks} tasks, "
        f"{config.worlds:,} worlds x {config.steps:,} steps = {steps:,} steps, "
        f"{config.actions} actions, seed {seed}"
    )
    for name, value in (
        ("speed", clock.speed(config.worlds)),
        ("first step", f"{clock.first_seconds:.1f} s, with compilation"),
        ("episodes", f"{tally['terminated'] + tally['truncated']:,.0f} ended"),
        ("  solved", f"{tally['success']:,.0f} {'test pairs' if tests else 'pairs'}"),
        ("  terminated", f"{tally['terminated']:,.0f}"),
        ("  truncated", f"{tally['truncated']:,.0f}"),
        ("reward", f"{tally['reward'] / steps:+.4f} a step"),
        ("memory", f"{format_bytes(of_state / config.worlds)} a world"),
        ("  tasks", f"{format_bytes(of_tasks)}, shared by all worlds"),
    ):
        print(f"  {name:<13}{value}")


class _Clock:
    """Times a run from the end of its first chunk on: what comes before is compilation."""

    def __init__(self, bar: Progress):
        self._bar = bar
        self._marks: list[tuple[int, float]] = []

    def start(self, done: int, length: int) -> None:
        self._began = time.perf_counter()
        self._bar.start(done, length)

    def update(self, done: int) -> None:
        self._marks.append((done, time.perf_counter()))
        self._bar.update(done)

    def stop(self) -> None:
        self._bar.stop()

    @property
    def measured(self) -> bool:
        return len(self._marks) > 1

    @property
    def first_seconds(self) -> float:
        return self._marks[0][1] - self._began

    def speed(self, worlds: int) -> str:
        (first, began), (last, ended) = self._marks[0], self._marks[-1]
        if last == first:
            return "not known: one step is all compilation, take more --steps"
        return f"{worlds * (last - first) / (ended - began):,.0f} steps/s"


class _Tally:
    """A sink that adds up the outcomes and drops the rest, so that any length has room."""

    def __init__(self):
        self._sums: dict[str, float] = {}

    def __getitem__(self, name: str) -> float:
        return next(total for column, total in self._sums.items() if column.endswith(name))

    def open(self, columns: Sequence[Column], rows: Mapping[str, int] | None) -> None:
        self._columns = tuple(columns)

    def write(self, column: Column, start: int, rows: np.ndarray) -> None:
        if len(column.shape) == 1:
            total = float(rows.sum(dtype="float64"))
            self._sums[column.name] = self._sums.get(column.name, 0.0) + total

    def flush(self, rows: Mapping[str, int]) -> None:
        pass

    def close(self, rows: Mapping[str, int]) -> dict[str, Any]:
        import numpy as np

        return {c.name: np.empty((0, *c.shape), c.dtype) for c in self._columns}


COMMAND = Command(
    "rollout",
    "Play ARC tasks with random actions in many worlds; print speed, outcomes and memory.",
    Rollout,
    run,
    examples=(
        ("worldloom arc rollout --dataset AGI1-train --worlds 1024 --steps 100", "the default"),
        ("worldloom arc rollout --dataset AGI2-eval --actions bbox", "the official test protocol"),
    ),
)
