from __future__ import annotations

import contextlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pages import MB, fresh_pages

from worldloom import watch


def test_what_a_phase_keeps_and_what_it_only_uses():
    meter = watch.MemoryMeter(interval=0.002)
    with meter.phase("keep"):
        kept = fresh_pages(64 * MB)
    with meter.phase("use"):
        used = fresh_pages(64 * MB)
        time.sleep(1.0)  # a sample counts all live arrays, of which a long test run has many
        used.close()
    keep, use = meter.phases
    assert (keep.name, use.name) == ("keep", "use")
    assert keep.host_growth > 60 * MB
    assert use.host_growth < 10 * MB
    assert use.host_peak - use.host_before > 60 * MB
    assert use.seconds > 0.1
    assert len(kept) == 64 * MB


def test_device_memory_is_counted_to_the_byte():
    before = watch.device_bytes()
    x = jax.block_until_ready(jnp.ones((3, 1000), jnp.float32))
    assert watch.device_bytes() - before == 12_000
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.device_put(np.zeros(1000, np.int8), jax.NamedSharding(mesh, jax.P("d")))
    assert watch.device_bytes() - before == 12_000 + 1000
    both = jax.device_put(np.zeros(1000, np.int8), jax.NamedSharding(mesh, jax.P()))
    assert watch.device_bytes() - before == 12_000 + 1000 + 2000
    del x, split, both
    assert watch.device_bytes() == before


def test_phases_nest_and_repeat_and_survive_errors():
    meter = watch.MemoryMeter()
    with contextlib.suppress(KeyError), meter.phase("outer"):
        for _ in range(2):
            with meter.phase("inner"):
                x = jnp.ones(100)
        raise KeyError
    assert [phase.name for phase in meter.phases] == ["inner", "inner", "outer"]
    assert meter.phases[-1].device_growth == x.nbytes


def test_measuring_takes_less_than_a_hundredth_of_a_core():
    meter = watch.MemoryMeter()
    with meter.phase("sleep"):
        time.sleep(1.0)
    assert 0 < meter.phases[0].overhead < 0.01


def test_the_table_prints(capsys):
    meter = watch.MemoryMeter()
    with meter.phase("load it"):
        pass
    meter.print()
    assert "load it" in capsys.readouterr().out


def test_a_wrong_interval_is_named():
    with pytest.raises(watch.MeterError, match=r"interval is 0\.0"):
        watch.MemoryMeter(interval=0.0)


# Leaks.


@jax.jit
def work(x):
    return jnp.tanh(x @ x)


X = jnp.ones((64, 64))


def test_a_function_that_keeps_arrays_leaks():
    kept = []
    report = watch.find_leak(lambda: kept.append(work(X)), iterations=20, warmup=2)
    assert report.verdict == "leak"
    assert report.leaking
    assert report.slope_bytes_per_iteration == X.nbytes
    assert report.growth_bytes == 20 * X.nbytes
    assert "stay alive" in str(report)
    assert np.array_equal(np.diff(report.device), [X.nbytes] * 19)


def test_a_function_that_keeps_an_array_now_and_then_leaks():
    kept, calls = [], []

    def sometimes():
        calls.append(None)
        if len(calls) % 5 == 0:
            kept.append(work(X))

    report = watch.find_leak(sometimes, iterations=40, warmup=2)
    assert report.verdict == "leak"
    assert report.slope_bytes_per_iteration == pytest.approx(X.nbytes / 5, rel=0.3)


def test_a_function_that_keeps_nothing_does_not_leak():
    report = watch.find_leak(lambda: work(X), iterations=20)
    assert report.verdict == "no leak"
    assert not report.leaking
    assert len(report.host) == len(report.device) == 20


def test_a_cache_that_fills_is_no_leak():
    cache = {}

    def fill():
        cache[min(len(cache), 24)] = work(X)

    report = watch.find_leak(fill, iterations=40, warmup=0)
    assert report.verdict == "no leak"


def test_host_memory_leaks_by_the_threshold():
    kept = []

    def keep():
        kept.append(fresh_pages(MB))

    report = watch.find_leak(keep, iterations=20, warmup=2)
    assert report.verdict == "leak"
    assert report.slope_bytes_per_iteration == pytest.approx(MB, rel=0.3)
    assert "host memory" in report.reason
    kept.clear()
    report = watch.find_leak(keep, iterations=20, warmup=2, threshold_bytes=10e9)
    assert report.verdict == "no leak"
    assert "under the threshold" in report.reason


def test_a_hunt_that_shows_nothing_is_refused():
    with pytest.raises(watch.LeakHuntError, match="iterations is 3"):
        watch.find_leak(lambda: None, iterations=3)
    with pytest.raises(watch.LeakHuntError, match="warmup is -1"):
        watch.find_leak(lambda: None, warmup=-1)
