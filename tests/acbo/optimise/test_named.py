"""The named problems against equations written once more, in NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo._errors import OptionError
from acbo.optimise import (
    PROBLEMS,
    GaussianProcess,
    Oracle,
    greedy_correlation,
    linear_thompson,
    linear_ucb,
    named_problem,
    play,
    random_policy,
    round_robin,
)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def chain(do, e):
    a = do.get("A", e())
    b = do.get("B", 1.5 * a + e())
    c = do.get("C", -1.2 * b + e())
    return 0.8 * c + e()


def fork(do, e):
    z = do.get("Z", e())
    do.get("X", 2 * z + 0.3 * e())
    return z + e()


def collider(do, e):
    a, b = do.get("A", e()), do.get("B", e())
    do.get("S", 1.5 * a - 1.8 * b + 0.5 * e())
    return 0.8 * a - 1.2 * b + e()


def toy(do, e):
    x = do.get("X", e())
    z = do.get("Z", np.exp(-x) + e())
    return np.cos(z) - np.exp(-z / 20) + e()


def complete(do, e):
    u1, u2, f = e(), e(), e()
    a = f**2 + u1 + e()
    b = do.get("B", u2 + e())
    c = np.exp(-b) + e()
    d = do.get("D", np.exp(-c) / 10 + e())
    h = do.get("E", np.cos(a) + c / 10 + e())
    return np.cos(d) - d / 5 + np.sin(h) - h / 4 + u1 + np.exp(-u2) + e()


def health(do, e):
    age = 65 + 20 / np.sqrt(12) * e()
    bmi = 27 - 0.01 * age + 0.7 * e()
    aspirin = do.get("aspirin", sigmoid(-8 + 0.1 * age + 0.03 * bmi))
    statin = do.get("statin", sigmoid(-13 + 0.1 * age + 0.2 * bmi))
    cancer = sigmoid(2.2 - 0.05 * age + 0.01 * bmi - 0.04 * statin + 0.02 * aspirin)
    mean = 6.8 + 0.04 * age - 0.15 * bmi - 0.6 * statin + 0.55 * aspirin + cancer
    return mean + 0.4 * e()


# The equations, the ranges of what may be set, and whether the target is to be large.
REFEREES = {
    "chain": (chain, {"A": (-3, 3), "B": (-3, 3), "C": (-3, 3)}, True),
    "fork": (fork, {"Z": (-3, 3), "X": (-3, 3)}, True),
    "collider": (collider, {"A": (-3, 3), "B": (-3, 3), "S": (-3, 3)}, True),
    "toy": (toy, {"X": (-5, 5), "Z": (-5, 20)}, False),
    "complete": (complete, {"B": (-5, 4), "D": (-5, 5), "E": (-6, 3)}, False),
    "health": (health, {"aspirin": (0, 1), "statin": (0, 1)}, False),
}
SAMPLES = 10_000


def sampled(function, do) -> np.ndarray:
    """Samples of the target; the same noise for every intervention."""
    rng = np.random.default_rng(7)
    return function(do, lambda: rng.normal(size=SAMPLES))


def test_there_is_a_referee_for_each():
    assert set(REFEREES) == set(PROBLEMS)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimum_is_that_of_a_brute_force_search(name):
    function, ranges, large = REFEREES[name]
    problem = named_problem(name)
    calm = sampled(function, {})
    scatter = 5 * calm.std() / np.sqrt(SAMPLES)
    assert float(problem.reading(problem.calm)) == pytest.approx(calm.mean(), abs=scatter)

    settable = {n for n, may in zip(problem.names, problem.settable, strict=True) if may}
    assert settable == set(ranges)
    tried = {
        (variable, value): sampled(function, {variable: value}).mean()
        for variable, (low, high) in ranges.items()
        for value in np.linspace(low, high, 49)
    }
    variable, value = (max if large else min)(tried, key=lambda at: tried[at])
    ours = int(problem.optimum.variable)
    assert problem.names[ours] == variable
    low, high = ranges[variable]
    natural = float(problem.natural(ours, problem.optimum.value))
    assert natural == pytest.approx(value, abs=(high - low) / 48)
    best = sampled(function, {variable: natural})
    scatter = 5 * best.std() / np.sqrt(SAMPLES)
    assert float(problem.reading(problem.best)) == pytest.approx(best.mean(), abs=scatter)


def check_the_model(name):
    """Its samples, expectations and graph are those of the referee."""
    function, ranges, _ = REFEREES[name]
    problem = named_problem(name)
    d = len(problem.names)

    @jax.jit
    def answers(variable, value, noise):
        expected = problem.expected(variable, value)
        moved = jax.vmap(lambda j: problem.scm.push(noise, at_one(j), jnp.ones_like(noise)))
        return expected, problem.scm.push(problem.noise)[-1].mean(), moved(jnp.arange(d))

    def at_one(j):
        return jnp.broadcast_to((jnp.arange(d) == j)[:, None], (d, 1))

    places = {n: problem.names.index(n) for n in ranges}
    variable = jnp.asarray([j for j in places.values() for _ in range(5)], jnp.int32)
    value = jnp.tile(jnp.linspace(-3.0, 3.0, 5), len(places))
    index = jnp.append(variable, problem.optimum.variable)
    expected, calm, moved = answers(
        index, jnp.append(value, problem.optimum.value), 0.3 * jnp.ones((d, 1))
    )
    assert float(calm) == pytest.approx(float(problem.calm), abs=1e-4)
    assert float(expected[-1]) == pytest.approx(float(problem.best), abs=1e-4)
    assert float(expected.max()) <= float(problem.best) + 1e-4
    for n, u, found in zip(np.repeat(list(places), 5), value, expected, strict=False):
        low, high = ranges[n]
        seen = sampled(function, {str(n): low + (high - low) * (float(u) + 3) / 6})
        assert float(problem.reading(found)) == pytest.approx(seen.mean(), abs=0.05 * seen.std())

    # Setting a variable changes its descendants, and nothing else.
    still = np.asarray(problem.scm.push(0.3 * jnp.ones((d, 1))))[:, 0]
    edges = np.asarray(problem.scm.graph.edges, float)
    reach = np.linalg.inv(np.eye(d) - edges) > 0.5
    changed = ~np.isclose(np.asarray(moved)[:, :, 0], still[None, :], atol=1e-6)
    np.testing.assert_array_equal(changed | np.eye(d, dtype=bool), reach)


def test_the_model_of_the_toy_chain_is_that_of_the_referee():
    check_the_model("toy")


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in PROBLEMS if n != "toy"])
def test_the_model_is_that_of_the_referee(name):
    check_the_model(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_policy_plays(name):
    problem = named_problem(name)
    policies = (
        random_policy,
        round_robin,
        greedy_correlation,
        linear_thompson,
        linear_ucb,
        GaussianProcess(),
        GaussianProcess("ei", problem.scm.graph.edges),
        Oracle(problem),
    )

    @jax.jit
    def all_of_them(key):
        return [play(key, problem, policy, observed=12, budget=4)[1] for policy in policies]

    played = all_of_them(jax.random.key(0))
    settable = np.asarray(problem.settable)
    for steps in played:
        assert settable[np.asarray(steps.action.variable)].all()
        assert (np.asarray(steps.worth) <= 1 + 1e-3).all()
        assert np.isfinite(np.asarray(steps.seen)).all()
    # The oracle chooses among 33 values a variable.
    assert float(played[-1].best[-1]) > 0.97


@pytest.mark.slow
def test_play_takes_a_named_problem():
    problem = named_problem("fork")
    run = jax.jit(lambda key: play(key, problem, linear_ucb, observed=12, budget=6)[1])
    steps = run(jax.random.key(0))
    assert set(np.asarray(steps.action.variable).tolist()) <= {0, 1}
    # X goes with Y more than Z does, and is worth nothing.
    worth = np.asarray(steps.worth)
    np.testing.assert_allclose(worth[np.asarray(steps.action.variable) == 1], 0.0, atol=1e-6)
    assert float(steps.best[-1]) == pytest.approx(1.0)


def test_a_name_that_is_none():
    with pytest.raises(OptionError, match="'fork2'; the named problems are chain, fork"):
        named_problem("fork2")
