"""`field.data = ...`, as in the guide: taken over, checked, and used by the next track."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace._errors import FieldError
from jaxtrace.fields import Stream


def grid() -> jt.StructuredField:
    x = np.linspace(0.0, 1.0, 3)
    return jt.StructuredField(np.ones((2, 3, 3, 2)), (x, x), [0.0, 1.0])


def mesh() -> jt.TetField:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    cells = np.array([[0, 1, 2], [0, 2, 3]])
    return jt.TetField(np.ones((2, 4, 2)), points, cells, [0.0, 1.0])


@pytest.mark.parametrize("make", [grid, mesh])
def test_new_values_count(make):
    field = make()
    place = [[0.3, 0.6]]
    np.testing.assert_allclose(field.sample(place, t=0.5), [[1.0, 1.0]])
    field.data = jnp.stack([0 * field.data[0], 4 * field.data[1]])
    np.testing.assert_allclose(field.sample(place, t=0.5), [[2.0, 2.0]])
    field.times = [0.0, 2.0]
    np.testing.assert_allclose(field.sample(place, t=0.5), [[1.0, 1.0]])
    field._data_dev = 2 * field._data_dev
    np.testing.assert_allclose(field.sample(place, t=0.5), [[2.0, 2.0]])
    np.testing.assert_allclose(field._times_dev, [0.0, 2.0])
    field.positions = jnp.array(field.positions)
    field._pos_dev = field._pos_dev


@pytest.mark.parametrize("make", [grid, mesh])
def test_what_cannot_be_taken_over(make):
    field = make()
    with pytest.raises(FieldError, match=r"data has shape \[1"):
        field.data = field.data[:1]
    with pytest.raises(FieldError, match="data"):
        field.data = field.data * jnp.nan
    with pytest.raises(FieldError, match=r"times has shape \[3\]; this field has 2 slices"):
        field.times = [0.0, 1.0, 2.0]
    with pytest.raises(FieldError, match="increase"):
        field.times = [1.0, 0.0]
    with pytest.raises(FieldError, match="cannot be moved"):
        field.positions = field.positions + 0.1
    with pytest.raises(AttributeError):
        field.outside = "clamp"


def test_nodes_are_listed_like_the_data():
    x, y = np.array([0.0, 1.0, 4.0]), np.array([0.0, 2.0])
    where = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    field = jt.StructuredField(where[None], (x, y))
    np.testing.assert_allclose(field.positions, field.data[0].reshape(-1, 2))


def test_a_streamed_field_is_what_it_reads():
    x = np.linspace(0.0, 1.0, 3)
    stream = Stream(lambda i: np.full((3, 3, 2), float(i)), window=2)
    field = jt.StructuredField(stream, (x, x), np.arange(4.0))
    with pytest.raises(FieldError, match="stream"):
        field.data = np.zeros((4, 3, 3, 2))
    with pytest.raises(FieldError, match="stream"):
        field.times = np.arange(4.0) * 2
