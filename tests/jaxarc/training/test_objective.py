"""What is learned is what another hand computes."""

from __future__ import annotations

import dataclasses
import functools
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import training
from jaxarc.envs import ConfigError
from jaxarc.training import _train
from worldloom import mesh

sys.path.insert(0, str(Path(__file__).parent))
import ppo_oracle

CONFIG = training.PPOConfig(
    worlds=8,
    steps=3,
    updates=4,
    epochs=1,
    minibatches=2,
    learning_rate=0.01,
    width=4,
    layers=1,
)


def environment(actions: Any):
    tasks = training.tiny_tasks(side=2)
    return training.environment_for(tasks, actions=actions, operations=(1, 2, 3, 4, 34))


@pytest.fixture(scope="module")
def env():
    return environment("point")


@functools.cache
def setting(actions: str):
    """A network, and what 8 worlds played in 3 steps; compiled once for all tests."""
    env = environment(actions)
    network = new_network(env)
    # A network without an opinion has heads so small that mistakes in them would not show.
    network = eqx.tree_at(lambda n: (n.operation, n.wishes), network, replace_fn=lambda x: 10 * x)
    flat = played_in(env, network, 24, seed=2)
    return env, network, jax.tree.map(lambda x: np.asarray(x).reshape(3, 8, *x.shape[1:]), flat)


def part_of(played: training.Experience, part: int) -> training.Experience:
    """Every second world, of all steps: the same on any number of devices."""
    return jax.tree.map(lambda x: x[:, part::2].reshape(12, *x.shape[2:]), played)


@hypothesis.given(st.integers(0, 2**31), st.floats(0, 1), st.floats(0, 1))
@hypothesis.settings(max_examples=20)
def test_advantages_are_the_sums_of_their_definition(seed, discount, decay):
    rng = np.random.default_rng(seed)
    reward, value = rng.normal(size=(2, 5, 4)).astype(np.float32)
    last = rng.normal(size=4).astype(np.float32)
    done = rng.random((5, 4)) < 0.3
    found = _advantages(*map(jnp.asarray, (reward, value, last, done)), discount, decay)
    expected = ppo_oracle.advantages(reward, value, last, done, discount, decay)
    np.testing.assert_allclose(found, expected, atol=2e-5)


@jax.jit
def _advantages(reward, value, last, done, discount, decay):
    return training.advantages(reward, value, last, done, discount=discount, decay=decay)


def new_network(env) -> training.ActorCritic:
    make = eqx.filter_jit(lambda key: training.ActorCritic(env.config, width=4, layers=1, key=key))
    return make(jax.random.key(1))


def parameters_of(network: training.ActorCritic) -> dict[str, np.ndarray]:
    fields = {f.name: getattr(network, f.name) for f in dataclasses.fields(network)}
    return {k: np.asarray(v, float) for k, v in fields.items() if isinstance(v, jax.Array)}


def planes_of(seen) -> np.ndarray:
    one = [np.asarray(p)[:, None] for p in (seen.grid, seen.input)]
    return np.concatenate([*one, seen.demo_inputs, seen.demo_outputs], axis=1)


def played_in(env, network, worlds: int, seed: int) -> training.Experience:
    rng = np.random.default_rng(seed)
    _, seen = env.reset(jax.random.key(seed), worlds=worlds)
    height, width = env.config.canvas
    parts = 3 if env.config.action.selection_format == "bbox" else 2
    cells = rng.integers(0, height * width, (worlds, parts - 1))
    operation = rng.integers(0, len(env.config.operations), (worlds, 1))
    choices = np.concatenate([operation, cells], axis=1).astype(np.int32)
    noise = rng.normal(size=(4, worlds)).astype(np.float32)
    # Old probabilities near enough to today's that some are clipped and some are not.
    exact = [
        ppo_oracle.decide(parameters_of(network), p, c)[0]
        for p, c in zip(planes_of(seen), choices, strict=True)
    ]
    old = np.asarray(exact, np.float32) + 0.3 * noise[0]
    return training.Experience(
        seen, *map(jnp.asarray, (choices, old, noise[1], 2 * noise[2], noise[3]))
    )


def oracle_loss(p, played: training.Experience, config) -> np.ndarray:
    return ppo_oracle.loss(
        p,
        planes_of(played.seen),
        np.asarray(played.choices),
        *(np.asarray(x, float) for x in (played.log_probability, played.advantage, played.returns)),
        config,
    )


@eqx.filter_jit
def _gradient(network, played):
    def loss(network):
        losses = training.ppo_loss(network, played, CONFIG)
        return losses.loss, losses

    return eqx.filter_grad(loss, has_aux=True)(network)


@pytest.mark.parametrize("actions", [pytest.param("point", marks=pytest.mark.slow), "bbox"])
def test_the_loss_and_its_gradient_are_those_of_another_hand(actions):
    _, network, played = setting(actions)
    played = part_of(played, 0)
    gradient, losses = _gradient(network, played)
    mine = parameters_of(network)
    expected = oracle_loss(mine, played, CONFIG)
    np.testing.assert_allclose(np.array(losses), expected, rtol=2e-4, atol=1e-5)
    assert 0 < expected[-1] < 1, "some are clipped, some are not"
    rng = np.random.default_rng(0)
    way = {k: rng.normal(size=v.shape) for k, v in mine.items()}
    slope = [
        oracle_loss({k: v + h * way[k] for k, v in mine.items()}, played, CONFIG)[0]
        for h in (1e-7, -1e-7)  # so near that no clip and no kink lies between
    ]
    found = sum((g * way[k]).sum() for k, g in parameters_of(gradient).items())
    np.testing.assert_allclose(found, (slope[0] - slope[1]) / 2e-7, rtol=2e-3)


def test_an_update_on_two_devices_is_adam_on_the_gradient_of_all_worlds():
    env, network, played = setting("bbox")
    devices = mesh.worlds_mesh()
    step = training.TrainStep(env.buffer, env.config, CONFIG, devices)
    memory = CONFIG.optimiser().init(eqx.filter(network, eqx.is_array))
    learn = mesh.each_device(
        lambda played, network, memory: step._learn(network, memory, played),
        devices,
        in_axes=(1, None, None),
        out_axes=None,
    )
    learned, _, _, _ = eqx.filter_jit(learn)(played, network, memory)

    def gradient_of(part: int):
        def take(parameters):
            names = [f.name for f in dataclasses.fields(network) if f.name in parameters]
            now = eqx.tree_at(
                lambda n: [getattr(n, name) for name in names],
                network,
                [jnp.asarray(parameters[name], jnp.float32) for name in names],
            )
            return parameters_of(_gradient(now, part_of(played, part))[0])

        return take

    expected = ppo_oracle.adam(
        parameters_of(network), [gradient_of(0), gradient_of(1)], 0.01, CONFIG.max_norm
    )
    for name, value in parameters_of(learned).items():
        np.testing.assert_allclose(value, expected[name], atol=2e-4, err_msg=name)


def test_draws_follow_the_probabilities():
    logits = jnp.log(jnp.array([0.5, 0.0, 0.3, 0.2]) + 1e-30)
    keys = jax.random.split(jax.random.key(0), 20_000)
    drawn = _train._draw(keys)(0, jnp.broadcast_to(logits, (20_000, 4)))
    counts = np.bincount(np.asarray(drawn), minlength=4) / 20_000
    np.testing.assert_allclose(counts, [0.5, 0.0, 0.3, 0.2], atol=0.015)
    assert counts[1] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"worlds": 10, "minibatches": 4}, "worlds=10.* multiple of 4; the nearest: 8 or 12"),
        ({"updates": 0}, "updates=0.: expected 1 or more"),
        ({"clip_ratio": 1.5}, "clip_ratio=1.5"),
        ({"discount": 2.0}, "discount=2.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, words):
    with pytest.raises(ConfigError, match=words):
        training.PPOConfig(**options)


def test_worlds_that_devices_do_not_share_are_refused(env):
    config = training.PPOConfig(worlds=4, minibatches=4)
    with pytest.raises(ConfigError, match=r"2 device.* multiple of 8; the nearest: 8"):
        training.train(env, jax.random.key(0), config=config)


def test_masks_and_test_mode_are_refused(env):
    masks = dataclasses.replace(
        env.config, action=dataclasses.replace(env.config.action, selection_format="mask")
    )
    with pytest.raises(ConfigError, match="points or boxes"):
        training.ActorCritic(masks, width=4, layers=1, key=jax.random.key(0))
    testing = dataclasses.replace(env.config.environment, episode_mode="test")
    other = dataclasses.replace(env, config=dataclasses.replace(env.config, environment=testing))
    with pytest.raises(ConfigError, match="no reward to learn from"):
        training.train(other, jax.random.key(0))
