"""What to train on: an environment that shows the task, and tasks that are soon learned."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from jaxarc.data import Pair, RawTask, TaskSet
from jaxarc.data._parse import MAX_SIDE
from jaxarc.data._taskset import largest_side
from jaxarc.envs import (
    ConfigError,
    Environment,
    EnvironmentConfig,
    JaxArcConfig,
    ObservationConfig,
    Reward,
    SimilarityReward,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
    make,
)


def environment_for(
    tasks: TaskSet,
    *,
    actions: Literal["point", "bbox"] = "point",
    operations: tuple[int, ...] | None = None,
    episode_steps: int = 30,
    demos: int = 1,
    reward: Reward | None = None,
) -> Environment:
    """An environment to train in: a canvas no larger than the tasks, and the task in sight.

    The agent sees the grid, the input of the pair and the first `demos` demonstrations. It plays
    demonstrations, so with `demos=1` one pair in so many shows its own answer: a reward that rises
    says that the policy learns, not that it would solve a test.

    **Arguments:**

    - `actions`: what an action selects, a point or a box.
    - `operations`: ids of the operations that may be used; all edits by default.
    - `episode_steps`: after so many an episode is cut off.
    - `reward`: by default the change of similarity and a bonus of 1 for solving a pair.
    """
    config = config_for(
        tasks, actions=actions, operations=operations, episode_steps=episode_steps, demos=demos
    )
    return make(
        tasks, config=config if reward is None else dataclasses.replace(config, reward=reward)
    )


def config_for(
    tasks: TaskSet,
    *,
    actions: str,
    operations: tuple[int, ...] | None,
    episode_steps: int,
    demos: int,
) -> JaxArcConfig:
    """The configuration of `environment_for`."""
    side = max((largest_side(task) for task in tasks.tasks), default=1)
    return JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=episode_steps, record_history=False),
        dataset=UnifiedDatasetConfig(max_grid_height=side, max_grid_width=side),
        action=UnifiedActionConfig(selection_format=actions, allowed_operations=operations),
        observation=ObservationConfig(input=True, demos=demos),
        reward=SimilarityReward(success_bonus=1.0),
    )


def tiny_tasks(*, side: int = 3, pairs: int = 8, seed: int = 0) -> TaskSet:
    """Four made-up tasks that a policy learns in seconds.

    In each, a square of one colour has a hole, a black cell, which is to be painted over; tasks
    differ in the colour. One action solves a pair, if it is the right one of 35 operations on the
    right one of `side * side` cells.

    It is a data set like the others: the same tasks everywhere, so that figures compare and a run
    goes on with what it began. Another seed makes other tasks; the version says which.
    """
    for name, value, most in (("side", side, MAX_SIDE), ("pairs", pairs, 128)):
        if type(value) is not int or not 1 <= value <= most:
            raise ConfigError(f"tiny_tasks({name}={value!r}): expected an integer 1 to {most}")
    rng = np.random.default_rng(seed)

    def pair(colour: int) -> Pair:
        whole = np.full((side, side), colour, np.uint8)
        holed = whole.copy()
        holed[tuple(rng.integers(0, side, 2))] = 0
        return Pair(holed, whole)

    tasks = tuple(
        RawTask(f"hole-{colour}", tuple(pair(colour) for _ in range(pairs)), (pair(colour),))
        for colour in (1, 2, 3, 4)
    )
    return TaskSet(tasks, "tiny", f"side {side}, {pairs} pairs, seed {seed}")
