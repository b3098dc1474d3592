from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from acbo import metrics
from acbo._errors import OptionError

reliability = jax.jit(metrics.reliability, static_argnames="bins")
calibration_error = jax.jit(metrics.expected_calibration_error)


def test_the_table_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    said = rng.random(500).astype(np.float32)
    came = rng.random(500) < said**2
    table = reliability(jnp.asarray(said), jnp.asarray(came), bins=5)
    observed, predicted = calibration_curve(came, said, n_bins=5)
    np.testing.assert_allclose(table.observed, observed, rtol=1e-5)
    np.testing.assert_allclose(table.predicted, predicted, rtol=1e-5)
    assert table.count.tolist() == np.histogram(said, 5, (0, 1))[0].tolist()
    gap = np.abs(observed - predicted) @ np.asarray(table.count) / 500
    assert table.error == pytest.approx(gap, rel=1e-4)
    assert gap > 0.05


def test_honest_probabilities_have_a_small_error():
    rng = np.random.default_rng(1)
    said = rng.random((100, 200)).astype(np.float32)
    came = rng.random(said.shape) < said
    assert calibration_error(jnp.asarray(said), jnp.asarray(came)) < 0.02
    assert calibration_error(jnp.asarray(said), jnp.asarray(~came)) > 0.4


def test_the_truth_may_be_a_probability():
    said = jnp.array([0.15, 0.15, 0.85])
    error = calibration_error(said, jnp.array([0.1, 0.3, 0.85]))
    assert error == pytest.approx(2 / 3 * 0.05, abs=1e-6)


def test_borders_and_empty_bins():
    table = reliability(jnp.array([0.0, 0.5, 1.0]), jnp.array([False, True, True]), bins=2)
    assert table.count.tolist() == [1, 2]
    assert table.edges.tolist() == [0, 0.5, 1]
    alone = reliability(jnp.array([0.9]), jnp.array([True]), bins=2)
    assert np.isnan(alone.predicted[0])
    assert alone.error == pytest.approx(0.1)


def test_what_does_not_count_may_be_nan():
    said, where = jnp.array([0.25, jnp.nan]), jnp.array([True, False])
    error = calibration_error(said, jnp.array([True, True]), where=where)
    assert error == pytest.approx(0.75)
    nothing = calibration_error(said, jnp.array([True, True]), where=jnp.zeros(2, bool))
    assert np.isnan(nothing)


def test_bad_options():
    with pytest.raises(OptionError, match="bins is 0"):
        reliability(jnp.array([0.5]), jnp.array([True]), bins=0)
