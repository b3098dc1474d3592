from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from acbo import metrics

CHAIN = jnp.eye(4, k=1, dtype=bool)
edge_metrics = jax.jit(metrics.edge_metrics)
shd = jax.jit(metrics.shd)


def test_edges_are_ranked_off_the_diagonal():
    rng = np.random.default_rng(0)
    probabilities = rng.random((4, 4)).astype(np.float32)
    off = ~np.eye(4, dtype=bool)
    expected = sklearn_metrics.roc_auc_score(np.asarray(CHAIN)[off], probabilities[off])
    edge_auroc = jax.jit(metrics.edge_auroc)
    assert edge_auroc(jnp.asarray(probabilities), CHAIN) == pytest.approx(expected)
    assert np.isnan(edge_auroc(jnp.asarray(probabilities), jnp.zeros((4, 4), bool)))


def test_absent_variables_do_not_count():
    rng = np.random.default_rng(1)
    small, graph = rng.random((3, 3)).astype(np.float32), np.eye(3, k=1, dtype=bool)
    padded, padded_graph = np.full((5, 5), np.nan, np.float32), np.zeros((5, 5), bool)
    here = np.array([True, False, True, True, False])
    padded[np.ix_(here, here)], padded_graph[np.ix_(here, here)] = small, graph
    alone = edge_metrics(jnp.asarray(small), jnp.asarray(graph))
    ours = edge_metrics(jnp.asarray(padded), jnp.asarray(padded_graph), variables=jnp.asarray(here))
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(
    ("changed", "distance"),
    [
        ([], 0),
        ([(0, 1)], 1),  # one too few
        ([(0, 3)], 1),  # one too many
        ([(0, 1), (1, 0)], 1),  # one turned around
        ([(0, 1), (1, 0), (3, 1)], 2),
    ],
)
def test_distance(changed: list, distance: int):
    other = np.array(CHAIN)
    for place in changed:
        other[place] = ~other[place]
    assert shd(CHAIN, jnp.asarray(other)) == distance
    assert shd(jnp.asarray(other), CHAIN) == distance


def test_all_measures_of_many_graphs_at_once():
    rng = np.random.default_rng(2)
    probabilities = jnp.asarray(rng.random((6, 4, 4)), jnp.float32)
    graphs = jnp.asarray(np.triu(rng.random((6, 4, 4)) < 0.5, 1))
    found = jax.jit(jax.vmap(metrics.edge_metrics))(probabilities, graphs)
    assert found.auroc.shape == (6,)
    off = ~np.eye(4, dtype=bool)
    said, truth = np.asarray(probabilities)[3][off], np.asarray(graphs)[3][off]
    assert found.auroc[3] == pytest.approx(sklearn_metrics.roc_auc_score(truth, said))
    assert found.average_precision[3] == pytest.approx(
        sklearn_metrics.average_precision_score(truth, said)
    )
    assert found.f1[3] == pytest.approx(sklearn_metrics.f1_score(truth, said > 0.5))
    assert found.shd[3] == shd(probabilities[3] > 0.5, graphs[3])
    places = np.clip((said * 10).astype(int), 0, 9)
    gaps = [abs((said - truth)[places == k].sum()) for k in range(10)]
    assert found.calibration_error[3] == pytest.approx(sum(gaps) / 12, rel=1e-5)
