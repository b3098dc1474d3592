"""Sums over orders, against listing every graph and every order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acbo._errors import SizeError
from acbo.discovery import over_orders


def by_listing(logits: np.ndarray) -> np.ndarray:
    """Every graph, as often as there are orders that it fits."""
    d = len(logits)
    pairs = [(i, j) for i in range(d) for j in range(d) if i != j]
    total, edges = 0.0, np.zeros((d, d))
    for kept in itertools.product((False, True), repeat=len(pairs)):
        graph = [pair for pair, keep in zip(pairs, kept, strict=True) if keep]
        fits = sum(
            all(order.index(i) < order.index(j) for i, j in graph)
            for order in itertools.permutations(range(d))
        )
        weight = fits * np.exp(sum(logits[i, j] for i, j in graph))
        total += weight
        for i, j in graph:
            edges[i, j] += weight
    return edges / total


@given(st.integers(0, 2**32 - 1), st.integers(2, 3))
@settings(max_examples=20, deadline=None)
def test_it_is_the_sum_over_all_graphs_and_orders(seed, d):
    logits = np.random.default_rng(seed).normal(scale=3.0, size=(d, d))
    np.testing.assert_allclose(over_orders(logits), by_listing(logits), atol=1e-9)


def test_four_variables():
    logits = np.random.default_rng(1).normal(scale=2.0, size=(4, 4))
    np.testing.assert_allclose(over_orders(logits), by_listing(logits), atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
@settings(max_examples=20, deadline=None)
def test_both_directions_share_one_probability(seed, d):
    logits = np.random.default_rng(seed).normal(scale=8.0, size=(d, d))
    edges = over_orders(logits)
    assert np.isfinite(edges).all()
    assert (edges >= 0).all()
    assert (edges + edges.T <= 1 + 1e-9).all()
    assert not edges.diagonal().any()


def test_an_acyclic_belief_stays_nearly_as_it_is():
    logits = np.full((6, 6), -20.0)
    logits[np.triu_indices(6, 1)] = 12.0
    np.testing.assert_allclose(over_orders(logits), 1 / (1 + np.exp(-logits)), atol=1e-4)


def test_too_many_variables_are_refused():
    with pytest.raises(SizeError, match="21 variables"):
        over_orders(np.zeros((21, 21)))
