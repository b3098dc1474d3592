"""GRPO against loops in NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.policy import Decision, Features, GRPOConfig, PolicyNetwork, advantages, grpo_loss
from acbo.policy._grpo import Experience
from acbo.policy._network import Choice, divergence, entropy, log_probability, mode

RNG = np.random.default_rng(0)


def test_advantages_against_a_loop():
    reward = RNG.normal(size=(3, 4, 5)).astype(np.float32)
    found = np.asarray(advantages(jnp.asarray(reward)))
    for p in range(3):
        whole = [sum(reward[p, g]) / 5 for g in range(4)]
        for t in range(5):
            ahead = [sum(reward[p, g, t:]) / 5 for g in range(4)]
            for g in range(4):
                told = [
                    (each[g] - np.mean(each)) / (np.std(each) + 1e-2) for each in (whole, ahead)
                ]
                assert found[p, g, t] == pytest.approx(sum(told) / 2, abs=1e-4)


def test_a_small_difference_counts_as_much_as_a_large_one():
    """It is divided by the group's deviation, not by one and the deviation."""
    reward = jnp.asarray(RNG.normal(size=(2, 6, 1)), jnp.float32)
    large = np.asarray(advantages(100 * reward))
    assert large.std(axis=1) == pytest.approx(np.ones((2, 1)), abs=1e-2)
    np.testing.assert_allclose(advantages(10 * reward), large, atol=1e-2)


def numbers(*shape: int) -> Features:
    n = int(np.prod(shape)) if shape else 1

    def draw(*more: int) -> jnp.ndarray:
        return jnp.asarray(RNG.normal(size=(n, *more)).reshape(*shape, *more), jnp.float32)

    return Features(
        draw(3),
        jnp.abs(draw(3)),
        draw(3, 10),
        draw(3, 4),
        jnp.ones((*shape, 3), bool),
        jnp.full(shape, 3.0),
        jnp.full(shape, 0.5),
        jnp.zeros((*shape, 3)),
    )


def test_the_loss_against_a_loop():
    network = PolicyNetwork(4, hidden=4, key=jax.random.key(0))
    network = jax.tree.map(lambda leaf: 0.3 * leaf, network)
    seen = numbers(2, 3, 2)
    variable = jnp.asarray(RNG.integers(0, 3, (2, 3, 2)), jnp.int32)
    share = jnp.asarray(RNG.normal(size=(2, 3, 2)), jnp.float32)
    old = jnp.asarray(RNG.normal(size=(2, 3, 2)) - 1, jnp.float32)
    reward = jnp.asarray(RNG.normal(size=(2, 3, 2)), jnp.float32)
    played = Experience(seen, Decision(variable, share), old, reward, reward)
    config = GRPOConfig(clip_ratio=0.2, entropy_coeff=0.05, kl_penalty_coeff=0.1)
    other = jax.tree.map(lambda leaf: 0.5 * leaf, network)
    loss, spread = jax.jit(lambda n, r, p: grpo_loss(n, r, p, config))(network, other, played)

    advantage = np.asarray(advantages(reward))
    gains, entropies, apart, clipped = [], [], [], 0
    for p, g, t in np.ndindex(2, 3, 2):
        here = jax.tree.map(lambda leaf, at=(p, g, t): leaf[at], seen)
        logits = np.asarray(network(here).logits, np.float64)
        chance = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        theirs = np.asarray(other(here).logits, np.float64)
        theirs = np.exp(theirs - theirs.max()) / np.exp(theirs - theirs.max()).sum()
        which, centre = int(variable[p, g, t]), np.asarray(network(here).centre)
        wide = float(network(here).spread)
        gap = (float(share[p, g, t]) - centre[which]) / wide
        now = np.log(chance[which]) - gap**2 / 2 - np.log(wide)
        ratio = np.exp(now - float(old[p, g, t]))
        held = min(max(ratio, 0.8), 1.2)
        clipped += ratio != held
        gains.append(min(ratio * advantage[p, g, t], held * advantage[p, g, t]))
        entropies.append(-(chance * np.log(chance)).sum())
        apart.append((chance * np.log(chance / theirs)).sum())
    assert clipped > 2
    assert float(spread) == pytest.approx(np.mean(entropies), abs=1e-4)
    expected = -np.mean(gains) - 0.05 * np.mean(entropies) + 0.1 * np.mean(apart)
    assert float(loss) == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_a_choice_by_hand():
    logits = jnp.asarray([1.0, 0.0, -1e9])
    choice = Choice(logits, jnp.asarray([0.5, -0.25, 0.0]), jnp.float32(0.5))
    chance = np.array([np.e, 1.0]) / (np.e + 1)
    assert float(entropy(choice)) == pytest.approx(-(chance * np.log(chance)).sum(), rel=1e-5)
    assert float(divergence(choice, choice)) == 0
    told = float(log_probability(choice, Decision(jnp.int32(1), jnp.float32(0.25))))
    assert told == pytest.approx(np.log(chance[1]) - 0.5 - np.log(0.5), rel=1e-5)
    best = mode(choice)
    assert (int(best.variable), float(best.share)) == (0, 0.5)
