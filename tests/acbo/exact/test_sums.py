from __future__ import annotations

import itertools
import math

import bge_referee as referee
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo import exact
from acbo._errors import SizeError
from acbo.exact._prior import Prior
from acbo.exact._score import IMPOSSIBLE
from acbo.exact._sums import log_sum_graphs, log_sum_orders


def count_dags(d: int) -> int:
    """Robinson's recurrence, in whole numbers."""
    counts = [1]
    for n in range(1, d + 1):
        counts.append(
            sum(
                (-1) ** (k + 1) * math.comb(n, k) * 2 ** (k * (n - k)) * counts[n - k]
                for k in range(1, n + 1)
            )
        )
    return counts[d]


@pytest.mark.parametrize("d", [1, 4, 8])
def test_without_scores_graphs_are_counted(d: int):
    own = exact.parent_set_table(d).T
    nothing = jnp.where(jnp.asarray(own), IMPOSSIBLE, 0.0)
    # More digits than float32 has: the logarithm is compared, and it is a sum of rounded ones.
    assert float(jax.jit(log_sum_graphs)(nothing)) == pytest.approx(
        math.log(count_dags(d)), abs=1e-3
    )
    orders = math.factorial(d) * 2 ** (d * (d - 1) // 2)
    assert float(jax.jit(log_sum_orders)(nothing)) == pytest.approx(math.log(orders), abs=1e-3)


@pytest.mark.parametrize("prior", ["uniform", "orders"])
@pytest.mark.parametrize("interventional", [False, True])
def test_sums_agree_with_the_list_of_all_graphs(prior: Prior, interventional: bool):
    values, intervened, _ = referee.generate(11, 4, 30, interventional=interventional)
    options = {"prior": prior, "edge_probability": 0.3}
    ours = exact.marginals(values, intervened, **options)
    listed = exact.graph_posterior(values, intervened, **options)
    np.testing.assert_allclose(ours.parent_sets, listed.parent_sets, atol=1e-4)
    np.testing.assert_allclose(ours.edge_probabilities, listed.edge_probabilities, atol=1e-4)


def test_order_sums_agree_with_every_order_by_itself():
    values, intervened, _ = referee.generate(4, 4, 30, interventional=True)
    table = np.asarray(exact.local_scores(values, intervened, max_parents=2)).astype(float)
    weights, edges = [], []
    for order in itertools.permutations(range(4)):
        total, chances = 0.0, np.zeros((4, 4))
        for place, j in enumerate(order):
            before = sum(1 << i for i in order[:place])
            sets = [s for s in range(16) if s & ~before == 0]
            log_sum = np.logaddexp.reduce(table[j, sets])
            total += log_sum
            for i in order[:place]:
                with_i = [s for s in sets if s >> i & 1]
                chances[i, j] = np.exp(np.logaddexp.reduce(table[j, with_i]) - log_sum)
        weights.append(total)
        edges.append(chances)
    share = np.exp(weights - np.logaddexp.reduce(weights))
    ours = exact.marginals(values, intervened, prior="orders", max_parents=2)
    np.testing.assert_allclose(
        ours.edge_probabilities, np.einsum("o,oij->ij", share, edges), atol=1e-4
    )


@pytest.mark.parametrize("prior", ["uniform", "orders"])
def test_five_variables_of_which_one_is_absent(prior: Prior):
    values, intervened, _ = referee.generate(6, 4, 30, interventional=True)
    here = np.array([True, True, False, True, True])
    padded, mask = np.ones((30, 5), np.float32), np.zeros((30, 5), bool)
    padded[:, here], mask[:, here] = values, intervened
    ours = exact.marginals(padded, mask, variables=here, prior=prior).edge_probabilities
    listed = exact.graph_posterior(values, intervened, prior=prior).edge_probabilities
    np.testing.assert_allclose(ours[here][:, here], listed, atol=2e-4)
    assert float(ours[~here].sum() + ours[:, ~here].sum()) < 1e-4


def test_parent_sets_are_probabilities_for_many_data_sets_at_once():
    sets = [referee.generate(seed, 4, 30, interventional=True) for seed in range(3)]
    values, intervened = (np.stack([one[k] for one in sets]) for k in range(2))
    together = jax.vmap(exact.marginals)(values, intervened)
    assert together.parent_sets.shape == (3, 4, 16)
    np.testing.assert_allclose(together.parent_sets.sum(-1), 1, rtol=1e-5)
    alone = exact.marginals(values[1], intervened[1])
    np.testing.assert_allclose(together.edge_probabilities[1], alone.edge_probabilities, atol=1e-4)


def test_there_is_a_limit():
    with pytest.raises(SizeError, match="13 variables; this method takes 1 to 12"):
        exact.marginals(np.zeros((20, 13), np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["uniform", "orders"])
@pytest.mark.parametrize("n", [100, 1000])
def test_how_well_edges_of_ten_variables_are_found(prior: Prior, n: int):
    from acbo.metrics import edge_auroc

    found = []
    for seed in range(20):
        values, intervened, graph = referee.generate(seed, 10, n, interventional=True)
        chances = exact.marginals(values, intervened, prior=prior)
        np.testing.assert_allclose(chances.parent_sets.sum(-1), 1, rtol=1e-4)
        found.append(float(edge_auroc(chances.edge_probabilities, jnp.asarray(graph))))
    assert np.nanmean(found) > 0.99
