from __future__ import annotations

import itertools
from functools import partial

import bge_referee as referee
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import multigammaln

from acbo import exact
from acbo._errors import DataError, OptionError, SizeError
from acbo.exact._score import STANDARD, as_data, relative_scores

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=10)
@given(SEEDS)
def test_scores_are_the_density_of_the_data_row_by_row(seed: int):
    values, intervened, _ = referee.generate(seed, 3, 30, interventional=True)
    ours = np.asarray(exact.local_scores(values, intervened))
    theirs = referee.all_scores(values, intervened)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)


def test_the_density_of_one_variable_is_an_integral_over_mean_and_precision():
    values = np.array([0.3, -1.1, 0.4])
    alpha_mu, alpha_w, scale = 1.0, 3.0, 0.5
    mean, precision = np.linspace(-12, 12, 2001)[:, None], np.linspace(0, 60, 6001)[None, 1:]
    # One precision: a gamma variable of shape alpha_w / 2 and rate scale / 2.
    density = stats.gamma(alpha_w / 2, scale=2 / scale).pdf(precision)
    density = density * np.sqrt(alpha_mu * precision / (2 * np.pi))
    density = density * np.exp(-alpha_mu * precision * mean**2 / 2)
    for value in values:
        density *= np.sqrt(precision / (2 * np.pi)) * np.exp(-precision * (value - mean) ** 2 / 2)
    total = integrate.trapezoid(integrate.trapezoid(density, precision, axis=1), mean[:, 0])
    ours = exact.local_scores(values[:, None])[0, 0]
    assert ours == pytest.approx(np.log(total), abs=1e-3)


def closed_form(values: np.ndarray, parents: list[int], j: int, total: int) -> float:
    """Kuipers, Moffa and Heckerman (2014), equations 4, 9 and 10, in float64."""
    alpha_mu, alpha_w = 1.0, total + 2.0
    t = alpha_mu * (alpha_w - total - 1) / (alpha_mu + 1)
    n = len(values)

    def of(chosen: list[int]) -> float:
        size = len(chosen)
        if size == 0:
            return 0.0
        x = values[:, chosen].astype(float)
        mean = x.mean(0)
        r = t * np.eye(size) + (x - mean).T @ (x - mean)
        r += n * alpha_mu / (n + alpha_mu) * np.outer(mean, mean)
        freedom = alpha_w - total + size
        return (
            size / 2 * np.log(alpha_mu / (n + alpha_mu))
            + multigammaln((n + freedom) / 2, size)
            - multigammaln(freedom / 2, size)
            - size * n / 2 * np.log(np.pi)
            + freedom / 2 * size * np.log(t)
            - (n + freedom) / 2 * np.linalg.slogdet(r)[1]
        )

    return of([*parents, j]) - of(parents)


def test_float32_keeps_what_parent_sets_differ_by_in_a_hundred_thousand_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100_000, 1))
    values = np.concatenate([x, x + rng.normal(size=x.shape), rng.normal(size=x.shape)], axis=1)
    values = (values / values.std(0) + 3).astype(np.float32)
    scores = jax.jit(partial(relative_scores, max_parents=None, bge=STANDARD))
    relative, alone = scores(jnp.asarray(values), jnp.zeros(values.shape, bool))
    empty = closed_form(values, [], 2, 3)
    # About -140,000; the edge 0 -> 2 does not exist, and costs a few.
    assert float(alone[2]) == pytest.approx(empty, rel=2e-5)
    for s, parents in ((1, [0]), (2, [1]), (3, [0, 1])):
        expected = closed_form(values, parents, 2, 3) - empty
        assert abs(expected) < 25
        assert float(relative[2, s]) == pytest.approx(expected, abs=0.05)


@given(SEEDS)
def test_equivalent_graphs_have_equal_observational_scores(seed: int):
    values, _, _ = referee.generate(seed, 4, 30, interventional=False)
    table = np.asarray(exact.local_scores(values)).astype(float)
    classes: dict[tuple, list[float]] = {}
    for graph in exact.enumerate_dags(4):
        skeleton = graph | graph.T
        colliders = tuple(
            (i, j, k)
            for j in range(4)
            for i, k in itertools.combinations(np.flatnonzero(graph[:, j]), 2)
            if not skeleton[i, k]
        )
        score = referee.graph_score(table, graph)
        classes.setdefault((skeleton.tobytes(), colliders), []).append(score)
    assert len(classes) == 185  # the Markov equivalence classes of four variables
    assert max(max(scores) - min(scores) for scores in classes.values()) < 5e-3


@pytest.mark.parametrize("where", ["cause", "effect"])
def test_interventions_direct_an_edge(where: str):
    rng = np.random.default_rng(1)
    n = 200
    cause, noise = rng.normal(size=n), 0.6 * rng.normal(size=n)
    intervened = np.zeros((n, 2), bool)
    intervened[: n // 2, 0 if where == "cause" else 1] = True
    setting = rng.choice([-2.0, 2.0], n)
    cause = np.where(intervened[:, 0], setting, cause)
    effect = np.where(intervened[:, 1], setting, 0.8 * cause + noise)
    values = np.stack([cause, effect], axis=1).astype(np.float32)
    table = np.asarray(exact.local_scores(values, intervened))
    forwards, backwards = table[0, 0] + table[1, 1], table[1, 0] + table[0, 2]
    assert forwards > backwards + 10


def test_a_variable_that_was_always_set_says_nothing():
    values, intervened, _ = referee.generate(0, 3, 30, interventional=True)
    intervened[:, 1] = True
    scores = exact.local_scores(values, intervened)[1]
    np.testing.assert_allclose(scores[~exact.parent_set_table(3)[:, 1]], 0, atol=1e-5)


def test_rows_in_which_all_is_set_are_padding():
    values, intervened, _ = referee.generate(0, 3, 30, interventional=True)
    padded = np.concatenate([values, np.full((9, 3), 7.5, np.float32)])
    mask = np.concatenate([intervened, np.ones((9, 3), bool)])
    np.testing.assert_allclose(
        exact.local_scores(padded, mask), exact.local_scores(values, intervened), atol=2e-4
    )


def test_impossible_sets_have_no_density():
    values, _, _ = referee.generate(0, 3, 30, interventional=False)
    scores = np.asarray(exact.local_scores(values, max_parents=1))
    own = exact.parent_set_table(3).T
    many = exact.parent_set_table(3).sum(1) > 1
    assert (np.isneginf(scores) == (own | many)).all()


def test_scores_of_many_data_sets_at_once():
    sets = [referee.generate(seed, 3, 30, interventional=True) for seed in range(3)]
    values, intervened = (np.stack([one[k] for one in sets]) for k in range(2))
    together = jax.vmap(exact.local_scores)(values, intervened)
    for one, scores in zip(sets, together, strict=True):
        np.testing.assert_allclose(scores, exact.local_scores(*one[:2]), rtol=1e-5)


def test_other_priors():
    values, _, _ = referee.generate(5, 2, 15, interventional=False)
    ours = exact.local_scores(values, bge=exact.BGe(mean_strength=0.3, degrees=4.5))
    theirs = referee.log_density(values, mean_strength=0.3, degrees=4.5)
    assert ours[0, 0] + ours[1, 1] == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize("options", [{"mean_strength": 0.0}, {"degrees": 1.0}])
def test_priors_that_are_none(options: dict):
    with pytest.raises(OptionError, match=next(iter(options))):
        exact.BGe(**options)


def test_bad_input():
    with pytest.raises(SizeError, match="13 variables"):
        exact.local_scores(np.zeros((20, 13), np.float32))
    with pytest.raises(DataError, match="no rows"):
        exact.local_scores(np.zeros((0, 2), np.float32))
    with pytest.raises(DataError, match=r"intervened has the shape \(4, 2\), values has \(5, 2\)"):
        as_data.__wrapped__(np.zeros((5, 2), np.float32), np.zeros((4, 2), bool), 5)  # pyright: ignore
    with pytest.raises(OptionError, match="max_parents is -1"):
        exact.local_scores(np.zeros((5, 2), np.float32), max_parents=-1)
