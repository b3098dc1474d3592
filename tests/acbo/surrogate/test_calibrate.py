"""A temperature undoes a known distortion."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.scm import Family
from acbo.surrogate import Surrogate, SurrogateConfig, best_temperature, calibrated


@pytest.mark.parametrize("bold", [0.5, 1.0, 2.0])
def test_the_temperature_is_how_much_too_bold_the_log_odds_are(bold):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2.0, size=(400, 5, 5))
    edges = rng.uniform(size=logits.shape) < 1 / (1 + np.exp(-logits))
    found = best_temperature(
        jnp.asarray(bold * logits, jnp.float32), jnp.asarray(edges), jnp.ones((400, 5), bool)
    )
    assert float(found) == pytest.approx(bold, rel=0.08)


def test_padding_has_no_say():
    logits = jnp.full((8, 3, 3), 5.0)
    edges = jnp.zeros((8, 3, 3), bool).at[:, 0, 1].set(True).at[:, 1, 0].set(True)
    variables = jnp.broadcast_to(jnp.asarray([True, True, False]), (8, 3))
    assert float(best_temperature(logits, edges, variables)) == pytest.approx(0.25)


@pytest.mark.slow
def test_a_calibrated_network_divides_its_log_odds_and_nothing_else():
    network = Surrogate(SurrogateConfig(hidden=8, blocks=2, heads=2), key=jax.random.key(0))
    study = jax.jit(jax.vmap(lambda key: Family().study(key, 3, 16)))(
        jax.random.split(jax.random.key(1), 16)
    )
    new, temperature = eqx.filter_jit(calibrated)(network, study.scm.graph, study.samples)
    one = jax.tree.map(lambda leaf: leaf[0], study.samples)
    before, after = (eqx.filter_jit(net)(one) for net in (network, new))
    assert float(temperature) != 1.0
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(
        after.edge_logits[off], before.edge_logits[off] / temperature, rtol=1e-5
    )
    np.testing.assert_allclose(after.cause_scores, before.cause_scores, rtol=1e-6)
