from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.optimise import ProblemPrior, begin, look
from acbo.policy import (
    Decision,
    Features,
    GRPOConfig,
    LearnedPolicy,
    PolicyNetwork,
    advantages,
    collect,
    collect_experience,
    features,
    grpo_loss,
    grpo_with_jax_surrogate,
    log_probability,
    mode,
    train_policy,
    update_policy_grpo,
)
from acbo.surrogate import Surrogate, SurrogateConfig
from acbo.training import SurrogateTrainingConfig

CONFIG = GRPOConfig(
    group_size=3, problems=2, total_steps=2, epochs=2, variables=(3, 3), observed=4, budget=2
)


@pytest.fixture(scope="module")
def surrogate() -> Surrogate:
    sizes = SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4)
    return Surrogate(sizes, key=jax.random.key(0))


@pytest.fixture(scope="module")
def network() -> PolicyNetwork:
    """One that tries things: a sharp one would play every rollout alike, and learn nothing."""
    network = PolicyNetwork(16, hidden=8, key=jax.random.key(1))
    return eqx.tree_at(lambda network: network.sharpness, network, jnp.float32(1.0))


@pytest.fixture(scope="module")
def played(surrogate, network):
    return eqx.filter_jit(collect)(jax.random.key(2), network, surrogate, CONFIG)


@pytest.mark.slow
def test_rollouts_of_a_problem_begin_alike(played):
    assert played.reward.shape == (2, 3, 2)
    first = np.asarray(played.seen.numbers)[:, :, 0]
    np.testing.assert_array_equal(first[:, 0], first[:, 1])
    assert not np.allclose(first[0, 0], first[1, 0])
    # Values beyond the limit are cut, so worths may agree; decisions do not.
    assert len(np.unique(np.asarray(played.decision.share)[0, :, 0])) == 3


def test_curiosity_falls_with_the_budget_that_is_left(network):
    """Early the doubtful variable is tried, late the sure one is used."""
    seen = Features(
        effect=jnp.array([0.6, 0.3, 0.0]),
        doubt=jnp.array([0.0, 0.3, 0.0]),
        numbers=jnp.zeros((3, 10)),
        tokens=jnp.zeros((3, 16)),
        allowed=jnp.array([True, True, False]),
        limit=jnp.float32(3.0),
        left=jnp.float32(1.0),
    )
    assert int(mode(network(seen)).variable) == 1
    assert int(mode(network(seen._replace(left=jnp.float32(0.1)))).variable) == 0


def test_advantages_compare_within_a_group():
    reward = jax.random.normal(jax.random.key(0), (4, 5, 3))
    found = np.asarray(advantages(reward))
    np.testing.assert_allclose(found.mean(axis=1), 0.0, atol=1e-5)
    better = np.asarray(advantages(reward.at[0, 0].add(10.0)))
    assert (better[0, 0] > found[0, 0]).all()
    np.testing.assert_allclose(better[1:], found[1:], atol=1e-5)
    np.testing.assert_allclose(advantages(jnp.ones((2, 3, 4))), 0.0)


@pytest.mark.slow
def test_the_first_gradient_is_that_of_the_plain_policy_gradient(network, played):
    """Where the ratio is 1 nothing is clipped."""
    config = GRPOConfig(entropy_coeff=0.0)

    def plain(network):
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), played)
        chance = jax.vmap(log_probability)(jax.vmap(network)(flat.seen), flat.decision)
        return -(chance * advantages(played.reward).reshape(-1)).mean()

    expected = eqx.filter_jit(eqx.filter_grad(plain))(network)
    (_, _), found = eqx.filter_jit(eqx.filter_value_and_grad(grpo_loss, has_aux=True))(
        network, network, played, config
    )
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(found)) > 1e-4


@pytest.mark.slow
def test_what_moved_too_far_no_longer_counts(network, played):
    """Actions that became e^5 times likelier gain nothing more; those that were bad still lose."""
    far = played._replace(log_probability=played.log_probability - 5.0)
    good = np.asarray(advantages(played.reward)) > 0
    assert good.any()
    assert (~good).any()

    def slope(reward_of):
        config = GRPOConfig(entropy_coeff=0.0)
        found = eqx.filter_grad(lambda n: grpo_loss(n, network, reward_of, config)[0])(network)
        return max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(found))

    assert slope(far) > 0
    near = played._replace(log_probability=played.log_probability + 5.0)
    # Likelihood ratios of e^-5: bad actions are beyond the clip, good ones still pull.
    assert slope(near) > 0
    nothing = far._replace(reward=jnp.zeros_like(far.reward))
    assert slope(nothing) == 0


@pytest.mark.slow
def test_log_probability_is_a_density(network, played):
    seen = jax.tree.map(lambda leaf: leaf[0, 0, 0], played.seen)
    choice = network(seen)
    shares = jnp.linspace(-8, 8, 4001)
    total = 0.0
    for variable in range(3):
        each = jax.vmap(lambda s, v=variable: log_probability(choice, Decision(jnp.int32(v), s)))
        total += float(jnp.exp(each(shares)).sum()) * (16 / 4000) / (2 * np.pi) ** 0.5
    assert total == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_an_untrained_policy_follows_the_believed_effect(surrogate):
    network = PolicyNetwork(16, hidden=8, key=jax.random.key(3))
    problem = jax.jit(lambda key: ProblemPrior().problem(key, 4))(jax.random.key(5))
    view = look(begin(jax.random.key(6), problem, observed=30, budget=2), problem, 2)
    seen = eqx.filter_jit(features)(view, surrogate)
    big = seen._replace(effect=jnp.where(seen.allowed, jnp.asarray([3.0, -9.0, 6.0, -4.0]), 0.0))
    decision = mode(network(big))
    best = int(np.abs(np.asarray(big.effect)).argmax())
    assert int(decision.variable) == best
    assert np.sign(float(decision.share)) == np.sign(float(big.effect[best]))
    action = eqx.filter_jit(LearnedPolicy(network, surrogate))(jax.random.key(0), view)
    assert bool(view.allowed[action.variable])
    assert abs(float(action.value)) <= 3.0


@pytest.mark.slow
def test_training_changes_the_policy_and_resumes_bit_for_bit(surrogate, tmp_path):
    options: dict[str, Any] = {"config": CONFIG, "progress": False}
    whole = train_policy(jax.random.key(0), surrogate, **options)
    assert np.isfinite(np.asarray(whole.records.loss)).all()
    assert whole.records.reward.shape == (2,)
    again = train_policy(jax.random.key(0), surrogate, checkpoint=tmp_path / "policy", **options)
    for a, b in zip(
        jax.tree.leaves(whole.state.network), jax.tree.leaves(again.state.network), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    start = PolicyNetwork(16, key=jax.random.split(jax.random.key(0))[0])
    assert float(jnp.abs(whole.state.network.say.weight - start.say.weight).max()) > 0


@pytest.mark.slow
def test_learning_from_what_was_played_lowers_its_loss(surrogate, network, played):
    better = update_policy_grpo(surrogate, played, network, config=CONFIG)
    loss = eqx.filter_jit(grpo_loss)
    before, _ = loss(network, network, played, CONFIG)
    after, _ = loss(better, network, played, CONFIG)
    assert float(after) < float(before)
    again = collect_experience(network, surrogate, config=CONFIG, key=jax.random.key(2))
    np.testing.assert_allclose(again.worth, played.worth, atol=1e-5)


@pytest.mark.slow
def test_surrogate_and_policy_in_one_go():
    sizes = SurrogateTrainingConfig(
        model_hidden_dim=8, model_n_layers=2, model_n_heads=2, batch_size=4, max_epochs=3
    )
    result = grpo_with_jax_surrogate(CONFIG, sizes, progress=False)
    assert result.surrogate_run.steps == 3
    assert result.policy_run.steps == CONFIG.total_steps
    assert np.isfinite(np.asarray(result.policy_run.records.reward)).all()
    fresh = update_policy_grpo(
        result.surrogate, collect_experience(result.policy, result.surrogate, config=CONFIG)
    )
    assert isinstance(fresh, PolicyNetwork)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"group_size": 1}, "group_size=1; a group compares at least 2"),
        ({"clip_ratio": 0.0}, "clip_ratio=0.0"),
        ({"budget": 0}, "budget=0"),
    ],
)
def test_settings_that_mean_nothing(option, message):
    with pytest.raises(ValueError, match=message):
        GRPOConfig(**option)
