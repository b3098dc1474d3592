"""Slices of time: how many are needed, which are loaded; where a sum of fields is known."""

from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace.fields import FieldError, Stream
from jaxtrace.fields._stream import Window
from jaxtrace.fields._time import Slices


@pytest.mark.parametrize("count", [2, 3])
def test_a_cubic_in_time_needs_four_slices(count):
    with pytest.raises(FieldError, match=f"needs 4 slices or more, there are {count}"):
        Slices(np.arange(float(count)), "cubic")


@pytest.mark.parametrize(("method", "count"), [("cubic", 1), ("cubic", 4), ("linear", 2)])
def test_what_there_is_enough_of_is_taken(method, count):
    slices = Slices(np.arange(float(count)), method)
    assert slices.count == count
    assert (slices.cubic is not None) == (method == "cubic" and count > 1)
    assert slices.span == (None if count == 1 else (0.0, count - 1.0))


def test_a_moment_outside_the_window_that_is_loaded_is_nan():
    x, times = np.linspace(0.0, 1.0, 4), np.arange(10.0)
    field = jt.StructuredField(Stream(lambda i: np.full((4, 4, 2), i), window=4), (x, x), times)
    for t in (0.0, 1.5, 2.75):
        np.testing.assert_allclose(field.sample([[0.5, 0.5]], t), t, rtol=1e-6)
    for t in (3.5, 9.0):
        assert np.isnan(field.sample([[0.5, 0.5]], t)).all()
    later = eqx.tree_at(lambda f: f.tables, field, Window(field.tables.source, 5))
    assert np.isnan(later.sample([[0.5, 0.5]], 4.5)).all()
    np.testing.assert_allclose(later.sample([[0.5, 0.5]], 5.5), 5.5)


def test_a_sum_is_known_where_all_its_fields_are():
    def box(low, high):
        axes = tuple(np.linspace(a, b, 3) for a, b in zip(low, high, strict=True))
        return jt.StructuredField(np.ones((1, 3, 3, 2)), axes)

    total = box((0.0, -1.0), (2.0, 5.0)) + box((-3.0, 1.0), (1.0, 7.0))
    assert total.bounds is not None
    np.testing.assert_array_equal(total.bounds, [[0.0, 1.0], [1.0, 5.0]])
    assert total.time_span is None
