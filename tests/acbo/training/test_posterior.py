"""Posteriors with names, and names as hashable values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acbo.training import (
    ParentSetPosterior,
    compare_posteriors,
    compute_posterior_entropy,
    get_marginal_parent_probabilities,
    get_most_likely_parents,
    prepare_static_args,
    restore_static_args,
)

SETS = [frozenset(), frozenset("A"), frozenset("B"), frozenset("AB")]
weights = st.lists(st.floats(0, 10), min_size=4, max_size=4).filter(lambda w: sum(w) > 1e-3)


@given(weights)
def test_marginals_and_entropy_are_those_of_the_distribution(numbers):
    posterior = ParentSetPosterior("T", SETS, numbers)
    p = np.array(numbers) / np.sum(numbers)
    marginals = get_marginal_parent_probabilities(posterior, ["A", "B", "C", "T"])
    assert marginals == pytest.approx({"A": p[1] + p[3], "B": p[2] + p[3], "C": 0.0})
    positive = p[p > 0]
    entropy = compute_posterior_entropy(posterior)
    assert entropy == pytest.approx(-(positive * np.log(positive)).sum(), abs=1e-9)
    assert get_marginal_parent_probabilities(posterior).keys() == {"A", "B"}


@given(weights, weights)
def test_comparison_of_posteriors(first, second):
    p, q = (ParentSetPosterior("T", SETS, w) for w in (first, second))
    apart, back = compare_posteriors(p, q), compare_posteriors(q, p)
    assert apart["kl_divergence"] >= 0
    assert 0 <= apart["total_variation"] <= 1 + 1e-9
    assert apart["jensen_shannon"] == pytest.approx(back["jensen_shannon"], abs=1e-12)
    assert apart["jensen_shannon"] <= math.log(2) + 1e-9
    same = compare_posteriors(p, p)
    assert same == {
        "kl_divergence": 0.0,
        "total_variation": 0.0,
        "jensen_shannon": 0.0,
        "same_most_likely": 1.0,
    }


def test_comparison_by_hand():
    p = ParentSetPosterior("T", [set(), {"A"}], [0.5, 0.5])
    q = ParentSetPosterior("T", [{"A"}, set()], [0.75, 0.25])
    apart = compare_posteriors(p, q)
    assert apart["kl_divergence"] == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert apart["total_variation"] == pytest.approx(0.25)
    certain = ParentSetPosterior("T", [{"A"}], [1.0])
    assert compare_posteriors(p, certain)["kl_divergence"] == math.inf
    with pytest.raises(ValueError, match="'T' and 'S'"):
        compare_posteriors(p, ParentSetPosterior("S", [set()], [1]))


def test_the_likeliest_sets_come_first():
    posterior = ParentSetPosterior("T", SETS, [0.1, 0.4, 0.2, 0.3])
    assert get_most_likely_parents(posterior, 2) == [frozenset("A"), frozenset("AB")]
    assert len(get_most_likely_parents(posterior, 9)) == 4
    with pytest.raises(ValueError, match="k is 0"):
        get_most_likely_parents(posterior, 0)


@pytest.mark.parametrize(
    ("sets", "chances", "message"),
    [
        ([], [], "0 parent sets"),
        ([set()], [1, 2], "1 parent sets"),
        ([{"A"}, {"A"}], [1, 2], "twice"),
        ([set(), {"A"}], [0, 0], "not all 0"),
        ([set(), {"A"}], [1, -1], "not negative"),
        ([set(), {"A"}], [1, np.nan], "finite"),
        ([{"T"}], [1], "cause of itself"),
    ],
)
def test_what_is_no_posterior(sets, chances, message):
    with pytest.raises(ValueError, match=message):
        ParentSetPosterior("T", sets, chances)


names = st.one_of(st.text(max_size=3), st.integers(0, 9))
orders = st.lists(names, min_size=1, max_size=4)


@given(
    st.lists(st.lists(st.frozensets(names, max_size=3), max_size=4), max_size=3),
    st.lists(orders, max_size=3),
    st.lists(names, max_size=3),
)
def test_static_arguments_come_back_as_they_were(sets, orders, targets):
    hashable = prepare_static_args(sets, orders, targets)
    hash(hashable)
    restored = restore_static_args(hashable)
    assert restored == (sets, orders, targets)
    assert prepare_static_args(*restored) == hashable
    assert [[type(one) for one in some] for some in restored[0]] == [
        [frozenset] * len(some) for some in sets
    ]
