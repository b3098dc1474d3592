"""Each formula against a second one: quadrature, NumPy by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from acbo.optimise import (
    GaussianProcess,
    View,
    act,
    begin,
    effects,
    greedy_correlation,
    linear_thompson,
    linear_ucb,
    look,
    named_problem,
    random_policy,
    round_robin,
)
from acbo.optimise._baselines import _posterior, expected_improvement, extreme
from acbo.scm import Samples

NUMBERS = st.floats(-3, 3)


def view_of(seed: int = 0, *, allowed=(True, True, True, False), used: int = 4) -> View:
    """Twenty samples of four variables; in the last four rows one was set. The target is x3."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(24, 4)).astype(np.float32)
    x[:, 3] += 1.5 * x[:, 1]
    set_ = np.zeros((24, 4), bool)
    set_[16:20, [0, 1, 1, 2]] = np.eye(4, dtype=bool)
    rows = np.arange(24) < 20
    x[~rows] = 0
    samples = Samples(*map(jnp.asarray, (x, set_, rows, np.ones(4, bool))))
    return View(
        samples,
        jnp.int32(3),
        jnp.float32(2.5),
        jnp.asarray(allowed),
        jnp.zeros(4),
        jnp.int32(used),
        jnp.int32(8),
    )


@given(NUMBERS, st.floats(0.05, 3), NUMBERS)
@settings(max_examples=40, deadline=None)
def test_expected_improvement_against_quadrature(mean, deviation, best):
    def gain(x):
        return max(x - best, 0.0) * stats.norm.pdf(x, mean, deviation)

    edges = sorted(
        {mean - 12 * deviation, min(max(best, mean - 12 * deviation), mean + 12 * deviation)}
    )
    expected, _ = integrate.quad(gain, edges[-1], mean + 12 * deviation, limit=200)
    found = expected_improvement(jnp.float32(mean), jnp.float32(deviation), jnp.float32(best))
    assert float(found) == pytest.approx(expected, abs=2e-5 * (1 + abs(expected)) + 2e-5)
    assert float(found) >= max(mean - best, 0) - 1e-4


def by_hand(view: View):
    """`effects`, row by row."""
    x, set_, rows, _ = map(np.asarray, view.samples)
    x = x.astype(np.float64)
    y = int(view.target)
    calm = [r for r in range(len(x)) if rows[r] and not set_[r].any()]
    centre = np.mean([x[r] for r in calm], axis=0)
    scale = np.sqrt(np.mean([(x[r] - centre) ** 2 for r in calm], axis=0))
    slope, error, times, correlation = (np.zeros(x.shape[1]) for _ in range(4))
    for i in range(x.shape[1]):
        product = energy = 0.0
        for r in range(len(x)):
            if set_[r, i]:
                product += x[r, i] * (x[r, y] - centre[y])
                energy += x[r, i] ** 2
                times[i] += 1
        slope[i], error[i] = product / (energy + 1), scale[y] / np.sqrt(energy + 1)
        together = np.mean([(x[r, i] - centre[i]) * (x[r, y] - centre[y]) for r in calm])
        correlation[i] = together / scale[i] / scale[y]
    return slope, error, times, correlation, scale, centre


@pytest.mark.parametrize("seed", range(3))
def test_effects_against_a_loop(seed):
    view = view_of(seed)
    for found, expected in zip(jax.jit(effects)(view), by_hand(view), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def at_the_end(effect: np.ndarray, gained: np.ndarray, view: View) -> tuple[int, float]:
    gained = np.where(np.asarray(view.allowed), gained - np.asarray(view.cost), -np.inf)
    place = int(gained.argmax())
    return place, float(view.limit) * (1 if effect[place] >= 0 else -1)


@pytest.mark.parametrize("seed", range(4))
def test_linear_policies_against_their_formulas(seed):
    view, key = view_of(seed), jax.random.key(seed)
    view = view._replace(cost=jnp.asarray([0.0, 0.4, 0.1, 0.0]))
    slope, error, _, correlation, scale, _ = by_hand(view)
    limit = float(view.limit)
    drawn = slope + error * np.asarray(jax.random.normal(key, (4,)))
    hope = np.abs(slope) + error
    for policy, effect, gained in (
        (linear_ucb, slope, hope * limit),
        (linear_thompson, drawn, np.abs(drawn) * limit),
        (greedy_correlation, correlation, np.abs(correlation) * scale[3]),
    ):
        action = jax.jit(policy)(key, view)
        variable, value = at_the_end(effect, gained, view)
        assert (int(action.variable), float(action.value)) == (variable, pytest.approx(value))


def test_the_end_that_helps_of_the_largest_that_may_be_set():
    view = view_of(allowed=(True, False, True, False))
    action = extreme(jnp.asarray([0.2, 5.0, -0.7, 9.0]), view)
    assert (int(action.variable), float(action.value)) == (2, -2.5)
    action = extreme(jnp.asarray([0.2, -5.0, 0.1, -9.0]), view)
    assert (int(action.variable), float(action.value)) == (0, 2.5)


def test_round_robin_takes_turns_among_what_may_be_set():
    for used, variable in ((0, 0), (1, 2), (2, 0), (3, 2), (7, 2)):
        view = view_of(allowed=(True, False, True, False), used=used)
        action = jax.jit(round_robin)(jax.random.key(0), view)
        slope = by_hand(view)[0][variable]
        assert (int(action.variable), float(action.value)) == (variable, 2.5 * np.sign(slope))


def test_random_actions_are_even_over_variables_and_values():
    view = view_of(allowed=(True, False, True, False))
    keys = jax.random.split(jax.random.key(0), 2000)
    actions = jax.jit(jax.vmap(lambda key: random_policy(key, view)))(keys)
    variable, value = np.asarray(actions.variable), np.asarray(actions.value)
    assert set(variable) == {0, 2}
    assert np.mean(variable == 2) == pytest.approx(0.5, abs=0.05)
    assert stats.kstest(value, stats.uniform(-2.5, 5.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize("acquisition", ["ei", "ucb"])
@pytest.mark.parametrize("seed", range(4))
def test_the_process_chooses_what_its_acquisition_says(acquisition, seed):
    """Over all variables and values, with the posterior that scikit-learn agrees on."""
    view = view_of(seed)._replace(cost=jnp.asarray([0.3, 0.0, 0.1, 0.0]))
    _, _, _, _, scale, centre = by_hand(view)
    x, set_, _, _ = map(np.asarray, view.samples)
    y = x[:, 3] - centre[3]
    grid = np.linspace(-2.5, 2.5, 13)
    cost = np.asarray(view.cost)
    tried = set_.any(axis=1)
    best = max(y[r] - cost[set_[r]].sum() for r in np.flatnonzero(tried))
    scores = np.full((4, 13), -np.inf)
    for i in range(3):
        arrays = (x[:, i], y, set_[:, i])
        spread = scale[3] ** 2
        mean, deviation = _posterior(
            *(jnp.asarray(a, jnp.float32) for a in arrays),
            jnp.float32(0.0),
            jnp.float32(4 * spread),
            jnp.float32(2.5),
            jnp.float32(spread),
            jnp.asarray(grid, jnp.float32),
        )
        mean, deviation = np.asarray(mean) - cost[i], np.asarray(deviation)
        if acquisition == "ucb":
            scores[i] = mean + deviation
        else:
            z = (mean - best) / deviation
            scores[i] = (mean - best) * stats.norm.cdf(z) + deviation * stats.norm.pdf(z)
    action = jax.jit(GaussianProcess(acquisition))(jax.random.key(0), view)
    place = int(np.abs(grid - float(action.value)).argmin())
    assert scores[int(action.variable), place] == pytest.approx(scores.max(), abs=1e-4)


def test_before_anything_was_set_improvement_is_over_nothing():
    """The best so far is then the mean, 0; not minus infinity, and not the largest of noise."""
    view = view_of()
    samples = view.samples._replace(intervened=jnp.zeros((24, 4), bool))
    action = jax.jit(GaussianProcess("ei"))(jax.random.key(0), view._replace(samples=samples))
    assert bool(view.allowed[action.variable])
    assert abs(float(action.value)) <= 2.5


def test_a_move_is_written_into_the_next_row():
    problem = named_problem("chain")
    game = begin(jax.random.key(0), problem, observed=5, budget=2)
    view = look(game, problem, 2)
    assert int(view.used) == 0
    assert int(view.budget) == 2
    assert int(view.samples.rows.sum()) == 5
    action = linear_ucb(jax.random.key(1), view)
    after, step = jax.jit(act)(jax.random.key(2), game, action, problem)
    mask = np.asarray(after.samples.intervened)
    assert mask.sum() == 1
    assert mask[5, int(action.variable)]
    assert float(after.samples.values[5, action.variable]) == float(action.value)
    np.testing.assert_array_equal(after.samples.values[:5], game.samples.values[:5])
    assert int(after.used) == 1
    assert float(step.seen) == float(after.samples.values[5, int(problem.target)])


def test_health_in_the_units_of_its_publication():
    """The mechanisms again, in plain Python: every cause is the one that is named."""
    problem = named_problem("health")
    names, d = problem.names, len(problem.names)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    rng = np.random.default_rng(0)
    raw = {
        "age": rng.uniform(55, 75, 50),
        "BMI": rng.uniform(24, 30, 50),
        "aspirin": rng.uniform(0, 1, 50),
        "statin": rng.uniform(0, 1, 50),
        "cancer": rng.uniform(0, 1, 50),
    }
    a, b, p, s, c = raw.values()
    expected = {
        "BMI": 27 - 0.01 * a,
        "aspirin": sigmoid(-8 + 0.10 * a + 0.03 * b),
        "statin": sigmoid(-13 + 0.10 * a + 0.20 * b),
        "cancer": sigmoid(2.2 - 0.05 * a + 0.01 * b - 0.04 * s + 0.02 * p),
        "PSA": 6.8 + 0.04 * a - 0.15 * b - 0.60 * s + 0.55 * p + c,
    }
    low, high = np.asarray(problem.low), np.asarray(problem.high)
    units = 2 * float(problem.limit) / (high - low)
    for name, values in expected.items():
        place = names.index(name)
        do = np.zeros((d, 50), np.float32)
        set_ = np.zeros((d, 50), bool)
        for cause, column in raw.items():
            j = names.index(cause)
            if cause != name:
                do[j] = (column - (low[j] + high[j]) / 2) * units[j]
                set_[j] = True
        pushed = problem.scm.push(jnp.zeros((d, 50)), jnp.asarray(set_), jnp.asarray(do))[place]
        found = problem.reading(pushed) if name == "PSA" else problem.natural(place, pushed)
        np.testing.assert_allclose(found, values, rtol=2e-4, atol=2e-4, err_msg=name)
