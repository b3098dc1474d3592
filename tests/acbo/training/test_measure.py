"""Measurements, each with a case that is good and one that is bad."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny_model

from acbo.training import (
    benchmark_sustained_performance,
    create_jax_surrogate_train_step,
    measure_compilation_speedup,
    monitor_memory_usage,
)


def chain(x):
    for _ in range(30):
        x = jnp.sin(x) + 1
    return x


def test_many_small_operations_gain_by_compilation():
    speedup = measure_compilation_speedup(jax.jit(chain), jnp.ones(8), rounds=3)
    ratio, fast, slow = speedup
    assert ratio == speedup > 3
    assert speedup.low <= speedup <= speedup.high
    np.testing.assert_allclose(fast, slow, rtol=1e-5)
    # The first call compiles. A ratio with it would be far larger than the one given.
    assert speedup.first_seconds > speedup.seconds
    assert speedup == pytest.approx(speedup.slow_seconds / speedup.seconds, rel=0.9)
    assert f"{speedup:.1f}" in str(speedup)


def test_one_large_operation_gains_nothing_however_long_it_compiles():
    x = jnp.ones((700, 700))
    speedup = measure_compilation_speedup(lambda x: x @ x, x, rounds=3)
    assert 0.3 < speedup < 3


def test_the_speedup_of_a_training_step():
    step = create_jax_surrogate_train_step(tiny_model.TinyModel())
    key = jax.random.key(0)
    params, opt_state = step.init(key)
    speedup, fast, slow = measure_compilation_speedup(
        step, params, opt_state, tiny_model.batch(), key, rounds=2
    )
    assert speedup > 3
    assert fast[2]["total_loss"] == pytest.approx(slow[2]["total_loss"], rel=1e-4)


def test_sustained_performance_of_a_slow_rival_and_of_an_equal_one():
    def fast(x):
        time.sleep(0.002)
        return x

    def slow(x):
        time.sleep(0.03)
        return x

    assert benchmark_sustained_performance(fast, slow, (1.0,), n_runs=3) > 4
    assert 0.3 < benchmark_sustained_performance(fast, fast, (1.0,), n_runs=3) < 3
    assert benchmark_sustained_performance(slow, fast, (1.0,), n_runs=3) < 0.25
    with pytest.raises(ValueError, match="0 rounds"):
        benchmark_sustained_performance(fast, fast, (1.0,), n_runs=0)


def test_memory_of_results_and_of_temporaries():
    million = 1_000_000
    kept, increase, peak = monitor_memory_usage(lambda: jnp.ones(4 * million))
    assert kept.shape == (4 * million,)
    assert 16 * million <= increase <= 17 * million
    assert peak >= increase
    host = monitor_memory_usage(lambda: np.ones(2 * million))
    assert 16 * million <= host.increase <= 17 * million
    assert host.temporary is None

    @jax.jit
    def passing(x):
        # An outer product that is needed whole: its rows are sorted.
        return jnp.sort(x[:, None] * x[None, :], axis=1).sum()

    used = monitor_memory_usage(passing, jnp.ones(1500))
    assert used.increase < million
    assert used.temporary is not None
    assert used.peak >= used.temporary >= 1500 * 1500 * 4


def test_what_holds_nothing_takes_nothing():
    used = monitor_memory_usage(lambda: 1)
    assert used.result == 1
    assert abs(used.increase) < 100_000
    assert used.peak < 100_000
