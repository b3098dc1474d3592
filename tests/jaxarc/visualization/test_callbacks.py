"""Looking in from compiled code: nothing breaks it, nothing compiles anew, budgets are kept."""

from __future__ import annotations

import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.utils import visualization as viz
from jaxarc.utils.visualization import _callbacks

GRID = jnp.array([[1, 2, 0], [3, 4, 1]])


@pytest.fixture(autouse=True)
def _fresh():
    viz.reset_callback_performance_stats()
    _callbacks._rates.clear()


def stats(name: str) -> dict:
    jax.effects_barrier()
    return viz.get_callback_performance_stats()[name]


def test_a_grid_is_printed_from_jit_scan_and_vmap(capfd):
    @jax.jit
    def program(grids):
        def step(carry, grid):
            viz.jax_log_grid(grid, grid > 0, "one")
            return carry, grid + 1

        return jax.vmap(lambda grids: jax.lax.scan(step, 0, grids)[1])(grids)

    grids = jnp.tile(GRID, (2, 3, 1, 1))
    assert jnp.array_equal(program(grids), grids + 1)
    assert stats("jax_log_grid") | {"total_calls": 6, "error_count": 0} == stats("jax_log_grid")
    out = capfd.readouterr().out
    assert out.count("one\n1 2 · \n3 4 1 ") == 6


def test_outside_and_inside_print_the_same(capfd):
    viz.log_grid_to_console(GRID, title="Debug")
    outside = capfd.readouterr().out
    jax.jit(lambda grid: viz.jax_log_grid(grid, title="Debug"))(GRID)
    jax.effects_barrier()
    assert capfd.readouterr().out == outside != ""


def test_a_summary_is_one_line(capfd):
    jax.jit(viz.jax_log_episode_summary)(7, 41, 10.25, 0.5, False)
    jax.effects_barrier()
    (line,) = capfd.readouterr().out.splitlines()
    assert line == "episode 7  not solved  41 steps  reward +10.25  similarity 50%"


def test_the_report_lists_what_was_called(capfd):
    jax.jit(lambda grid: viz.jax_log_grid(grid))(GRID)
    jax.effects_barrier()
    row = stats("jax_log_grid")
    assert row["min_time_ms"] <= row["avg_time_ms"] <= row["max_time_ms"] == row["total_time_ms"]
    viz.print_callback_performance_report()
    assert "jax_log_" in capfd.readouterr().out
    viz.reset_callback_performance_stats()
    assert viz.get_callback_performance_stats() == {}


def test_a_callback_that_always_fails_changes_no_bit():
    def program(x, watch):
        def step(x, t):
            x = jnp.sin(3.1 * x) + 0.1
            if watch:
                viz.jax_log_grid(jnp.full((2, 2), 10) + t, title="colours that do not exist")
                viz.adaptive_visualization_callback(broken, x, callback_name="broken")
            return x, x.sum()

        return jax.lax.scan(step, x, jnp.arange(20))

    def broken(x):
        raise RuntimeError("always")

    run = jax.jit(program, static_argnums=1)
    x = jnp.linspace(0, 1, 1000)
    for one, other in zip(run(x, True), run(x, False), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert stats("jax_log_grid")["error_count"] == 20
    failed = stats("broken")
    assert failed["error_count"] == failed["total_calls"] >= 1


def test_a_closed_pipe_does_not_stop_the_program():
    script = """
import sys, jax, jax.numpy as jnp
from jaxarc.utils import visualization as viz
@jax.jit
def program(x):
    def step(x, t):
        viz.jax_log_grid(jnp.full((20, 20), 3))
        return x + 1, None
    return jax.lax.scan(step, x, jnp.arange(300))[0]
x = int(program(jnp.int32(0)))
jax.effects_barrier()
row = viz.get_callback_performance_stats()["jax_log_grid"]
print(x, row["total_calls"], row["error_count"], file=sys.stderr)
"""
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    run.stdout.readline()
    run.stdout.close()
    assert run.stderr is not None
    *_, last = (line for line in run.stderr.read().splitlines() if line.count(" ") == 2)
    run.stderr.close()
    run.wait(timeout=120)
    result, calls, errors = map(int, last.split())
    assert (result, calls) == (300, 300)
    assert errors > 0


class TestAdaptive:
    """One budget for each name; periods go up and down; nothing is compiled anew."""

    @staticmethod
    def program(func, worlds: int | None = None, budget: float = 2.0):
        def of_one(x, every, start):
            def step(carry, t):
                x, every = carry
                every = viz.adaptive_visualization_callback(
                    func, x, callback_name="f", max_avg_time_ms=budget, step=t, every=every
                )
                return (x + 1, every), None

            return jax.lax.scan(step, (x, every), start + jnp.arange(60))[0]

        if worlds is None:
            return jax.jit(of_one)
        return jax.jit(jax.vmap(of_one, in_axes=(0, None, None), out_axes=(0, 0)))

    def test_slow_calls_come_less_often_and_fast_ones_more_often_again(self, no_recompile):
        pause = 0.02
        program = self.program(lambda x: time.sleep(pause))
        x, every = program(jnp.float32(0), jnp.int32(1), jnp.int32(0))
        jax.effects_barrier()
        with no_recompile():
            slow = int(every)
            assert slow >= 10  # 20 ms within 2 ms a step
            before = stats("f")["total_calls"]
            x, every = program(x, every, jnp.int32(60))
            assert stats("f")["total_calls"] - before <= 6
            pause = 0.0
            for chunk in range(2, 12):
                x, every = program(x, every, jnp.int32(60 * chunk))
            assert int(every) == 1
        assert float(x) == 720

    def test_under_vmap_too(self):
        calls = []
        program = self.program(lambda x: (calls.append(1), time.sleep(0.01)), worlds=3)
        x, every = program(jnp.zeros(3), jnp.int32(1), jnp.int32(0))
        jax.effects_barrier()
        assert x.tolist() == [60.0] * 3
        assert set(every.tolist()) == {int(every[0])}
        assert int(every[0]) >= 15  # three calls of 10 ms within 2 ms a step
        assert 3 <= len(calls) < 90

    def test_without_a_carry_the_host_decides(self, no_recompile):
        @jax.jit
        def step(x):
            viz.adaptive_visualization_callback(
                lambda x: time.sleep(0.02), x, callback_name="f", max_avg_time_ms=2.0
            )
            return x + 1

        x = step(jnp.float32(0))
        with no_recompile():
            for _ in range(99):
                x = step(x)
        assert float(x) == 100
        row = stats("f")
        assert row["total_calls"] + row["skipped"] == 100
        assert row["total_calls"] < 40

    def test_a_name_has_one_budget(self):
        one = self.program(lambda x: None)
        one(jnp.float32(0), jnp.int32(1), jnp.int32(0))
        rate = _callbacks._rates["f"]
        self.program(lambda x: 1)(jnp.float32(0), jnp.int32(1), jnp.int32(0))
        assert _callbacks._rates["f"] is rate
        self.program(lambda x: 2, budget=3.0)(jnp.float32(0), jnp.int32(1), jnp.int32(0))
        assert _callbacks._rates["f"].budget_ms == 3.0
