from __future__ import annotations

import subprocess
import sys

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from worldloom import batch
from worldloom.batch import AdaptiveBatch


def statistics(tree):
    """Rows apart, with results of several shapes and dtypes."""
    x, n = tree["x"], tree["n"]
    return {"sum": x.sum(1) * n, "rows": (jnp.sort(x, axis=1), n > 2)}


@hypothesis.given(
    rows=st.sampled_from([0, 1, 5, 8]),
    size=st.sampled_from([1, 3, 4, 8]),
    on_host=st.booleans(),
    to_host=st.booleans(),
)
def test_chunks_give_what_one_call_gives(rows, size, on_host, to_host):
    rng = np.random.default_rng(rows)
    xs = {"x": rng.normal(size=(rows, 3)).astype(np.float32), "n": np.arange(rows, dtype="f4")}
    given = xs if on_host else jax.tree.map(jnp.asarray, xs)
    found = batch.chunked_map(statistics, given, batch=size, output="host" if to_host else "device")
    expected = statistics(jax.tree.map(jnp.asarray, xs))
    kind = np.ndarray if to_host else jax.Array
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(a, kind)
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_one_program_serves_all_chunks_and_later_calls(no_recompile):
    fn = jax.vmap(lambda x: x * 3)
    first, second = jnp.arange(22), jnp.arange(22) + 1
    batch.chunked_map(fn, first, batch=5)
    with no_recompile():
        found = batch.chunked_map(fn, second, batch=5)
    np.testing.assert_array_equal(found, 3 * np.arange(1, 23))


def test_rows_are_computed_in_chunks_of_the_size_asked_for():
    seen = []

    def fn(x):
        jax.debug.callback(lambda x: seen.append(x.tolist()), x, ordered=True)
        return x

    batch.chunked_map(fn, np.arange(7, dtype=np.int32), batch=3)
    jax.effects_barrier()
    assert seen == [[0, 1, 2], [3, 4, 5], [4, 5, 6]]


def test_typed_keys_go_in_and_come_out():
    keys = jax.random.split(jax.random.key(0), 5)
    for output in ("host", "device"):
        found = batch.chunked_map(
            jax.vmap(lambda k: jax.random.fold_in(k, 1)), keys, batch=2, output=output
        )
        expected = jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys)
        assert found.dtype == keys.dtype
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))


def test_arrays_bound_to_the_function_are_arguments(no_recompile):
    def fn(table, x):
        return table[x]

    xs = np.array([2, 0, 1])
    first = jax.tree_util.Partial(fn, jnp.array([1.0, 2.0, 3.0]))
    second = jax.tree_util.Partial(fn, jnp.array([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(batch.chunked_map(first, xs, batch=2), [3, 1, 2])
    with no_recompile():
        np.testing.assert_array_equal(batch.chunked_map(second, xs, batch=2), [7, 5, 6])


def test_a_plan_gives_its_best_size_and_auto_makes_one():
    sizes = []

    def fn(x):
        sizes.append(x.shape[0])
        return x

    plan = batch.Plan(memory=1, largest=9, best=4, points=((64, 64), (128, 128)))
    batch.chunked_map(fn, np.zeros(10), batch=plan)
    assert sizes == [4]
    np.testing.assert_array_equal(batch.chunked_map(jnp.exp, np.zeros(10)), np.ones(10))


def test_progress_is_drawn_on_the_error_stream(capsys):
    batch.chunked_map(jnp.exp, np.zeros(10), batch=3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "100%" in err


@pytest.mark.parametrize(
    ("xs", "options", "words"),
    [
        ({"a": np.zeros(3), "b": np.zeros(4)}, {}, r"xs\['b'\] has 4 rows but xs\['a'\] has 3"),
        ({"a": np.zeros(3), "t": 1.0}, {}, r"xs\['t'\] is 1\.0, which has no rows.*Partial"),
        ({}, {}, "xs holds no array"),
        (np.zeros(3), {"batch": 0}, "batch must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_named(xs, options, words):
    with pytest.raises(batch.BatchError, match=words):
        batch.chunked_map(lambda x: x, xs, **({"batch": 2} | options))


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x: x[:1], "fn returned 1 rows for 2.*jax.vmap"),
        (lambda x: x.sum(), "the result of fn is .* has no rows"),
    ],
)
def test_a_function_that_mixes_rows_is_named(fn, words):
    with pytest.raises(batch.BatchError, match=words):
        batch.chunked_map(fn, np.zeros(4), batch=2)


def out_of_memory():
    return jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.")


class Limited:
    """A function of a batch size that fails above a limit."""

    def __init__(self, limit, error=out_of_memory):
        self.limit, self.error, self.tried = limit, error, []

    def __call__(self, size):
        self.tried.append(size)
        if size > self.limit:
            raise self.error()
        return size


@pytest.mark.parametrize("error", [out_of_memory, MemoryError])
def test_the_size_is_halved_until_it_fits(error):
    sizes, fn = AdaptiveBatch(100), Limited(9, error)
    assert sizes.attempt(fn) == (8, 8)
    assert fn.tried == [64, 32, 16, 8]
    assert sizes.failures == 3


def test_the_size_grows_back_and_patience_doubles_with_each_failure():
    sizes, fn = AdaptiveBatch(8, patience=2), Limited(4)
    for _ in range(20):
        sizes.attempt(fn)
    # Fails at 8, at 8 again after 2 successes, then after 4, then after 8.
    assert fn.tried == [8, *[4] * 2, 8, *[4] * 4, 8, *[4] * 8, 8, *[4] * 6]
    fn.limit = 8
    for _ in range(40):
        sizes.attempt(fn)
    assert sizes.size == 8


def test_it_grows_up_to_the_largest_and_no_further():
    sizes = AdaptiveBatch(3, largest=20, patience=1)
    used = [sizes.attempt(Limited(10**9))[0] for _ in range(6)]
    assert used == [2, 4, 8, 16, 16, 16]


@hypothesis.given(
    start=st.integers(1, 5000), limits=st.lists(st.integers(1, 5000), min_size=1, max_size=60)
)
def test_sizes_are_powers_of_two_that_fit(start, limits):
    sizes, fn = AdaptiveBatch(start, patience=1), Limited(0)
    for limit in limits:
        fn.limit = limit
        size, _ = sizes.attempt(fn)
        assert 1 <= size <= min(limit, start)
    assert all(size & (size - 1) == 0 for size in fn.tried)


def test_other_errors_pass():
    sizes = AdaptiveBatch(8)
    with pytest.raises(ValueError, match="mine"):
        sizes.attempt(Limited(0, lambda: ValueError("mine")))
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        sizes.attempt(Limited(0, lambda: jax.errors.JaxRuntimeError("INTERNAL: broken")))
    assert sizes.size == 8


def test_one_that_does_not_fit_is_an_error():
    with pytest.raises(batch.BatchMemoryError, match=r"1 does not fit.* allocating 8 bytes"):
        AdaptiveBatch(4).attempt(Limited(0))


@pytest.mark.parametrize(
    "options", [{"start": 0}, {"start": 4, "largest": 2}, {"start": 4, "patience": 0}]
)
def test_senseless_adaptive_batches_are_refused(options):
    with pytest.raises(batch.BatchError, match="expected 1 <= start <= largest"):
        AdaptiveBatch(**options)


LIMITED_PROCESS = """
import resource, sys
import jax, jax.numpy as jnp, numpy as np, psutil
from worldloom import batch

MIB = 2**20
def steps(x, width):
    # The outputs of a scan are kept: four times `width` floats of temporaries a row.
    def step(carry, t):
        return carry, x[:, None] + t * jnp.arange(width, dtype=jnp.float32)[None]
    return jax.lax.scan(step, 0, jnp.arange(4.0))[1].max((0, 2))
def fn(x):
    return steps(x, MIB // 16)

xs = np.arange(300, dtype=np.float32)
expected = batch.chunked_map(fn, xs, batch=4)
# Buffers are freed, threads and arenas are there: from here on a limit bounds the arrays.
used = psutil.Process().memory_info().vms
resource.setrlimit(resource.RLIMIT_AS, (used + 200 * MIB,) * 2)
try:
    batch.chunked_map(fn, xs, batch=256)
    print("fitted")
except jax.errors.JaxRuntimeError as error:
    print("failed", batch.is_out_of_memory(error))
sizes = batch.AdaptiveBatch(256)
found = batch.chunked_map(fn, xs, batch=sizes)
print(sizes.failures > 0, 4 < sizes.size < 256, np.array_equal(found, expected))
def huge(x):
    return steps(x, 512 * MIB // 16)
try:
    batch.chunked_map(huge, xs, batch=batch.AdaptiveBatch(2))
except batch.BatchMemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space: run it on Linux")
def test_memory_that_really_runs_out():
    done = subprocess.run(
        [sys.executable, "-c", LIMITED_PROCESS],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["failed True", "True True True"]
    assert lines[2].startswith("a batch of 1 row needs 512.0")
