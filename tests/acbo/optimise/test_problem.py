from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.optimise import (
    Action,
    Oracle,
    ProblemPrior,
    act,
    begin,
    believed_effects,
    best_action,
    effects,
    look,
    outcome_edges,
    path_effects,
    play,
    random_policy,
)
from acbo.scm import Family, Samples


def total_effects(problem) -> np.ndarray:
    """Effects on the target of setting each variable, by linear algebra."""
    weights = np.asarray(problem.scm.mechanism.weights, np.float64)
    return np.linalg.inv(np.eye(len(weights)) - weights)[int(problem.target)]


def test_the_best_of_a_linear_problem_is_an_end_of_the_largest_effect(problem):
    effect = total_effects(problem)
    effect[int(problem.target)] = 0
    assert float(problem.calm) == 0.0
    assert float(problem.best) == pytest.approx(3.0 * np.abs(effect).max(), rel=1e-5)
    action = best_action(problem)
    assert int(action.variable) == np.abs(effect).argmax()
    assert float(action.value) == pytest.approx(3.0 * np.sign(effect[int(action.variable)]))
    assert float(problem.worth(problem.best)) == pytest.approx(1.0)


def test_expected_values_and_what_may_be_set(problem):
    effect = total_effects(problem)
    variable = jnp.asarray([0, 1, 2, 3, 4], jnp.int32)
    value = jnp.asarray([1.0, -2.0, 0.5, 3.0, -1.0])
    target = int(problem.target)
    expected = np.where(np.arange(5) == target, value, effect[:5] * np.asarray(value))
    np.testing.assert_allclose(problem.expected(variable, value), expected, atol=1e-5)
    assert not bool(problem.allowed[target])
    assert not bool(problem.allowed[5])


@pytest.mark.slow
def test_expected_values_of_a_bent_model_agree_with_many_samples():
    prior = ProblemPrior(family=Family(mechanism="fourier", edges_per_variable=(1.5, 1.5)))
    problem = jax.jit(lambda key: prior.problem(key, 4))(jax.random.key(1))
    action = best_action(problem)
    n = 20_000
    chosen = jnp.arange(4) == action.variable
    seen = problem.scm.sample(
        jax.random.key(2),
        n,
        intervened=jnp.broadcast_to(chosen, (n, 4)),
        do=jnp.full((n, 4), action.value),
    )[:, problem.target]
    # The problem's own mean is over 64 noises.
    scatter = float(seen.std()) / 8
    assert abs(float(seen.mean()) - float(problem.best)) < 4 * scatter


def test_an_intervention_adds_one_sample(problem):
    game = begin(jax.random.key(0), problem, observed=4, budget=3)
    assert int(game.samples.rows.sum()) == 4
    source = int(best_action(problem).variable)
    game, step = act(jax.random.key(1), game, Action(jnp.int32(source), jnp.float32(99.0)), problem)
    values, intervened, rows, _ = map(np.asarray, game.samples)
    assert rows.tolist() == [True] * 5 + [False] * 2
    assert intervened.sum() == 1
    assert intervened[4, source]
    assert values[4, source] == pytest.approx(3.0), "values beyond the limit are cut"
    assert float(step.seen) == pytest.approx(values[4, int(problem.target)])
    assert abs(float(step.worth)) == pytest.approx(1.0)
    assert int(game.used) == 1


def test_best_is_the_largest_worth_so_far(problem):
    run = jax.jit(lambda key: play(key, problem, random_policy, observed=4, budget=6))
    _, steps = run(jax.random.key(5))
    np.testing.assert_allclose(steps.best, np.maximum.accumulate(np.asarray(steps.worth)))
    assert (np.asarray(steps.worth) <= 1 + 1e-5).all()


def test_policies_see_neither_the_model_nor_the_answer(problem):
    game = begin(jax.random.key(0), problem, observed=4, budget=3)
    view = look(game, problem, 3)
    assert set(view._fields) == {
        "samples",
        "target",
        "limit",
        "allowed",
        "cost",
        "used",
        "budget",
    }


@pytest.mark.slow
def test_the_oracle_is_always_best_and_chance_is_nothing():
    prior = ProblemPrior()

    def one(key):
        first, second = jax.random.split(key)
        problem = prior.problem(first, 4)
        _, best = play(second, problem, Oracle(problem), observed=3, budget=4)
        _, chance = play(second, problem, random_policy, observed=3, budget=4)
        return best.worth, chance.worth

    best, chance = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 256))
    has = np.asarray(best).max(axis=1) > 0.5
    assert has.mean() > 0.85
    np.testing.assert_allclose(np.asarray(best)[has], 1.0, atol=1e-4)
    assert abs(np.asarray(chance).mean()) < 0.08


def test_direct_effects_are_ridge_slopes(problem):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 6)).astype(np.float32)
    set_ = np.zeros((30, 6), bool)
    set_[20:26, 1] = True
    rows = np.arange(30) < 28
    game = begin(jax.random.key(0), problem, observed=27, budget=3)
    samples = Samples(*map(jnp.asarray, (values, set_, rows)), game.samples.variables)
    view = look(game, problem, 3)._replace(samples=samples)
    found = effects(view)
    calm = rows & ~set_.any(axis=1)
    y = values[:, int(problem.target)] - values[calm, int(problem.target)].mean()
    x = values[20:26, 1]
    assert float(found.slope[1]) == pytest.approx(
        (x * y[20:26]).sum() / ((x**2).sum() + 1), rel=1e-4
    )
    np.testing.assert_allclose(found.times_set, set_.sum(axis=0))
    np.testing.assert_allclose(found.scale, values[calm].std(axis=0), rtol=1e-4)
    expected = [np.corrcoef(values[calm, i], y[calm])[0, 1] for i in range(6)]
    np.testing.assert_allclose(found.correlation, expected, atol=1e-4)


def test_path_effects_of_the_true_graph_are_the_total_effects(problem):
    game = begin(jax.random.key(7), problem, observed=4000, budget=1)
    edges = problem.scm.graph.edges.astype(jnp.float32)
    guess = np.asarray(jax.jit(path_effects)(look(game, problem, 1), edges))
    truth = total_effects(problem)
    others = np.arange(6) != int(problem.target)
    np.testing.assert_allclose(guess[others], truth[others], atol=0.12)
    assert np.abs(truth[others]).max() > 0.5


@pytest.fixture(scope="module")
def believed():
    return jax.jit(lambda view, edges: believed_effects(jax.random.key(0), view, edges))


@pytest.fixture(scope="module")
def well_known(problem):
    """A view with so many samples that the graph is all that can be in doubt."""
    return look(begin(jax.random.key(7), problem, observed=4000, budget=1), problem, 1)


def test_a_sure_graph_leaves_little_doubt_about_effects(problem, believed, well_known):
    edges = problem.scm.graph.edges.astype(jnp.float32)
    sure = believed(well_known, edges)
    others = np.asarray(problem.allowed)
    np.testing.assert_allclose(
        np.asarray(sure.mean)[others], total_effects(problem)[others], atol=0.12
    )
    causes = problem.scm.graph.edges[:, problem.target]
    unsure = believed(well_known, edges.at[:, problem.target].multiply(0.5))
    assert (unsure.deviation >= sure.deviation - 1e-6).all()
    assert (np.asarray(unsure.deviation)[np.asarray(causes)] > 2 * sure.deviation.min()).all()


def test_what_setting_has_shown_outlives_a_wrong_belief(problem, believed, well_known):
    """The target is seen at 1.5 whenever a variable is set to 3; the graph says: no effect."""
    variable = int(np.flatnonzero(np.asarray(problem.allowed))[0])
    rows = jnp.arange(4001) < 400
    here = rows[:, None] & (jnp.arange(6) == variable)[None, :]
    at_target = rows[:, None] & (jnp.arange(6) == problem.target)[None, :]
    values = jnp.where(here, 3.0, jnp.where(at_target, 1.5, well_known.samples.values))
    samples = well_known.samples._replace(values=values, intervened=here)
    told = believed(well_known._replace(samples=samples), jnp.zeros((6, 6)))
    before = believed(well_known, jnp.zeros((6, 6)))
    centre = float(effects(well_known._replace(samples=samples)).centre[problem.target])
    assert float(told.mean[variable]) == pytest.approx((1.5 - centre) / 3, rel=0.1)
    assert float(told.deviation[variable]) < 0.5 * float(before.deviation[variable])
    assert float(before.mean[variable]) == pytest.approx(0.0, abs=0.02)


def test_edges_of_an_outcome_are_those_of_the_graphs_in_which_it_is_one(problem, well_known):
    """By enumeration: each pair is one way, the other or none, independent of other pairs."""
    y, allowed = int(problem.target), np.asarray(problem.allowed)
    others = np.flatnonzero(allowed)
    rng = np.random.default_rng(0)
    edges = rng.uniform(0.02, 0.45, (6, 6)) * (1 - np.eye(6))
    total, causes = 0.0, np.zeros(6)
    for drawn in itertools.product((0, 1), repeat=len(others)):  # none, or a cause: no effects
        ways = [
            edges[i, y] if c else 1 - edges[i, y] - edges[y, i]
            for i, c in zip(others, drawn, strict=True)
        ]
        if any(drawn):
            total += np.prod(ways)
            causes[others] += np.prod(ways) * np.array(drawn)
    found = np.asarray(jax.jit(outcome_edges)(well_known, jnp.asarray(edges, jnp.float32)))
    np.testing.assert_allclose(found[:, y], causes / total, rtol=1e-4)
    assert (found[y] == 0).all()
    rest = np.ix_(others, others)
    np.testing.assert_allclose(found[rest], edges[rest], rtol=1e-6)


def test_a_sure_cause_stays_sure_and_nothing_is_a_cause_where_nothing_may_be_set(well_known):
    edges = jnp.zeros((6, 6)).at[:, well_known.target].set(1.0)
    sure = outcome_edges(well_known, edges)[:, well_known.target]
    np.testing.assert_allclose(np.asarray(sure)[np.asarray(well_known.allowed)], 1.0, rtol=1e-5)
    nobody = well_known._replace(allowed=jnp.zeros(6, bool))
    assert (outcome_edges(nobody, edges)[:, well_known.target] == 0).all()


def test_what_is_no_game(problem):
    with pytest.raises(ValueError, match="observed=1"):
        begin(jax.random.key(0), problem, observed=1, budget=1)
    with pytest.raises(ValueError, match="budget=0"):
        begin(jax.random.key(0), problem, observed=5, budget=0)
