from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import cKDTree

import jaxtrace as jt
from jaxtrace.fields import FieldError


def clustered(rng, n, dim):
    """Points with very different spacing."""
    return np.concatenate([rng.random((n // 2, dim)), 0.02 * rng.random((n - n // 2, dim))])


@hypothesis.settings(max_examples=4)
@hypothesis.given(seed=st.integers(0, 2**31), dim=st.sampled_from([2, 3]))
def test_the_nearest_points_are_those_of_a_tree(seed, dim):
    rng = np.random.default_rng(seed)
    points = clustered(rng, 200, dim).astype(np.float32).astype(np.float64)
    values = rng.random((200, 2))
    places = rng.random((64, dim)) * points.max(axis=0)
    places = np.maximum(places, points.min(axis=0))
    field = jt.TimeSeriesField(data=values[None], positions=points)
    distance, index = cKDTree(points).query(places, k=2)
    clear = distance[:, 1] - distance[:, 0] > 1e-5
    assert np.allclose(field.sample(places, 0.0)[clear], values[index[clear, 0]], atol=1e-6)
    means = jt.TimeSeriesField(data=values[None], positions=points, method="idw", neighbours=5)
    distance, index = cKDTree(points).query(places, k=6)
    clear = (distance[:, 5] - distance[:, 4] > 1e-5) & (distance[:, 0] > 1e-3)
    w = 1 / distance[:, :5] ** 2
    wanted = (values[index[:, :5]] * w[..., None]).sum(1) / w.sum(1)[:, None]
    assert np.allclose(means.sample(places, 0.0)[clear], wanted[clear], atol=1e-3)


def test_a_point_itself_has_its_own_value():
    rng = np.random.default_rng(0)
    points, values = rng.random((50, 3)), rng.random((50, 1))
    field = jt.TimeSeriesField(values, points, method="idw")
    assert np.allclose(field.sample(points, 0.0), values, atol=1e-3)


def test_assigning_takes_new_arrays_over_as_in_the_seed():
    rng = np.random.default_rng(0)
    points, data = rng.random((40, 3)), rng.random((3, 40, 3))
    field = jt.TimeSeriesField(data=data, positions=points, times=[0.0, 1.0, 2.0])
    before = field.sample(points, 1.0)
    field.data = jnp.array(2 * field.data)
    assert np.allclose(field.sample(points, 1.0), 2 * before)
    field._data_dev = jax.device_put(field.data)
    field._times_dev = jax.device_put(jnp.asarray([0.0, 10.0, 20.0]))
    field._pos_dev = jax.device_put(field.positions)
    assert np.allclose(field.sample(points, 10.0), 2 * before)
    assert isinstance(field.data, jax.Array)
    with pytest.raises(FieldError, match="40 points"):
        field.data = np.zeros((3, 39, 3))
    with pytest.raises(AttributeError, match="immutable"):
        field.method = "idw"
    assert np.allclose(field.sample(points, 10.0), 2 * before)


def test_who_is_further_than_max_distance_is_outside():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [10.0, 10.0]])
    field = jt.TimeSeriesField(points[None], points, max_distance=1.0)
    found = np.asarray(field.sample([[0.9, 0.9], [5.0, 5.0], [9.5, 9.5]], 0.0))
    assert np.isnan(found).any(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positions": np.zeros((4, 1))}, r"expected \[P, 2\] or \[P, 3\]"),
        ({"positions": np.full((4, 3), np.nan)}, "not finite"),
        ({"data": np.zeros((2, 4, 3)), "times": [1.0, 1.0]}, "times must increase"),
        ({"method": "idw", "neighbours": 9}, "only 4 points"),
        ({"method": "kriging"}, "expected 'nearest' or 'idw'"),
        ({"max_distance": -1.0}, "positive distance"),
    ],
)
def test_bad_input_is_named(change, message):
    good = {"data": np.zeros((1, 4, 3)), "positions": np.eye(4, 3)}
    with pytest.raises(FieldError, match=message):
        jt.TimeSeriesField(**(good | change))
