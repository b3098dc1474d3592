"""How fast worlds run: a monitor, a benchmark, a profile, and a compiled episode."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.data import JaxArcTask, TaskBuffer, create_mock_task
from jaxarc.envs import (
    ArcState,
    JaxArcConfig,
    arc_reset,
    arc_step,
    batch_step,
    create_test_config,
)
from jaxarc.envs.structured_actions import Action
from jaxarc.utils._workload import guide_action
from worldloom import count_compiles, unroll, watch

__all__ = [
    "TARGET_BATCH_EFFICIENCY",
    "TARGET_MEMORY_REDUCTION",
    "TARGET_STEP_TIME",
    "TARGET_THROUGHPUT",
    "PerformanceMonitor",
    "benchmark_performance",
    "create_optimized_episode_runner",
    "profile_with_jax_profiler",
]

TARGET_STEP_TIME = 1.0
"""Milliseconds of one step."""
TARGET_THROUGHPUT = 10_000
"""Steps a second of a batch."""
TARGET_MEMORY_REDUCTION = 0.9
"""Share of memory that small records save."""
TARGET_BATCH_EFFICIENCY = 0.8
"""Share of the best throughput."""


class PerformanceMonitor:
    """Times calls to the end of their work, and keeps compilation apart.

    A call that compiles is counted in `metrics["jit_compilation_times"]` and not among the times
    of steps or resets, which it would spoil.

    ```python
    import jax
    from jaxarc import PerformanceMonitor, PointAction, create_mock_task, create_test_config

    monitor = PerformanceMonitor()
    config, task = create_test_config(), create_mock_task()
    state, obs = monitor.monitor_reset(jax.random.key(0), config, task)
    for row in range(5):
        state, *_ = monitor.monitor_step(state, PointAction(0, row, 5), config)
    monitor.print_report()
    ```
    """

    def __init__(self):
        self.metrics: dict[str, Any] = {
            "step_times": [],
            "reset_times": [],
            "memory_usage": [],
            "throughput": [],
            "jit_compilation_times": {},
        }

    def time_function(
        self, func: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> tuple[Any, float]:
        """The result of a call, and the seconds until it was computed."""
        start = time.perf_counter()
        result = jax.block_until_ready(func(*args, **kwargs))
        return result, time.perf_counter() - start

    def monitor_step(self, state: ArcState, action: Action, config: JaxArcConfig) -> Any:
        """`arc_step`, timed."""
        result, elapsed = self._time("step", arc_step, state, action, config)
        if elapsed is not None:
            self.metrics["step_times"].append(elapsed)
        return result

    def monitor_reset(
        self, key: jax.Array, config: JaxArcConfig, task: JaxArcTask | TaskBuffer
    ) -> Any:
        """`arc_reset`, timed."""
        result, elapsed = self._time("reset", arc_reset, key, config, task)
        if elapsed is not None:
            self.metrics["reset_times"].append(elapsed)
        return result

    def monitor_batch_step(self, states: ArcState, actions: Action, config: JaxArcConfig) -> Any:
        """`batch_step`, its throughput in worlds a second."""
        result, elapsed = self._time("batch_step", batch_step, states, actions, config)
        if elapsed is not None:
            self.metrics["throughput"].append(states.done.shape[0] / elapsed)
        return result

    def _time(self, name: str, func: Callable[..., Any], *args: Any) -> tuple[Any, float | None]:
        with count_compiles() as compiles:
            result, elapsed = self.time_function(func, *args)
        self.metrics["memory_usage"].append(watch.host_bytes())
        if compiles.compiled or compiles.loaded:
            self.metrics["jit_compilation_times"].setdefault(name, []).append(elapsed)
            return result, None
        return result, elapsed

    def get_statistics(self) -> dict[str, float]:
        """Mean, spread and extremes of what was timed, and how often each function compiled."""
        stats: dict[str, float] = {}
        for name in ("step", "reset"):
            if times := self.metrics[f"{name}_times"]:
                stats[f"{name}_time_mean"] = float(np.mean(times))
                stats[f"{name}_time_std"] = float(np.std(times))
                stats[f"{name}_time_min"] = float(np.min(times))
                stats[f"{name}_time_max"] = float(np.max(times))
        if rates := self.metrics["throughput"]:
            stats["throughput_mean"] = float(np.mean(rates))
            stats["throughput_max"] = float(np.max(rates))
        for name, seconds in self.metrics["jit_compilation_times"].items():
            stats[f"{name}_compilations"] = len(seconds)
        return stats

    def print_report(self) -> None:
        """Print the statistics; a function that compiled more than once is named."""
        stats = self.get_statistics()
        print("Performance report")
        for name in ("step", "reset"):
            if f"{name}_time_mean" in stats:
                ms = {
                    key: 1e3 * stats[f"{name}_time_{key}"] for key in ("mean", "std", "min", "max")
                }
                print(
                    f"  {name} time: {ms['mean']:.2f} ms +- {ms['std']:.2f}, "
                    f"{ms['min']:.2f} to {ms['max']:.2f}"
                )
        if "throughput_mean" in stats:
            print(
                f"  throughput: {stats['throughput_mean']:,.0f} worlds/s, at best "
                f"{stats['throughput_max']:,.0f}"
            )
        for name, seconds in self.metrics["jit_compilation_times"].items():
            again = "" if len(seconds) == 1 else f", RECOMPILED {len(seconds) - 1} times"
            print(f"  {name} compiled: {seconds[0]:.2f} s{again}")


def benchmark_performance(
    config: JaxArcConfig | None = None,
    task: JaxArcTask | TaskBuffer | None = None,
    *,
    num_runs: int = 1000,
) -> dict[str, float | bool]:
    """Time single steps called from Python, one after the other, warmed up and waited for.

    **Returns:** `step_time_ms`, `throughput` in steps a second, and `meets_target`: whether a
    step takes `TARGET_STEP_TIME` or less.
    """
    config, task = config or create_test_config(), task or create_mock_task()
    if num_runs < 1:
        raise ValueError(f"num_runs must be 1 or more, got {num_runs}")
    state, _ = arc_reset(jax.random.key(42), config, task)
    actions = [guide_action(config, i) for i in range(10)]
    for action in actions[:2]:
        jax.block_until_ready(arc_step(state, action, config))
    start = time.perf_counter()
    for i in range(num_runs):
        state, *_ = arc_step(state, actions[i % 10], config)
    jax.block_until_ready(state)
    each = (time.perf_counter() - start) / num_runs
    print(f"Average step time: {1e3 * each:.3f} ms")
    print(f"Throughput: {1 / each:,.0f} steps/s")
    return {
        "step_time_ms": 1e3 * each,
        "throughput": 1 / each,
        "meets_target": 1e3 * each <= TARGET_STEP_TIME,
    }


def profile_with_jax_profiler(
    config: JaxArcConfig,
    task: JaxArcTask | TaskBuffer,
    output_dir: str | os.PathLike[str] = "./jax_profile",
) -> watch.Profile:
    """Trace 100 steps into a folder, and print the kernels that take the time.

    Compilation is over before the trace begins. The trace opens in XProf and TensorBoard.
    """
    state, _ = arc_reset(jax.random.key(42), config, task)
    jax.block_until_ready(arc_step(state, guide_action(config, 0), config))
    with watch.profile(output_dir) as profile:
        for i in range(100):
            state, *_ = arc_step(state, guide_action(config, i), config)
    profile.print(top=10)
    print(f"Profile saved to {profile.file}")
    return profile


def create_optimized_episode_runner(
    config: JaxArcConfig,
    task: JaxArcTask | TaskBuffer,
    max_steps: int = 50,
    *,
    policy: Callable[[Any, Any, jax.Array], Action] | None = None,
) -> Callable[[jax.Array, Any], dict[str, Any]]:
    """A whole episode as one compiled function.

    **Arguments:**

    - `max_steps`: steps of the loop. An episode that ends earlier stays as it ended.
    - `policy`: `policy(policy_params, observation, key) -> action`; without one, cells are
        painted black one after the other.

    **Returns:** `run_episode(key, policy_params)`, which gives `final_state`, `episode_reward` and
    `episode_length`; it may be mapped over keys.

    ```python
    import jax
    from jaxarc import create_mock_task, create_optimized_episode_runner, create_test_config

    runner = create_optimized_episode_runner(create_test_config(), create_mock_task())
    result = runner(jax.random.key(0), None)
    assert result["episode_length"] <= 50
    ```
    """
    if max_steps < 1:
        raise ValueError(f"max_steps must be 1 or more, got {max_steps}")

    def episode(key: jax.Array, policy_params: Any, task: Any) -> dict[str, Any]:
        state, seen = arc_reset(key, config, task)
        tasks = task if isinstance(task, TaskBuffer) else None

        def step(carry, t):
            state, seen, reward, length = carry
            if policy is None:
                action = guide_action(config, t)
            else:
                action = policy(policy_params, seen, jax.random.fold_in(key, t))
            live = (~state.done).astype(jnp.int32)
            state, seen, gained, *_ = arc_step(state, action, config, tasks=tasks)
            return (state, seen, reward + gained, length + live), None

        start = (state, seen, jnp.float32(0), jnp.int32(0))
        (state, _, reward, length), _ = unroll(step, start, length=max_steps, remat=False)
        return {"final_state": state, "episode_reward": reward, "episode_length": length}

    compiled = jax.jit(episode)
    return lambda key, policy_params: compiled(key, policy_params, task)
