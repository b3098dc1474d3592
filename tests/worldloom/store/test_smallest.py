from __future__ import annotations

import hypothesis.strategies as st
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

from worldloom import store


def test_the_example_saves_65_bytes():
    arrays = [
        np.array([1, 2, 3, 4, 5], dtype=np.int64),
        np.array([1000, 2000, 3000], dtype=np.int64),
        np.array([1.1, 2.2, 3.3], dtype=np.float64),
    ]
    small = [store.smallest_dtype(array) for array in arrays]
    assert [array.dtype for array in small] == [np.int8, np.int16, np.float32]
    saved = [a.nbytes - b.nbytes for a, b in zip(arrays, small, strict=True)]
    assert saved == [35, 18, 12]
    assert sum(saved) == 65


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200), max_size=5),
    dtype=st.sampled_from([np.int16, np.int32, np.int64]),
)
def test_signed_integers_lose_nothing_and_no_smaller_type_would_do(values, dtype):
    array = np.array(values, np.int64).astype(dtype)
    small = store.smallest_dtype(array)
    assert np.array_equal(small.astype(np.int64), array)
    assert small.dtype.kind == "i"
    assert small.dtype.itemsize <= array.dtype.itemsize
    if small.dtype.itemsize > 1:
        smaller = small.astype(f"i{small.dtype.itemsize // 2}")
        assert not np.array_equal(smaller, array)


@given(values=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 300), max_size=5))
def test_unsigned_integers_stay_unsigned(values):
    array = np.array(values, np.uint64)
    small = store.smallest_dtype(array)
    assert np.array_equal(small.astype(np.uint64), array)
    assert small.dtype.kind == "u"
    if small.dtype.itemsize > 1:
        smaller = small.astype(f"u{small.dtype.itemsize // 2}")
        assert not np.array_equal(smaller.astype(np.uint64), array)


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (-128, 127, np.int8),
        (-129, 0, np.int16),
        (0, 128, np.int16),
        (-(2**31), 2**31 - 1, np.int32),
        (0, 2**31, np.int64),
    ],
)
def test_the_edges_of_the_integer_types(low: int, high: int, dtype):
    assert store.smallest_dtype(np.array([low, high])).dtype == dtype


@given(values=st.lists(st.floats(width=64), max_size=5))
def test_floats_keep_their_magnitude(values):
    array = np.array(values, np.float64)
    small = store.smallest_dtype(array)
    if small.dtype == np.float64:
        assert small is array
        return
    assert small.dtype == np.float32
    exact = ~np.isfinite(array) | (array == 0)
    assert np.array_equal(small[exact].astype(np.float64), array[exact], equal_nan=True)
    error = np.abs(small[~exact].astype(np.float64) - array[~exact])
    assert (error <= 2.0**-24 * np.abs(array[~exact])).all()


@pytest.mark.parametrize("value", [1e39, -1e300, 3.5e38, 1e-46, -1e-300, 1e-40])
def test_values_that_float32_cannot_hold_keep_float64(value: float):
    array = np.array([1.0, value])
    assert store.smallest_dtype(array).dtype == np.float64


def test_the_rest_is_left_alone():
    for dtype in (np.float32, np.float16, np.bool_, np.complex128, ml_dtypes.bfloat16):
        array = np.ones(3, dtype)
        assert store.smallest_dtype(array) is array
    assert store.smallest_dtype(jnp.array([1, 2])).dtype == np.int8
    assert store.smallest_dtype(np.zeros(0, np.int64)).dtype == np.int8
    assert store.smallest_dtype(np.array(300)).shape == ()
