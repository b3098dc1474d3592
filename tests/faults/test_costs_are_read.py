"""Issue 24, 4.3: where setting a variable costs something, policies and the oracle know."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.evaluation._entrants import GreedyOnBelief, ProcessOnBelief
from acbo.optimise import (
    GaussianProcess,
    Oracle,
    ProblemPrior,
    begin,
    best_action,
    greedy_correlation,
    linear_thompson,
    linear_ucb,
    look,
    named_problem,
    play,
)
from acbo.policy import LearnedPolicy, PolicyNetwork
from acbo.scm import Family
from acbo.surrogate import Surrogate, SurrogateConfig

KEY = jax.random.key(0)
SMALL = Surrogate(SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4), key=KEY)
POLICIES = {
    "correlation": greedy_correlation,
    "thompson": linear_thompson,
    "linear-ucb": linear_ucb,
    "gp-ei": GaussianProcess("ei"),
    "gp-ucb": GaussianProcess("ucb"),
    "greedy": GreedyOnBelief(SMALL),
    "learned-gp-ucb": ProcessOnBelief(SMALL),
    "learned": LearnedPolicy(PolicyNetwork(16, hidden=8, key=KEY), SMALL),
}


def test_no_policy_is_forgotten():
    """Two do not look at anything, on purpose: what a random and a regular choice are."""
    from acbo.evaluation import POLICIES as NAMES

    blind = {"random", "round-robin"}
    same = {"causal-gp-ei", "causal-gp-ucb", "learned-gp-ei"}  # as the others, with other edges
    assert set(NAMES) == {*POLICIES, *blind, *same, "oracle"}


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_chosen_is_left_when_it_costs_too_much(name):
    """And a small cost of everything, the same for all, changes nothing."""
    problem = named_problem("collider")
    policy = POLICIES[name]
    choose = eqx.filter_jit(lambda view: policy(jax.random.key(5), view))
    view = look(begin(jax.random.key(1), problem, observed=30, budget=3), problem, 3)
    first = int(choose(view).variable)
    dear = choose(view._replace(cost=view.cost.at[first].set(1e3)))
    assert int(dear.variable) != first
    assert bool(view.allowed[dear.variable])
    alike = choose(view._replace(cost=view.cost + 0.01))
    assert int(alike.variable) == first


@pytest.mark.parametrize("mechanism", ["linear", "fourier"])
def test_the_oracle_is_the_best_of_all_by_brute_force(mechanism):
    prior = ProblemPrior(
        family=Family(mechanism=mechanism, edges_per_variable=(1.5, 1.5)), cost=(0.0, 0.8)
    )
    draw = jax.jit(lambda key: prior.problem(key, 5))
    reach = jax.jit(lambda problem, i, x: problem.expected(i, x))
    best = jax.jit(lambda problem: best_action(problem))
    other = 0
    for seed in range(6):
        problem = draw(jax.random.key(seed))
        values = np.linspace(-float(problem.limit), float(problem.limit), 33, dtype=np.float32)
        gained = np.full((5, 33), -np.inf)
        cost, calm = np.asarray(problem.cost), float(problem.calm)
        gain = max(float(problem.best) - calm, 1e-3)
        for i in np.flatnonzero(np.asarray(problem.allowed)):
            expected = reach(problem, jnp.full(33, i, jnp.int32), jnp.asarray(values))
            gained[i] = (np.asarray(expected) - calm) / gain - cost[i]
        found = best(problem)
        place = int(np.searchsorted(values, float(found.value) - 1e-4))
        assert gained[int(found.variable), place] == pytest.approx(gained.max(), abs=1e-4)
        free = best(eqx.tree_at(lambda p: p.cost, problem, jnp.zeros(5)))
        other += int(free.variable) != int(found.variable)
    assert other > 0


def test_the_reward_of_a_step_is_worth_less_cost_and_a_view_has_the_targets_units():
    problem = named_problem("chain")
    dear = eqx.tree_at(lambda p: p.cost, problem, jnp.asarray([0.2, 0.1, 0.3, 0.0]))
    run = jax.jit(lambda key: play(key, dear, linear_ucb, observed=10, budget=4)[1])
    steps = run(KEY)
    cost = np.asarray(dear.cost)[np.asarray(steps.action.variable)]
    np.testing.assert_allclose(steps.reward, np.asarray(steps.worth) - cost, atol=1e-6)
    view = look(begin(KEY, dear, observed=5, budget=2), dear, 2)
    # The best intervention on the chain gains 4.32 of the target.
    np.testing.assert_allclose(view.cost, 4.32 * np.asarray(dear.cost), rtol=1e-4)


def test_nobody_has_a_larger_reward_than_the_oracle_and_reading_costs_pays():
    """Over problems with costs: the same policy, with and without a look at them."""
    prior = ProblemPrior(family=Family(edges_per_variable=(1.5, 1.5)), cost=(0.0, 0.8))

    def one(key):
        first, second = jax.random.split(key)
        problem = prior.problem(first, 5)

        def blind(key, view):
            return linear_ucb(key, view._replace(cost=jnp.zeros_like(view.cost)))

        return [
            play(second, problem, policy, observed=30, budget=6)[1].reward
            for policy in (Oracle(problem), linear_ucb, blind)
        ]

    oracle, reading, blind = map(np.asarray, jax.jit(jax.vmap(one))(jax.random.split(KEY, 96)))
    assert (oracle.max(axis=1) >= reading.max(axis=1) - 1e-3).all()
    assert (oracle.max(axis=1) >= blind.max(axis=1) - 1e-3).all()
    assert reading.mean() > blind.mean() + 0.02


def test_every_field_of_a_problem_prior_changes_something():
    usual = ProblemPrior()
    draw = jax.jit(lambda key, prior: prior.problem(key, 4), static_argnums=1)
    expected = jax.tree.leaves(draw(KEY, usual))
    for changed in (
        {"limit": 2.0},
        {"cost": (0.1, 0.2)},
        {"family": Family(noise_scale=(1.0, 2.0))},
    ):
        found = jax.tree.leaves(draw(KEY, dataclasses.replace(usual, **changed)))
        assert any(not np.array_equal(a, b) for a, b in zip(found, expected, strict=False))
