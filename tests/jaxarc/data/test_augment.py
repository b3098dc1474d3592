"""A guise is a symmetry, a permutation of colours and one of pairs, and can be taken off."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import bitgrid, data

MAX = 10


@pytest.fixture(scope="module")
def tasks():
    return data.load("AGI1-train")


def guise(transposed=False, flip_rows=False, flip_columns=False):
    plain = data.Augmentation.identity(MAX)
    flags = (jnp.array(transposed), jnp.array(flip_rows), jnp.array(flip_columns))
    return data.Augmentation(*flags, plain.colours, plain.order)


def test_the_eight_symmetries_are_those_of_the_square():
    cells = np.arange(6, dtype=np.uint8).reshape(2, 3) + 1
    canvas = np.zeros((5, 5), np.uint8)
    canvas[:2, :3] = cells
    packed = bitgrid.pack(jnp.asarray(canvas))
    seen = set()
    apply = jax.jit(lambda g, *a: g.grid(*a))
    for flags in itertools.product([False, True], repeat=3):
        grid, size = apply(guise(*flags), packed, jnp.array([2, 3], jnp.uint8))
        expected = cells.T if flags[0] else cells
        expected = expected[::-1] if flags[1] else expected
        expected = expected[:, ::-1] if flags[2] else expected
        assert tuple(map(int, size)) == expected.shape
        whole = np.asarray(bitgrid.unpack(grid, 5, 5))
        np.testing.assert_array_equal(whole[: expected.shape[0], : expected.shape[1]], expected)
        assert whole.sum() == cells.sum()
        seen.add(expected.tobytes() + bytes(expected.shape))
    assert len(seen) == 8


def test_every_guise_can_be_taken_off(tasks):
    buffer = tasks.buffer()
    count = 200
    numbers = jnp.arange(count, dtype=jnp.int32)

    @jax.jit
    @jax.vmap
    def there_and_back(key, task):
        worn = data.Augmentation.sample(
            key, buffer.num_demos[task], max_demos=MAX, keep_black=False
        )
        pair = buffer.demo(task, 0)
        other = worn.pair(pair)
        off = worn.inverse()
        return pair, other, off.pair(other), worn.order[off.order], worn.order

    before, worn, after, order, worn_order = there_and_back(
        jax.random.split(jax.random.key(0), count), numbers
    )
    jax.tree.map(np.testing.assert_array_equal, before, after)
    np.testing.assert_array_equal(order, np.tile(np.arange(MAX), (count, 1)))
    changed = np.any(np.asarray(before.input != worn.input), axis=(1, 2))
    assert changed.mean() > 0.9
    for demos, row in zip(
        np.asarray(buffer.num_demos[:count]), np.asarray(worn_order), strict=True
    ):
        assert set(row[:demos]) == set(range(demos))


def test_parts_can_be_switched_off():
    key, demos = jax.random.key(3), jnp.int32(4)
    off = data.Augmentation.sample(
        key, demos, max_demos=MAX, symmetry=False, colours=False, order=False
    )
    jax.tree.map(np.testing.assert_array_equal, off, data.Augmentation.identity(MAX))
    black = jax.vmap(lambda k: data.Augmentation.sample(k, demos, max_demos=MAX).colours)
    tables = np.asarray(jax.jit(black)(jax.random.split(key, 100)))
    assert (tables[:, 0] == 0).all()
    assert len(np.unique(tables, axis=0)) > 90
    assert (np.sort(tables, axis=1) == np.arange(10)).all()


def test_a_whole_task_wears_one_guise(tasks):
    task = tasks.get_task_by_index(2)

    @jax.jit
    def dress(task):
        worn = data.Augmentation.sample(jax.random.key(8), task.num_train_pairs, max_demos=MAX)
        dressed = worn.task(task)
        before, after = data.TaskBuffer.from_task(task), data.TaskBuffer.from_task(dressed)
        first = jnp.zeros(MAX, jnp.int32)
        number = jnp.arange(MAX, dtype=jnp.int32)
        number = jnp.where(number < task.num_train_pairs, number, 0)
        expected = jax.vmap(worn.pair)(before.demo(first, worn.order[number].astype(jnp.int32)))
        test = worn.pair(before.test(jnp.int32(0), 0)), after.test(jnp.int32(0), 0)
        return expected, after.demo(first, number), test, worn.inverse().task(dressed)

    expected, got, test, bare = dress(task)
    demos = int(task.num_train_pairs)
    for one, other in ((expected, got), test):
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:demos], b[:demos]), one, other)
    jax.tree.map(np.testing.assert_array_equal, bare, task)


def test_a_task_that_does_not_fit_the_guise_is_refused():
    worn = data.Augmentation.identity(3)
    with pytest.raises(ValueError, match="orders 3 demonstrations, the task is padded to 2"):
        worn.task(data.create_mock_task())
