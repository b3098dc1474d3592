"""Section 0: the tests pass on every supported Python with the JAX that the lock gives it."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from worldloom import batch

ROOT = Path(__file__).parents[2]


def sorted_sums(x):
    # XLA computes this in another way from a number of rows that each release chooses anew.
    return jax.lax.sort(jnp.sin(x), dimension=1).sum(1)


def products(x):
    return jnp.tanh(x @ x.T).sum(1)


def needs(fn, *args) -> int:
    found = jax.jit(fn).lower(*args).compile().memory_analysis()
    return (
        found.argument_size_in_bytes
        + found.output_size_in_bytes
        + found.temp_size_in_bytes
        - found.alias_size_in_bytes
    )


@pytest.mark.parametrize("fn", [sorted_sums, products])
def test_a_memory_prediction_is_what_xla_says(fn):
    found = batch.plan(fn, jax.ShapeDtypeStruct((2, 50), jnp.float32), memory="64 MiB")
    for size in (1, 2, 7, 63, 65, 100, 127, 300, 1000):
        assert found.bytes(size) == needs(fn, jax.ShapeDtypeStruct((size, 50), jnp.float32))


@hypothesis.settings(max_examples=8)
@hypothesis.given(size=st.integers(1, 400), width=st.integers(1, 40))
def test_a_memory_prediction_is_what_xla_says_at_any_size(size, width):
    found = batch.plan(sorted_sums, jax.ShapeDtypeStruct((2, width), jnp.float32), memory="64 MiB")
    assert found.bytes(size) == needs(sorted_sums, jax.ShapeDtypeStruct((size, width), jnp.float32))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64, np.complex128, np.float32])
def test_arrays_of_numpy_are_planned_as_what_jax_makes_of_them(dtype):
    rows = np.ones((10, 3), dtype)
    found = batch.plan(lambda x: x + x, rows, memory="64 MiB")
    assert found.bytes(64) == 2 * 64 * 3 * jax.typeof(rows).dtype.itemsize
    result = batch.chunked_map(lambda x: x + x, rows)
    np.testing.assert_array_equal(result, np.full((10, 3), 2, jax.typeof(rows).dtype))


def test_keys_are_planned():
    keys = jax.random.split(jax.random.key(0), 6)
    found = batch.plan(jax.vmap(jax.random.uniform), keys, memory="64 MiB")
    assert found.bytes(64) >= 64 * 12
