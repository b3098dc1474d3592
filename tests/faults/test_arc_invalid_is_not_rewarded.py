"""Issue 24, ARC 2: an invalid operation is never rewarded, whatever the reward."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxarc
from jaxarc import data
from jaxarc.envs import (
    EnvironmentConfig,
    JaxArcConfig,
    PointAction,
    SimilarityReward,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
    batch_reset,
    batch_step,
)


@dataclasses.dataclass(frozen=True)
class AbsoluteSimilarity:
    """Pays for what is right now, not for what has changed."""

    def __call__(self, transition):
        return 5.0 * transition.similarity_after + transition.success.astype(jnp.float32)


@dataclasses.dataclass(frozen=True)
class Generous:
    """Pays for being there."""

    def __call__(self, transition):
        return jnp.ones_like(transition.similarity_after)


@dataclasses.dataclass(frozen=True)
class Strict:
    """Takes more than the default does."""

    def __call__(self, transition):
        return jnp.full_like(transition.similarity_after, -3.0)


SAME = data.TaskSet(
    tuple(
        data.RawTask(
            f"same-{size}",
            tuple(
                data.Pair(np.full((size, size), k, np.uint8), np.full((size, size), k, np.uint8))
                for k in (1, 2)
            ),
            (data.Pair(np.ones((size, size), np.uint8), np.ones((size, size), np.uint8)),),
        )
        for size in (1, 3, 5)
    ),
    "input equals output",
)
BUFFER = SAME.buffer(height=5, width=5)
WORLDS = 9


def config_for(reward, mode="train", controls=False):
    return JaxArcConfig(
        environment=EnvironmentConfig(
            episode_mode=mode, pair_controls=controls, record_history=False
        ),
        dataset=UnifiedDatasetConfig(max_grid_height=5, max_grid_width=5),
        action=UnifiedActionConfig(allowed_operations=(0, 3, 24, 34)),
        reward=reward,
    )


CONFIGS = [
    config_for(SimilarityReward()),
    config_for(AbsoluteSimilarity(), "test"),
    config_for(Generous(), controls=True),
    config_for(Strict()),
]


def points(operation):
    zeros = np.zeros(np.shape(operation), np.int64)
    return PointAction(np.asarray(operation, np.int64), zeros, zeros)


INVALID = st.integers(-3, 60).filter(lambda k: k not in (0, 3, 24, 34)) | st.sampled_from(
    [99, 255, 256, -(2**31), 2**31 - 1]
)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config.reward).__name__)
@settings(max_examples=15)
@given(operations=st.lists(INVALID, min_size=WORLDS, max_size=WORLDS))
def test_an_invalid_operation_earns_at_most_the_penalty(config, operations):
    keys = jax.random.split(jax.random.key(1), WORLDS)
    state, _ = batch_reset(keys, config, BUFFER)
    after, _, earned, done, info = batch_step(state, points(operations), config, tasks=BUFFER)
    reward = config.reward
    most = -reward.step_penalty if isinstance(reward, SimilarityReward) else 0.0
    assert (np.asarray(earned) <= most + 1e-7).all()
    assert not np.asarray(info.valid | info.success | info.terminated | done).any()
    np.testing.assert_array_equal(after.grid, state.grid)
    np.testing.assert_array_equal(after.solved_demos, 0)
    if isinstance(reward, Strict):
        np.testing.assert_allclose(earned, -3.0)


def test_every_door_of_a_step_agrees():
    config = config_for(Generous())
    env = jaxarc.make(SAME, config=config)
    state, _ = env.reset(jax.random.key(0), worlds=2)
    bad = points([99, 1])
    _, _, stepped, _, _ = env.step(state, bad)
    _, played = env.rollout(lambda *_: bad, None, jax.random.key(0), 3, worlds=2)
    alone = jax.tree.map(lambda leaf: leaf[0], (state, bad))
    _, _, single, _, _ = jaxarc.arc_step(*alone, config)
    for earned in (stepped, played.reward, single):
        assert (np.asarray(earned) <= 0).all()
    assert not np.asarray(played.success).any()


def test_the_tasks_of_the_issue():
    """Operation 99 earned +9.99 where a pair's input is its output."""
    tasks = data.load("AGI1-train")
    same = [
        (number, pair)
        for number, task in enumerate(tasks.tasks)
        for pair, both in enumerate(task.demos)
        if np.array_equal(both.input, both.output)
    ]
    assert len(same) >= 4
    config = JaxArcConfig(environment=EnvironmentConfig(record_history=False))
    keys = jax.random.split(jax.random.key(0), len(same))
    for number, pair in same:
        one, _ = batch_reset(
            keys[:1], config, tasks.get_task_by_index(number), initial_pair_idx=pair
        )
        _, _, reward, done, info = batch_step(one, points([99]), config)
        assert float(reward[0]) == pytest.approx(-0.01)
        assert not bool(done[0] | info.success[0])
        # A valid operation that leaves the grid as it is has solved it.
        _, _, reward, _, info = batch_step(one, points([34]), config)
        assert bool(info.success[0])
        assert float(reward[0]) == pytest.approx(9.99)
