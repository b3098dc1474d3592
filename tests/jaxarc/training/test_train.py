"""Training: it learns, resumes bit for bit, and does not care how many devices there are."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import worldloom as wl
from jaxarc import training
from worldloom import mesh

pytestmark = pytest.mark.slow

CONFIG = training.PPOConfig(
    worlds=16, steps=6, updates=6, epochs=2, minibatches=2, width=8, layers=1
)


@pytest.fixture(scope="module")
def env():
    # Episodes shorter than a rollout: some are cut off in every update.
    return training.environment_for(training.tiny_tasks(), operations=(1, 2, 3, 4), episode_steps=4)


@pytest.fixture(scope="module")
def on_two(env):
    return training.train(env, jax.random.key(5), config=CONFIG, progress=False)


def leaves(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        yield jax.tree_util.keystr(path), np.asarray(leaf)


def test_metrics_say_what_happened(env, on_two):
    metrics = on_two.records
    assert metrics.reward.shape == (6,)
    assert all(np.isfinite(leaf).all() for _, leaf in leaves(metrics))
    # Every world ends an episode after four steps at most, of six.
    assert (metrics.episodes >= 16).all()
    assert (metrics.solved <= metrics.episodes).all()
    # A policy without an opinion has the entropy of four operations and nine cells.
    np.testing.assert_allclose(metrics.losses.entropy[0], np.log(4) + np.log(9), atol=0.1)


def test_one_device_learns_what_two_do(env, on_two):
    one = mesh.worlds_mesh(jax.devices()[:1])
    alone = training.train(env, jax.random.key(5), config=CONFIG, devices=one, progress=False)
    for (name, a), (_, b) in zip(leaves(alone.records), leaves(on_two.records), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5, err_msg=name)
    for (name, a), (_, b) in zip(leaves(alone.state), leaves(on_two.state), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=name)


class Stop(wl.NoProgress):
    def update(self, done: int) -> None:
        if done >= 3:
            raise RuntimeError("stopped in the middle")


def test_a_stopped_run_goes_on_bit_for_bit(env, on_two, tmp_path):
    options = {
        "config": CONFIG,
        "checkpoint": wl.Checkpoint(tmp_path, chunks=1),
        "chunk_steps": 1,
        "resume": True,
    }
    with pytest.raises(RuntimeError, match="in the middle"):
        training.train(env, jax.random.key(5), progress=Stop(), **options)
    resumed = training.train(env, jax.random.key(5), progress=False, **options)
    for (name, a), (_, b) in zip(leaves(resumed.records), leaves(on_two.records), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    for (name, a), (_, b) in zip(leaves(resumed.state), leaves(on_two.state), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("actions", ["point", "bbox"])
def test_it_learns_to_solve_tiny_tasks(actions):
    env = training.environment_for(training.tiny_tasks(), actions=actions, episode_steps=10)
    config = training.PPOConfig(updates=40, worlds=128)
    metrics = training.train(env, jax.random.key(0), config=config, progress=False).records
    share = metrics.solved / metrics.episodes
    # By chance one action in 315 solves a pair; a policy that has learned solves it at once.
    assert share[:2].mean() < 0.3
    assert share[-5:].mean() > 0.95
    assert metrics.reward[-5:].mean() > metrics.reward[:2].mean() + 0.8
