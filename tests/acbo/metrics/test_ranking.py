from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from acbo import metrics

# Few different scores, so that most of them tie; one length, so that one program serves all.
SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), min_size=12, max_size=12)
LABELS = st.lists(st.booleans(), min_size=12, max_size=12)
auroc = jax.jit(metrics.auroc)
average_precision = jax.jit(metrics.average_precision)
f1 = jax.jit(metrics.f1)


@given(SCORES, LABELS, LABELS)
def test_scikit_learn_agrees(scores: list, labels: list, where: list):
    arrays = [np.array(scores, np.float32), np.array(labels), np.array(where)]
    ours = [f(arrays[0], arrays[1], where=arrays[2]) for f in (auroc, average_precision, f1)]
    kept, truth = arrays[0][arrays[2]], arrays[1][arrays[2]]
    if 0 < truth.sum() < len(truth):
        assert ours[0] == pytest.approx(sklearn_metrics.roc_auc_score(truth, kept), abs=1e-6)
    else:
        assert np.isnan(ours[0])
    if truth.any():
        expected = sklearn_metrics.average_precision_score(truth, kept)
        assert ours[1] == pytest.approx(expected, abs=1e-6)
    else:
        assert np.isnan(ours[1])
    if truth.any() or (kept > 0.5).any():
        expected = sklearn_metrics.f1_score(truth, kept > 0.5, zero_division=0)
        assert ours[2] == pytest.approx(expected, abs=1e-6)
    else:
        assert np.isnan(ours[2])


def test_many_entries():
    rng = np.random.default_rng(0)
    labels = rng.random(200_000) < 0.1
    scores = (rng.normal(size=labels.size) + labels).astype(np.float32)
    ours = float(auroc(scores, labels))
    assert ours == pytest.approx(sklearn_metrics.roc_auc_score(labels, scores), abs=1e-5)


def test_infinite_scores_are_scores():
    scores = jnp.array([jnp.inf, 1.0, -jnp.inf, -jnp.inf])
    labels = jnp.array([True, False, True, False])
    assert metrics.auroc(scores, labels) == pytest.approx(0.625)


def test_the_threshold_can_be_traced():
    scores, labels = jnp.array([0.2, 0.4, 0.8]), jnp.array([False, True, True])
    thresholds = jnp.array([0.1, 0.3, 0.6, 0.9])
    found = jax.vmap(lambda t: metrics.f1(scores, labels, threshold=t))(thresholds)
    np.testing.assert_allclose(found, [0.8, 1.0, 2 / 3, 0.0], rtol=1e-6)
