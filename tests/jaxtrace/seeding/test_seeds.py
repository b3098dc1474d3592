from __future__ import annotations

import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace.seeding import SeedError

BOX = [[0.0, -1.0, 2.0], [3.0, 1.0, 4.0]]


def test_a_grid_of_seeds_reaches_the_walls_or_keeps_away():
    seeds = jt.uniform_grid_seeds(resolution=(30, 25, 10), bounds=BOX, include_boundaries=True)
    assert seeds.shape == (7500, 3)
    assert seeds.dtype == np.float32
    assert np.allclose([seeds.min(0), seeds.max(0)], BOX)
    assert len(np.unique(seeds, axis=0)) == 7500
    inner = jt.uniform_grid_seeds((3, 2, 1), BOX, include_boundaries=False)
    assert np.allclose(np.unique(inner[:, 0]), [0.5, 1.5, 2.5])
    assert np.allclose(np.unique(inner[:, 2]), [3.0])


def test_random_seeds_fill_the_box_and_repeat():
    seeds = jt.random_seeds(5000, BOX, seed=3)
    assert np.allclose(seeds.mean(0), [1.5, 0.0, 3.0], atol=0.1)
    assert np.array_equal(seeds, jt.random_seeds(5000, BOX, seed=3))


def test_repeated_release_repeats_all_seeds():
    seeds, times = jt.repeated_release([[0.1, 0.2], [0.3, 0.4]], [0.0, 2.5])
    assert times.tolist() == [0.0, 0.0, 2.5, 2.5]
    assert np.allclose(seeds[2:], seeds[:2])


@pytest.mark.parametrize(
    "call",
    [
        lambda: jt.uniform_grid_seeds((3, 0, 1), BOX),
        lambda: jt.random_seeds(0, BOX),
        lambda: jt.repeated_release(np.zeros((0, 2)), [0.0]),
        lambda: jt.repeated_release([[0.0, 0.0]], [np.nan]),
    ],
)
def test_bad_input_is_named(call):
    with pytest.raises(SeedError):
        call()
