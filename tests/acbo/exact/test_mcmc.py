from __future__ import annotations

from functools import partial

import bge_referee as referee
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo import exact
from acbo._errors import OptionError, SizeError
from acbo.exact._mcmc import _small_sets, small_set_scores
from acbo.exact._score import STANDARD, relative_scores


def test_scores_of_small_sets_are_those_of_the_full_table():
    values, intervened, _ = referee.generate(0, 4, 40, interventional=True)
    arrays = jnp.asarray(values), jnp.asarray(intervened)
    few = jax.jit(partial(small_set_scores, max_parents=2, bge=STANDARD))(*arrays)
    full, _ = jax.jit(partial(relative_scores, max_parents=2, bge=STANDARD))(*arrays)
    _, table = _small_sets(4, 2)
    assert len(table) == 1 + 4 + 6
    np.testing.assert_allclose(few, full[:, table @ (1 << np.arange(4))], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "tolerance"), [(1000, 0.06), pytest.param(8000, 0.03, marks=pytest.mark.slow)]
)
def test_chains_find_the_sum_over_all_orders(kept: int, tolerance: float):
    values, intervened, _ = referee.generate(3, 5, 40, interventional=False)
    found = exact.order_mcmc(
        values, intervened, key=jax.random.key(0), chains=8, kept=kept, thin=5, warm_up=200
    )
    truth = exact.marginals(values, intervened, prior="orders", max_parents=3)
    difference = np.abs(found.edge_probabilities - truth.edge_probabilities)
    assert difference.max() < tolerance
    assert np.asarray(truth.edge_probabilities).max() > 0.3
    assert found.log_weights.shape == (8, kept)
    assert (found.acceptance > 0.05).all()
    assert (found.acceptance < 1).all()
    assert difference.max() < found.disagreement


@pytest.mark.slow
def test_the_same_key_gives_the_same_chains():
    values, intervened, _ = referee.generate(3, 5, 40, interventional=False)
    runs = [
        exact.order_mcmc(
            values, intervened, key=jax.random.key(k), chains=8, kept=1000, thin=5, warm_up=200
        )
        for k in (0, 0, 1)
    ]
    assert (runs[0].chains == runs[1].chains).all()
    assert (runs[0].chains != runs[2].chains).any()


def test_bad_input():
    key = jax.random.key(0)
    with pytest.raises(SizeError, match="32 variables"):
        exact.order_mcmc(np.zeros((9, 32), np.float32), key=key)
    with pytest.raises(SizeError, match="no order"):
        exact.order_mcmc(np.zeros((9, 1), np.float32), key=key)
    with pytest.raises(OptionError, match="thin is 0; give 1 or more"):
        exact.order_mcmc(np.zeros((9, 3), np.float32), key=key, thin=0)
