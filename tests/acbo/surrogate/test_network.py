from __future__ import annotations

import dataclasses
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acbo.scm import Graph, Samples
from acbo.surrogate import (
    Prediction,
    Surrogate,
    SurrogateConfig,
    _layers,
    acyclicity_penalty,
    candidate_sets,
    edge_loss,
    pair_statistics,
    parent_set_logits,
    parent_set_loss,
)

SIZES = SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4)


@pytest.fixture(scope="module")
def predict(small):
    return eqx.filter_jit(small)


def test_permuting_variables_permutes_the_answer(predict, table):
    order = np.array([2, 0, 3, 1])
    moved = table._replace(values=table.values[:, order], intervened=table.intervened[:, order])
    base, turned = predict(table), predict(moved)
    for name in ("edge_logits", "cause_scores", "cause_pairs", "tokens"):
        expected = np.asarray(getattr(base, name))[order][:, order]
        np.testing.assert_allclose(getattr(turned, name), expected, atol=2e-4)
    off = ~np.eye(4, dtype=bool)
    assert np.asarray(base.edge_logits)[off].std() > 1e-4


def test_the_order_of_samples_does_not_matter(predict, table):
    order = np.random.default_rng(0).permutation(40)
    moved = table._replace(values=table.values[order], intervened=table.intervened[order])
    np.testing.assert_allclose(predict(moved).edge_logits, predict(table).edge_logits, atol=2e-4)


def test_padding_changes_nothing(predict, small, table):
    wide = Samples(
        jnp.zeros((50, 6)).at[:40, :4].set(table.values),
        jnp.zeros((50, 6), bool).at[:40, :4].set(table.intervened),
        jnp.arange(50) < 40,
        jnp.arange(6) < 4,
    )
    base, padded = predict(table), eqx.filter_jit(small)(wide)
    np.testing.assert_allclose(padded.edge_logits[:4, :4], base.edge_logits, atol=2e-4)
    np.testing.assert_allclose(padded.cause_pairs[:4, :4], base.cause_pairs, atol=2e-4)
    assert (np.asarray(padded.edge_logits)[4:] < -20).all()
    assert (np.asarray(padded.edge_logits)[:, 4:] < -20).all()
    assert (np.diagonal(np.asarray(base.edge_logits)) < -20).all()


@pytest.mark.parametrize("cached", [1, 2**17], ids=["a table at a time", "all at once"])
def test_a_batch_is_its_tables_one_by_one(small, table, cached, monkeypatch):
    monkeypatch.setattr(_layers, "_CACHED", cached)
    samples = jax.tree.map(lambda *leaves: jnp.stack(leaves), *batch_of_three(table))

    def of(predict):
        def loss(network):
            prediction = predict(network)(samples)
            return (prediction.edge_logits.mean() + prediction.cause_pairs.mean()), prediction

        (_, prediction), gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss, has_aux=True))(
            small
        )
        return prediction, gradient

    batch, alone = of(lambda network: network.many), of(jax.vmap)
    for a, b in zip(jax.tree.leaves(batch), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3 * np.abs(b).max())
    assert np.abs(batch[1].moments.first.weight).max() > 0
    assert np.asarray(batch[0].edge_logits[1] - batch[0].edge_logits[0]).std() > 1e-4


def batch_of_three(table: Samples) -> list[Samples]:
    fewer = table._replace(rows=jnp.arange(40) < 17, variables=jnp.arange(4) < 3)
    return [table, table._replace(values=-table.values[:, ::-1]), fewer]


def test_sizes_up_to_the_maximum_compile_once(predict, table, no_recompile):
    fewer = table._replace(rows=jnp.arange(40) < 17, variables=jnp.arange(4) < 3)
    jax.block_until_ready(predict(table))
    with no_recompile():
        jax.block_until_ready(predict(fewer))


@pytest.mark.slow
def test_bfloat16_says_about_the_same(small, table, predict):
    sizes = dataclasses.replace(SIZES, compute_dtype="bfloat16")
    other = Surrogate(sizes, key=jax.random.key(0))
    half = jax.tree.unflatten(jax.tree.structure(other), jax.tree.leaves(small))
    found = eqx.filter_jit(half)(table).edge_logits
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, predict(table).edge_logits, atol=0.1)
    assert not np.allclose(found, predict(table).edge_logits, atol=1e-7)


def test_statistics_against_numpy(table):
    found = np.asarray(jax.jit(pair_statistics)(table), np.float64)
    x, m, _, _ = (np.asarray(part, np.float64) for part in table)
    calm = m.max(axis=1) == 0
    np.testing.assert_allclose(found[..., 0], x[calm].T @ x[calm] / calm.sum(), atol=1e-4)
    precision = np.linalg.inv(x.T @ x / 40 + 0.03 * np.eye(4))
    scale = np.sqrt(np.diag(precision))
    np.testing.assert_allclose(found[..., 2], -precision / np.outer(scale, scale), atol=1e-3)
    for j in range(4):
        free = m[:, j] == 0
        others = [i for i in range(4) if i != j]
        gram = x[free].T @ x[free] / free.sum() + 0.03 * np.eye(4)
        slope = np.linalg.solve(gram[np.ix_(others, others)], gram[others, j])
        np.testing.assert_allclose(found[others, j, 4], 2 * np.tanh(slope / 2), atol=1e-3)
    for i in range(4):
        set_ = m[:, i] == 1
        for j in range(4):
            if i != j:
                effect = (x[set_, i] * x[set_, j]).sum() / ((x[set_, i] ** 2).sum() + 0.5)
                assert found[i, j, 5] == pytest.approx(2 * np.tanh(effect / 2), abs=1e-3)
    assert np.isfinite(found).all()


def test_statistics_of_interventions_against_numpy(table):
    found = np.asarray(jax.jit(pair_statistics)(table), np.float64)
    x, m, _, _ = (np.asarray(part, np.float64) for part in table)
    eye = np.eye(4)
    energy, times = (m * x**2).sum(axis=0), m.sum(axis=0)
    free_partial, residual, total = np.zeros((4, 4)), np.zeros(x.shape), eye.copy()
    for j in range(4):
        free = m[:, j] == 0
        np.testing.assert_allclose(found[:, j, 1], x[free].T @ x[free, j] / free.sum(), atol=1e-4)
        inverse = np.linalg.inv(x[free].T @ x[free] / free.sum() + 0.03 * eye)
        free_partial[:, j] = -inverse[j] / np.sqrt(np.diag(inverse) * inverse[j, j])
        residual[free, j] = x[free] @ inverse[j] / inverse[j, j]
        for i in set(range(4)) - {j}:
            total[i, j] = (m[:, i] * x[:, i] * x[:, j] * free).sum() / (energy[i] + 0.5)
    spread = (residual**2).sum(axis=0) / (m == 0).sum(axis=0)
    direct = np.linalg.solve(total.T @ total + 0.05 * eye, total.T)
    expected = {
        3: free_partial,
        6: 2 * np.tanh(total * np.sqrt(energy)[:, None] / 8),
        7: 2 * np.tanh(-direct / 2),
        8: 3 * np.tanh(m.T @ (x**2 * (m == 0)) / (times + 1)[:, None] / 3),
        9: 4 * np.tanh(m.T @ residual**2 / np.outer(times + 1, spread + 0.02) / 4),
        10: 2 * np.tanh((x * m).T @ residual / (energy + 0.5)[:, None] / 2),
    }
    apart = eye == 0
    for k, numbers in expected.items():
        np.testing.assert_allclose(found[..., k][apart], numbers[apart], atol=1e-3)


def test_statistics_of_poor_tables_are_finite():
    alone = Samples(
        jnp.zeros((3, 2)), jnp.zeros((3, 2), bool), jnp.zeros(3, bool), jnp.ones(2, bool)
    )
    everything = alone._replace(intervened=jnp.ones((3, 2), bool), rows=jnp.ones(3, bool))
    compute = jax.jit(pair_statistics)
    assert np.isfinite(np.asarray(compute(alone))).all()
    assert np.isfinite(np.asarray(compute(everything))).all()


def test_parent_sets_are_a_distribution(predict, table):
    sets = candidate_sets(4, 4)
    assert len({tuple(row) for row in sets}) == 16
    assert (np.diff(sets.sum(axis=1)) >= 0).all()
    found = np.asarray(parent_set_logits(predict(table), 2, jnp.asarray(sets)))
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-5)
    assert np.exp(found[sets[:, 2]]).sum() < 1e-8
    few = np.asarray(parent_set_logits(predict(table), 2, jnp.asarray(sets[:5])))
    assert np.exp(few).sum() == pytest.approx(1.0, abs=1e-5)


def test_parent_sets_score_members_and_pairs():
    rng = np.random.default_rng(0)
    scores, pairs = rng.normal(size=(4, 4)), rng.normal(size=(4, 4, 3))
    prediction = Prediction(*(jnp.asarray(a, jnp.float32) for a in (scores, scores, pairs, pairs)))
    sets = candidate_sets(4, 3)
    found = np.asarray(parent_set_logits(prediction, 1, jnp.asarray(sets)))
    raw = []
    for row in sets:
        members = np.flatnonzero(row)
        total = scores[members, 1].sum()
        total += sum(pairs[a, 1] @ pairs[b, 1] for a in members for b in members if a < b)
        raw.append(total)
    expected = np.asarray(raw) - np.log(np.exp(raw).sum())
    np.testing.assert_allclose(found, expected, atol=1e-4)


def graph_of(edges: list[tuple[int, int]], d: int = 4) -> Graph:
    matrix = jnp.zeros((d, d), bool)
    for i, j in edges:
        matrix = matrix.at[i, j].set(True)
    return Graph(matrix, jnp.arange(d), jnp.ones(d, bool))


def test_losses_reward_the_truth(predict, table):
    graph = graph_of([(0, 1), (2, 1)])
    prediction = predict(table)
    truth = jnp.where(graph.edges, 20.0, -20.0)
    right, wrong = prediction._replace(edge_logits=truth), prediction._replace(edge_logits=-truth)
    assert float(edge_loss(right, graph)) < 1e-6
    assert float(edge_loss(wrong, graph)) == pytest.approx(20.0, rel=1e-3)
    sets = jnp.asarray(candidate_sets(4, 2))
    logits = parent_set_logits(prediction, 1, sets)
    place = int((sets == graph.edges[:, 1][None, :]).all(axis=1).argmax())
    assert float(parent_set_loss(prediction, graph, jnp.int32(1), sets)) == pytest.approx(
        -float(logits[place]), rel=1e-5
    )
    many = graph_of([(0, 1), (2, 1), (3, 1)])
    assert float(parent_set_loss(prediction, many, jnp.int32(1), sets)) == 0.0


@given(order=st.permutations(range(5)))
def test_only_cycles_are_penalised(order):
    chain = graph_of(list(pairwise(order)), 5).edges
    logits = jnp.where(chain, 30.0, -30.0)
    assert abs(float(acyclicity_penalty(logits))) < 1e-5
    closed = logits.at[order[-1], order[0]].set(30.0)
    assert float(acyclicity_penalty(closed)) > 1e-4


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"hidden": 10, "heads": 4}, "hidden=10 is not a multiple of heads=4"),
        ({"blocks": 3}, "blocks=3 is odd"),
        ({"moments": 0}, "moments=0"),
        ({"compute_dtype": "float16"}, "compute_dtype='float16'"),
    ],
)
def test_sizes_that_mean_nothing(option, message):
    with pytest.raises(ValueError, match=message):
        SurrogateConfig(**option)
