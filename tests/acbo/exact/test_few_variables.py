"""Chains of orders over so few variables that all orders can be summed: quick, and right."""

from __future__ import annotations

import bge_referee as referee
import jax
import numpy as np
import pytest

from acbo import exact


@pytest.mark.parametrize("d", [2, 3])
def test_chains_of_few_variables_find_the_sum_over_all_orders(d: int):
    values, intervened, _ = referee.generate(3, d, 6, interventional=True)
    found = exact.order_mcmc(
        values, intervened, key=jax.random.key(0), chains=8, kept=500, thin=2, warm_up=20
    )
    truth = exact.marginals(values, intervened, prior="orders", max_parents=min(3, d - 1))
    np.testing.assert_allclose(found.edge_probabilities, truth.edge_probabilities, atol=0.04)
    # The orders differ in weight, so a chain that stays at its start is wrong.
    edges = np.asarray(truth.edge_probabilities)
    assert np.abs(edges - edges.T).max() > 0.2
    assert found.log_weights.shape == (8, 500)
    assert ((found.acceptance > 0) & (found.acceptance < 1)).all()
    apart = np.abs(np.asarray(found.chains) - np.asarray(found.edge_probabilities))
    assert float(found.disagreement) == pytest.approx(apart.max())
