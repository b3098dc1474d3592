"""Losses: right where they can be checked, finite everywhere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, rel_entr

from acbo.training import (
    ParentSetPosterior,
    calibrated_loss,
    kl_divergence_loss,
    kl_divergence_loss_jax,
    uncertainty_weighted_loss,
    uncertainty_weighted_loss_jax,
)

LOSSES = [kl_divergence_loss_jax, uncertainty_weighted_loss_jax, calibrated_loss]
SETS = [frozenset(), frozenset("A"), frozenset("B"), frozenset("AB")]
# One program for all examples: value and gradient of all three.
ALL = jax.jit(
    lambda logits, probs, temperature: [
        jax.value_and_grad(loss)(logits, probs, None, temperature) for loss in LOSSES
    ]
)

any_float = st.floats(width=32, allow_nan=False, allow_infinity=True)
any_weight = st.floats(0, width=32, allow_nan=False, allow_infinity=True)


@given(
    st.lists(any_float, min_size=4, max_size=4),
    st.lists(any_weight, min_size=4, max_size=4),
    st.floats(2**-20, 2**20, width=32),
)
def test_losses_and_gradients_are_finite(logits, probs, temperature):
    found = ALL(jnp.float32(logits), jnp.float32(probs), jnp.float32(temperature))
    for loss, gradient in found:
        assert jnp.isfinite(loss)
        assert loss >= -1e-4
        assert jnp.isfinite(gradient).all()


@pytest.mark.parametrize("probs", [np.zeros(4), np.ones(4), np.eye(4)[0]])
@pytest.mark.parametrize("logit", [-np.inf, 0.0, np.inf])
def test_corners(probs, logit):
    logits = jnp.float32([logit, 0.0, 0.0, 0.0])
    for loss, gradient in ALL(logits, jnp.float32(probs), jnp.float32(1)):
        assert jnp.isfinite(loss)
        assert jnp.isfinite(gradient).all()
        if not probs.any():
            assert loss == 0


def test_nan_is_not_hidden():
    assert jnp.isnan(kl_divergence_loss_jax(jnp.float32([jnp.nan, 0]), jnp.float32([1, 0])))


@settings(max_examples=20)
@given(
    st.lists(st.floats(-5, 5, width=32), min_size=4, max_size=4),
    st.lists(st.floats(0.125, 1, width=32), min_size=4, max_size=4),
    st.floats(0.5, 2, width=32),
)
def test_against_scipy(logits, probs, temperature):
    p = np.float64(probs) / np.sum(np.float64(probs))
    log_q = log_softmax(np.float64(logits) / temperature)
    kl = rel_entr(p, np.exp(log_q)).sum()
    entropy = -(p * np.log(p)).sum()
    (plain, _), (weighted, _), (calibrated, _) = ALL(
        jnp.float32(logits), jnp.float32(probs), jnp.float32(temperature)
    )
    assert float(plain) == pytest.approx(kl, abs=2e-5)
    assert float(weighted) == pytest.approx(kl * np.exp(-entropy), abs=2e-5)
    assert float(calibrated) == pytest.approx(kl + 0.1 * ((np.exp(log_q) - p) ** 2).sum(), abs=2e-5)


def test_posteriors_and_arrays_give_the_same():
    logits = jnp.float32([0.1, 2.0, -1.0, 0.5])
    # In another order, and without one of the sets.
    posterior = ParentSetPosterior("T", [{"A", "B"}, {"A"}, set()], [0.2, 0.5, 0.3])
    probs = jnp.float32([0.3, 0.5, 0.0, 0.2])
    for named, plain in [
        (kl_divergence_loss, kl_divergence_loss_jax),
        (uncertainty_weighted_loss, uncertainty_weighted_loss_jax),
        (calibrated_loss, calibrated_loss),
    ]:
        assert named(logits, posterior, SETS, 2.0) == plain(logits, probs, SETS, 2.0)
        assert named(logits, probs, SETS) == plain(logits, probs, SETS)
    with pytest.raises(ValueError, match="needs parent_sets"):
        kl_divergence_loss(logits, posterior)


def test_a_batch_of_losses():
    logits, probs = jax.random.normal(jax.random.key(0), (5, 4)), jnp.full((5, 4), 0.25)
    found = jax.vmap(kl_divergence_loss_jax, in_axes=(0, 0, None))(logits, probs, SETS)
    one_by_one = [kl_divergence_loss_jax(logits[i], probs[i], SETS) for i in range(5)]
    np.testing.assert_allclose(found, one_by_one, rtol=1e-5)


def test_what_does_not_fit():
    two, three = jnp.zeros(2), jnp.zeros(3)
    with pytest.raises((ValueError, TypeError)):
        kl_divergence_loss_jax(two, three)
    with pytest.raises(ValueError, match="4 parent sets for 2 logits"):
        kl_divergence_loss_jax(two, two, SETS)
    with pytest.raises(ValueError, match="temperature is 0"):
        kl_divergence_loss_jax(two, two, None, 0.0)
