"""Selections of the three kinds of action."""

from __future__ import annotations

import arc_oracle as oracle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.envs import BboxAction, MaskAction, PointAction

SHAPES = [(30, 30), (7, 12), (32, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_points_and_boxes_select_what_the_oracle_selects(shape):
    rng = np.random.default_rng(1)
    count = 60
    a, b = (rng.integers(-3, side + 3, (2, count)) for side in shape)
    zeros = np.zeros(count, int)
    boxes = np.asarray(BboxAction(zeros, a[0], b[0], a[1], b[1]).to_selection_mask(shape))
    points = np.asarray(PointAction(zeros, a[0], b[0]).to_selection_mask(shape))
    for i in range(count):
        assert oracle.mask(boxes[i]) == oracle.box(a[0, i], b[0, i], a[1, i], b[1, i], shape)
        assert oracle.mask(points[i]) == oracle.point(a[0, i], b[0, i], shape)


def test_a_mask_selects_itself():
    cells = np.random.default_rng(0).uniform(size=(5, 9, 4)) < 0.5
    action = MaskAction(np.zeros(5, int), jnp.asarray(cells))
    np.testing.assert_array_equal(action.to_selection_mask((9, 4)), cells)
    one = MaskAction(0, jnp.asarray(cells[0]))
    np.testing.assert_array_equal(one.to_selection_mask((9, 4)), cells[0])


def test_one_action_and_a_batch_agree_under_vmap_and_jit():
    rows = jnp.arange(6)
    batch = PointAction(jnp.zeros(6, jnp.int32), rows, rows)
    shape = (30, 30)
    one_by_one = jax.jit(jax.vmap(lambda action: action.to_selection_mask(shape)))(batch)
    np.testing.assert_array_equal(one_by_one, batch.to_selection_mask(shape))
    single = PointAction(jnp.array(0), jnp.array(5), jnp.array(5)).to_selection_mask(shape)
    np.testing.assert_array_equal(single, one_by_one[5])
