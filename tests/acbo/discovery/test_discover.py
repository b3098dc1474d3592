"""`acbo.discover`: what it takes, what it answers, what it refuses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acbo
from acbo._errors import DataError, SizeError
from acbo.discovery import Discovery
from acbo.surrogate import Prediction, Surrogate, SurrogateConfig
from worldloom.compile import count_compiles

NAMES = ["a", "b", "c", "d"]
NOTHING_SAID = Prediction(*[jnp.zeros(0)] * 4)


@pytest.fixture(scope="module")
def network() -> Surrogate:
    return Surrogate(SurrogateConfig(hidden=8, blocks=2, heads=2), key=jax.random.key(0))


def table(rows: int = 60, columns: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns))


def mask(rows: int = 60, columns: int = 4) -> np.ndarray:
    set_ = np.zeros((rows, columns), bool)
    set_[np.arange(0, rows, 3), np.arange(0, rows, 3) % columns] = True
    return set_


def test_arrays_frames_and_names_say_the_same(network):
    values, set_ = table(), mask()
    one = acbo.discover(values, interventions=set_, names=NAMES, network=network)
    frame = pd.DataFrame(values, columns=NAMES)
    two = acbo.discover(frame, interventions=pd.DataFrame(set_, columns=NAMES), network=network)
    np.testing.assert_array_equal(one.edge_probabilities, two.edge_probabilities)
    assert one.names == two.names == tuple(NAMES)
    assert one.edge_probabilities.shape == (4, 4)
    assert not one.edge_probabilities.diagonal().any()
    untouched = acbo.discover(values, network=network)
    assert not np.allclose(one.edge_probabilities, untouched.edge_probabilities)


def test_the_order_of_columns_and_rows_does_not_matter(network):
    values, set_ = table(), mask()
    columns, rows = np.array([2, 0, 3, 1]), np.random.default_rng(1).permutation(60)
    one = acbo.discover(values, interventions=set_, network=network).edge_probabilities
    two = acbo.discover(values[rows][:, columns], set_[rows][:, columns], network=network)
    np.testing.assert_allclose(two.edge_probabilities, one[np.ix_(columns, columns)], atol=2e-4)


def test_other_sizes_up_to_the_next_program_compile_nothing(network):
    acbo.discover(table(), network=network)
    with count_compiles() as compiles:
        for rows, columns in ((20, 2), (128, 5), (60, 3)):
            acbo.discover(table(rows, columns), network=network)
    assert compiles.total == 0


def test_units_do_not_matter(network):
    one = acbo.discover(table(), network=network).edge_probabilities
    scaled = table() * np.array([1e-3, 7.0, 1e4, 2.0]) + np.array([0.0, 5.0, -3e4, 1.0])
    two = acbo.discover(scaled, network=network).edge_probabilities
    np.testing.assert_allclose(two, one, atol=1e-3)


def test_parents_and_sets_of_parents_are_probabilities(network):
    found = acbo.discover(table(), names=NAMES, network=network)
    parents = found.parents("c")
    assert set(parents) == {"a", "b", "d"}
    assert parents["a"] == pytest.approx(float(found.edge_probabilities[0, 2]))
    assert list(parents.values()) == sorted(parents.values(), reverse=True)
    assert found.parents(2) == parents
    sets = found.parent_sets("c", max_size=2)
    assert len(sets) == 1 + 3 + 3
    assert sum(sets.values()) == pytest.approx(1.0, abs=1e-4)
    assert all("c" not in causes for causes in sets)
    with pytest.raises(KeyError, match="'z' is no variable"):
        found.parents("z")
    with pytest.raises(IndexError, match="target=4"):
        found.parents(4)


@given(st.integers(0, 2**32 - 1), st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_the_graph_has_no_cycle_and_keeps_the_likeliest_edge(seed, d):
    edges = np.random.default_rng(seed).uniform(size=(d, d)).astype(np.float32)
    np.fill_diagonal(edges, 0)
    names = tuple(f"x{i}" for i in range(d))
    graph = Discovery(names, edges, NOTHING_SAID).graph(0.3)
    assert not np.linalg.matrix_power(graph.astype(float), d).any()
    if edges.max() >= 0.3:
        assert graph[np.unravel_index(edges.argmax(), edges.shape)]
    assert (edges[graph] >= 0.3).all()


def test_without_cycles_both_directions_share_one_probability(network):
    edges = acbo.discover(table(), network=network, acyclic=True).edge_probabilities
    assert (edges + edges.T <= 1 + 1e-6).all()
    assert edges.max() > 0


def test_long_tables_are_taken_in_parts(network):
    found = acbo.discover(table(2100), network=network)
    assert np.isfinite(found.edge_probabilities).all()


def test_it_prints_likely_edges_best_first():
    edges = np.zeros((3, 3), np.float32)
    edges[0, 1], edges[2, 1], edges[1, 0] = 0.4, 0.9, 0.05
    found = Discovery(("rain", "river", "mud"), edges, NOTHING_SAID)
    assert str(found) == "  mud -> river  0.90\n rain -> river  0.40"
    nothing = Discovery(("rain", "river", "mud"), 0 * edges, NOTHING_SAID)
    assert str(nothing).startswith("no edge")


@pytest.mark.parametrize(
    ("values", "interventions", "message"),
    [
        (np.where(table() > 2, np.nan, table()), None, "not finite"),
        (table() * np.array([1.0, 0.0, 1.0, 1.0]), None, "in every row"),
        (table(columns=1), None, "at least two"),
        (table(), np.zeros((3, 4), bool), "shape"),
        (table()[:0], None, "no rows"),
        (pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}), None, "a"),
    ],
)
def test_bad_tables_are_refused(network, values, interventions, message):
    with pytest.raises(DataError, match=message):
        acbo.discover(values, interventions, network=network)


def test_more_variables_than_the_network_knows_are_refused():
    with pytest.raises(SizeError, match=r"21 variables.*at most 20"):
        acbo.discover(table(60, 21))
