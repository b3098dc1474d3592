"""The evidence of smooth causes, against SciPy's multivariate t distribution."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from acbo.scm import Family, Samples, standardise
from acbo.surrogate import _evidence, local_evidence


@pytest.fixture(scope="module")
def evidence():
    return jax.jit(local_evidence)


def waves(x: np.ndarray) -> np.ndarray:
    parts = [np.ones_like(x)]
    for k in (1, 2):
        parts += [np.cos(0.75 * k * x), np.sin(0.75 * k * x)]
    return np.stack(parts, axis=1)


def log_evidence(y: np.ndarray, causes: list[np.ndarray]) -> float:
    """The density of `y` under the regression, from its definition: a t distribution."""
    features, variance = np.ones((len(y), 1)), np.ones(1)
    order = np.array([0, 1, 1, 2, 2])
    for x in causes:
        features = (features[:, :, None] * waves(x)[:, None, :]).reshape(len(y), -1)
        variance = np.outer(variance, np.exp(-0.5 * (order * 0.75 * 1.2) ** 2)).reshape(-1)
    shape = np.eye(len(y)) + 8.0 * (features * variance) @ features.T
    return multivariate_t.logpdf(y, shape=0.15 * shape, df=2.0)


def by_definition(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Gain of each single cause, and the log odds of each cause over sets of up to two."""
    x = np.asarray(samples.values, np.float64)
    rows, set_ = np.asarray(samples.rows), np.asarray(samples.intervened)
    size = int(samples.variables.sum())
    gain, odds = np.zeros((size, size)), np.zeros((size, size))
    for j in range(size):
        here = rows & ~set_[:, j]
        others = [i for i in range(size) if i != j]
        none = log_evidence(x[here, j], [])
        scores = {
            s: log_evidence(x[here, j], [x[here, i] for i in s]) - none - 1.5 * len(s)
            for count in (0, 1, 2)
            for s in itertools.combinations(others, count)
        }
        for i in others:
            gain[i, j] = scores[(i,)] + 1.5
            with_it = logsumexp([v for s, v in scores.items() if i in s])
            odds[i, j] = with_it - logsumexp([v for s, v in scores.items() if i not in s])
    return gain, odds


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_it_is_the_evidence_of_the_regressions(evidence, share):
    family = Family(mechanism="fourier")
    study = family.study(jax.random.key(3), 5, 40, size=4, rows=33, interventional=share)
    told = np.asarray(evidence(study.samples))
    gain, odds = by_definition(study.samples)
    free = (np.asarray(study.samples.rows)[:, None] & ~np.asarray(study.samples.intervened)).sum(0)
    off = ~np.eye(4, dtype=bool)
    found = told[:4, :4, 1] * free[None, :4]
    np.testing.assert_allclose(found[off], gain[off], rtol=1e-3, atol=2e-2)
    small = off & (np.abs(odds) < 40)
    assert small.sum() >= 4
    np.testing.assert_allclose(20 * np.arctanh(told[:4, :4, 3])[small], odds[small], atol=0.1)


def test_padding_and_the_diagonal_say_nothing(evidence):
    study = Family().study(jax.random.key(0), 5, 40, size=3, rows=20)
    told = np.asarray(evidence(study.samples))
    assert np.isfinite(told).all()
    assert not told[3:].any()
    assert not told[:, 3:].any()
    assert not told[np.arange(5), np.arange(5)].any()


def test_a_wave_times_a_wave_is_a_sum_of_waves():
    x = np.linspace(-3, 3, 17)
    many = [np.ones_like(x)]
    for k in range(1, 5):
        many += [np.cos(0.75 * k * x), np.sin(0.75 * k * x)]
    products = np.einsum("abp,pn->nab", _evidence._products(), np.stack(many))
    np.testing.assert_allclose(products, waves(x)[:, :, None] * waves(x)[:, None, :], atol=1e-12)


@pytest.mark.parametrize("largest", [4.0, 100.0, 60_000.0])
def test_cosine_and_sine_are_those_of_numpy(largest):
    x = np.random.default_rng(0).uniform(-largest, largest, 20_001).astype(np.float32)
    cos, sin = jax.jit(_evidence._cos_sin)(x)
    np.testing.assert_allclose(cos, np.cos(x.astype(np.float64)), atol=1e-6)
    np.testing.assert_allclose(sin, np.sin(x.astype(np.float64)), atol=1e-6)


def test_samples_far_from_the_others_leave_numbers():
    """One sample of 5,000 that is almost all there is of the variance."""
    x = jax.random.normal(jax.random.key(0), (5000, 4)).at[17].mul(1e5)
    samples = Samples(x, jnp.zeros((5000, 4), bool), jnp.ones(5000, bool), jnp.ones(4, bool))
    assert jnp.isfinite(jax.jit(local_evidence)(standardise(samples))).all()


def test_variables_that_are_nearly_copies_leave_numbers():
    """Their regressions have hardly anything of their own left after rounding."""
    first = jax.random.normal(jax.random.key(0), (1000, 1))
    noise = jax.random.normal(jax.random.key(1), (1000, 8))
    x = first + jnp.asarray([1e-4, 1e-3, 1e-2, 0.1, 0.1, 0.2, 0.2, 1.0])[None, :] * noise
    samples = Samples(x, jnp.zeros((1000, 8), bool), jnp.ones(1000, bool), jnp.ones(8, bool))
    assert jnp.isfinite(jax.jit(local_evidence)(standardise(samples))).all()


def test_two_variables_have_no_pairs_of_causes():
    study = Family().study(jax.random.key(0), 2, 40)
    told = np.asarray(
        jax.jit(jax.vmap(local_evidence))(jax.tree.map(lambda x: x[None], study.samples))
    )
    assert told.shape == (1, 2, 2, 5)
    assert np.isfinite(told).all()
    assert told[0, 0, 1].any()
