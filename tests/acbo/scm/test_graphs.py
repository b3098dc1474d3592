from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from acbo.scm import ancestors, is_acyclic, sample_graph
from acbo.scm._graphs import GRAPHS as KINDS

D = 7


@pytest.fixture(scope="module")
def graphs():
    """Many graphs of each kind, with 2 to 7 variables, as NumPy arrays."""

    def draw(kind):
        keys = jax.random.split(jax.random.key(1), 200)
        sizes = jnp.arange(200) % (D - 1) + 2
        one = partial(sample_graph, d=D, kind=kind)
        many = jax.jit(jax.vmap(lambda key, size: one(key, size=size)))(keys, sizes)
        return np.asarray(sizes), *(np.asarray(part) for part in many)

    return {kind: draw(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_are_acyclic_in_their_order_and_leave_padding_alone(graphs, kind):
    for size, edges, order, exists in zip(*graphs[kind], strict=True):
        assert nx.is_directed_acyclic_graph(nx.from_numpy_array(edges, create_using=nx.DiGraph))
        assert sorted(order) == list(range(D))
        rank = np.argsort(order)
        causes, effects = np.nonzero(edges)
        assert (rank[causes] < rank[effects]).all()
        assert exists.sum() == size
        assert exists[:size].all()
        assert not edges[size:].any()
        assert not edges[:, size:].any()
        assert set(order[:size]) == set(range(size))


@pytest.mark.parametrize(
    ("kind", "incoming", "outgoing"),
    [
        ("chain", lambda n: [0] + [1] * (n - 1), lambda n: [0] + [1] * (n - 1)),
        ("fork", lambda n: [0] + [1] * (n - 1), lambda n: [0] * (n - 1) + [n - 1]),
        ("collider", lambda n: [0] * (n - 1) + [n - 1], lambda n: [0] + [1] * (n - 1)),
    ],
)
def test_kinds_with_one_shape(graphs, kind, incoming, outgoing):
    for size, edges, _, _ in zip(*graphs[kind], strict=True):
        assert sorted(edges.sum(axis=0)[:size]) == incoming(size)
        assert sorted(edges.sum(axis=1)[:size]) == outgoing(size)


def test_a_tree_has_one_root_and_one_cause_each(graphs):
    branching = 0
    for size, edges, _, _ in zip(*graphs["tree"], strict=True):
        assert sorted(edges.sum(axis=0)[:size]) == [0] + [1] * (size - 1)
        branching = max(branching, edges.sum(axis=1).max())
    assert branching >= 3


def test_expected_number_of_edges():
    keys = jax.random.split(jax.random.key(2), 4000)
    one = partial(sample_graph, d=6, edges_per_variable=1.5)
    edges = np.asarray(jax.jit(jax.vmap(lambda key: one(key).edges))(keys))
    # 15 pairs, each with probability 9/15: the mean of 4000 graphs has deviation 0.03.
    assert edges.sum(axis=(1, 2)).mean() == pytest.approx(9.0, abs=0.15)
    # Labels carry no order: each ordered pair is as likely as its mirror image.
    share = edges.mean(axis=0)[~np.eye(6, dtype=bool)]
    assert share.min() > 0.25
    assert share.max() < 0.35


def test_scale_free_graphs_have_hubs():
    keys = jax.random.split(jax.random.key(3), 300)
    hubs = {}
    for kind in ("erdos_renyi", "scale_free"):
        one = partial(sample_graph, d=20, kind=kind, edges_per_variable=1.0)
        edges = np.asarray(jax.jit(jax.vmap(lambda key, one=one: one(key).edges))(keys))
        hubs[kind] = (edges.sum(axis=1) + edges.sum(axis=2)).max(axis=1).mean()
    assert hubs["scale_free"] > 1.3 * hubs["erdos_renyi"]


def test_ancestors_and_cycles_against_networkx():
    rng = np.random.default_rng(0)
    for _ in range(40):
        edges = rng.random((6, 6)) < 0.25
        np.fill_diagonal(edges, False)
        graph = nx.from_numpy_array(edges, create_using=nx.DiGraph)
        assert bool(is_acyclic(jnp.asarray(edges))) == nx.is_directed_acyclic_graph(graph)
        reach = np.zeros((6, 6), bool)
        for i in range(6):
            for j in graph.successors(i):
                reach[i, [j, *nx.descendants(graph, j)]] = True
        assert (np.asarray(ancestors(jnp.asarray(edges))) == reach).all()


def test_what_is_no_graph():
    with pytest.raises(ValueError, match="graph='ring' is not a graph prior; one of erdos_renyi"):
        sample_graph(jax.random.key(0), 3, kind="ring")
    with pytest.raises(ValueError, match="d=0"):
        sample_graph(jax.random.key(0), 0)
