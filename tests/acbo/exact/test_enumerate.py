from __future__ import annotations

import bge_referee as referee
import jax
import numpy as np
import pytest

from acbo import exact
from acbo._errors import OptionError, SizeError
from acbo.exact._prior import Prior
from acbo.metrics import edge_auroc


@pytest.mark.parametrize(("d", "count"), [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281)])
def test_the_number_of_graphs(d: int, count: int):
    graphs = exact.enumerate_dags(d)
    assert graphs.shape == (count, d, d)
    assert len(np.unique(graphs.reshape(count, -1), axis=0)) == count
    assert not graphs[0].any()


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_graphs_are_those_that_networkx_finds(d: int):
    ours = {graph.tobytes() for graph in exact.enumerate_dags(d)}
    assert ours == {graph.tobytes() for graph in referee.dags(d)}


def test_graphs_of_five_are_acyclic():
    graphs = exact.enumerate_dags(5).astype(np.int64)
    power = graphs
    for _ in range(4):
        power = power @ graphs
    assert (power == 0).all()


@pytest.mark.parametrize("d", [0, 6])
def test_there_is_a_limit(d: int):
    with pytest.raises(SizeError, match=f"d is {d}"):
        exact.enumerate_dags(d)


def test_the_table_is_shared_and_read_only():
    with pytest.raises(ValueError, match="read-only"):
        exact.enumerate_dags(3)[0, 0, 1] = True


@pytest.mark.parametrize("prior", ["uniform", "orders"])
def test_the_posterior_is_that_of_every_graph_by_itself(prior: Prior):
    values, intervened, _ = referee.generate(3, 3, 30, interventional=True)
    found = exact.graph_posterior(values, intervened, prior=prior, edge_probability=0.3)
    table = referee.all_scores(values, intervened)
    graphs = exact.enumerate_dags(3)
    total = np.array([referee.graph_score(table, g) for g in graphs])
    total += graphs.sum((1, 2)) * np.log(0.3 / 0.7)
    if prior == "orders":
        total += np.log([referee.orders_that_fit(g) for g in graphs])
    expected = np.exp(total - np.logaddexp.reduce(total))
    np.testing.assert_allclose(found.probabilities, expected, atol=2e-5)
    np.testing.assert_allclose(
        found.edge_probabilities, np.einsum("g,gij->ij", expected, graphs), atol=2e-5
    )
    for j in range(3):
        sets = graphs[:, :, j] @ (1 << np.arange(3))
        np.testing.assert_allclose(
            found.parent_sets[j], np.bincount(sets, expected, minlength=8), atol=2e-5
        )
    assert (found.most_likely == graphs[expected.argmax()]).all()


def without_data(d: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((30, d), np.float32), np.ones((30, d), bool)


def test_without_data_the_posterior_is_the_prior():
    graphs = exact.enumerate_dags(4)
    uniform = exact.graph_posterior(*without_data(4))
    np.testing.assert_allclose(uniform.probabilities, 1 / 543, rtol=1e-4)
    orders = exact.graph_posterior(*without_data(4), prior="orders", edge_probability=0.2)
    odds = 0.25 ** graphs.sum((1, 2)) * [referee.orders_that_fit(g) for g in graphs]
    np.testing.assert_allclose(orders.probabilities, odds / odds.sum(), rtol=1e-3)
    # An order first, then each edge that fits with probability 0.2.
    edges = np.asarray(orders.edge_probabilities)
    np.testing.assert_allclose(edges[~np.eye(4, dtype=bool)], 0.1, rtol=1e-3)
    limited = exact.graph_posterior(*without_data(4), max_parents=1)
    few = graphs.sum(1).max(1) <= 1
    np.testing.assert_allclose(limited.probabilities, few / few.sum(), atol=1e-6)


@pytest.mark.slow
def test_probabilities_sum_to_one_for_many_data_sets_at_once():
    sets = [referee.generate(seed, 4, 30, interventional=True) for seed in range(4)]
    values, intervened = (np.stack([one[k] for one in sets]) for k in range(2))
    together = jax.vmap(exact.graph_posterior)(values, intervened)
    np.testing.assert_allclose(together.probabilities.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(together.parent_sets.sum(-1), 1, rtol=1e-5)
    for k in range(4):
        alone = exact.graph_posterior(values[k], intervened[k])
        np.testing.assert_allclose(
            together.edge_probabilities[k], alone.edge_probabilities, atol=1e-5
        )
        np.testing.assert_allclose(together.parent_sets[k], alone.parent_sets, atol=1e-5)
        assert (together.most_likely[k] == alone.most_likely).all()


def test_absent_variables_change_nothing():
    values, intervened, _ = referee.generate(2, 3, 30, interventional=True)
    padded = np.insert(values, 1, np.linspace(-1, 1, 30, dtype=np.float32), axis=1)
    mask = np.insert(intervened, 1, False, axis=1)
    here = np.array([True, False, True, True])
    found = exact.graph_posterior(padded, mask, variables=here).edge_probabilities
    alone = exact.graph_posterior(values, intervened).edge_probabilities
    np.testing.assert_allclose(found[here][:, here], alone, atol=1e-5)
    assert not found[1].any()
    assert not found[:, 1].any()


def test_the_order_of_the_columns_does_not_matter():
    values, intervened, _ = referee.generate(7, 4, 30, interventional=True)
    order = np.array([2, 0, 3, 1])
    straight = np.asarray(exact.graph_posterior(values, intervened).edge_probabilities)
    turned = exact.graph_posterior(values[:, order], intervened[:, order]).edge_probabilities
    np.testing.assert_allclose(turned, straight[order][:, order], atol=1e-4)


def test_bad_options():
    values, intervened = without_data(3)
    with pytest.raises(OptionError, match="prior is 'flat'"):
        exact.graph_posterior.__wrapped__(values, intervened, prior="flat")  # pyright: ignore
    with pytest.raises(OptionError, match=r"edge_probability is 1\.0"):
        exact.graph_posterior(values, intervened, edge_probability=1.0)
    with pytest.raises(SizeError, match="6 variables; this method takes 1 to 5"):
        exact.graph_posterior(np.zeros((9, 6), np.float32))


def test_steady_state_compiles_nothing(no_recompile):
    values, intervened, _ = referee.generate(0, 3, 30, interventional=True)
    exact.graph_posterior(values, intervened, edge_probability=0.1)
    other, mask, _ = referee.generate(1, 3, 30, interventional=True)
    with no_recompile():
        exact.graph_posterior(other, mask, edge_probability=0.4)


@jax.jit
def aurocs(values: jax.Array, intervened: jax.Array, graphs: jax.Array) -> jax.Array:
    def of(one: tuple) -> jax.Array:
        return edge_auroc(exact.graph_posterior(*one[:2]).edge_probabilities, one[2])

    return jax.lax.map(of, (values, intervened, graphs))


@pytest.mark.parametrize(
    ("interventional", "low", "high"), [(True, 0.99, 1.0), (False, 0.83, 0.93)]
)
def test_how_well_edges_are_found(interventional: bool, low: float, high: float):
    sets = [referee.generate(seed, 5, 100, interventional=interventional) for seed in range(40)]
    found = aurocs(*(np.stack([one[k] for one in sets]) for k in range(3)))
    assert low <= np.nanmean(found) <= high
