"""What compilation is worth, in time and in memory, measured without flattery."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from acbo._errors import OptionError
from acbo.training._step import SurrogateTrainStep
from worldloom import bench, watch


class Speedup(float):
    """How many times as fast. A number, and also the tuple of itself and two results.

    **Attributes:**

    - `low`, `high`: a 95 % interval.
    - `seconds`, `slow_seconds`: a call of the fast and of the slow way, in the median.
    - `first_seconds`: the first call of the fast way, compilation included. It is in no ratio.
    - `results`: what the fast and the slow way gave.
    """

    low: float
    high: float
    seconds: float
    slow_seconds: float
    first_seconds: float
    results: tuple[Any, Any]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int | slice) -> Any:
        return self._parts[index]

    @property
    def _parts(self) -> tuple[float, Any, Any]:
        return (float(self), *self.results)

    def __str__(self) -> str:
        return f"{float(self):.1f}x ({self.low:.1f}-{self.high:.1f})"


def measure_compilation_speedup(step: Callable[..., Any], *args: Any, rounds: int = 5) -> Speedup:
    """How many times as fast a step is compiled as uncompiled, on the same arguments.

    Both ways are warmed up, waited for, and timed in turn, `rounds` times; compile time is in no
    ratio. Unpacks into the ratio, the compiled result and the uncompiled one.

    **Arguments:**

    - `step`: a training step, a `jax.jit` function, or any function of arrays. A training step
      also takes `params, batch` alone: then the state of its optimizer is new.

    ```python
    import jax
    import jax.numpy as jnp
    from acbo.training import measure_compilation_speedup

    def chain(x):
        for _ in range(20):
            x = jnp.sin(x)
        return x

    speedup, fast, slow = measure_compilation_speedup(jax.jit(chain), jnp.ones(10), rounds=2)
    assert speedup > 1
    assert jnp.allclose(fast, slow)
    ```
    """
    if isinstance(step, SurrogateTrainStep) and len(args) == 2:
        params, batch = args
        args = (params, step.optimizer.init(params), batch, jax.random.key(0))
    fast, slow = both_ways(step)
    return _compare(fast, slow, args, rounds)


def benchmark_sustained_performance(
    jax_step: Callable[..., Any],
    regular_step: Callable[..., Any],
    args: Sequence[Any],
    n_runs: int = 10,
) -> Speedup:
    """How many times as fast one step is as another on the same arguments, over `n_runs` rounds.

    Both are warmed up first, then timed in turn, so that a busy moment meets both.
    """
    return _compare(jax_step, regular_step, tuple(args), n_runs)


def both_ways(step: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A step compiled, and the same one operation by operation."""
    if isinstance(step, SurrogateTrainStep):
        return step.compiled, step.uncompiled
    inside = getattr(step, "__wrapped__", None)
    if inside is None:
        return jax.jit(step), _by_operation(step)
    return step, _by_operation(inside)


def _by_operation(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with jax.disable_jit():
            return fn(*args)

    return run


def _compare(
    fast: Callable[..., Any], slow: Callable[..., Any], args: tuple, rounds: int
) -> Speedup:
    if rounds < 1:
        raise OptionError(f"{rounds} rounds; give 1 or more")
    results: dict[str, Any] = {}

    def keep(name: str, fn: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            results[name] = fn(*args)
            return results[name]

        return run

    found = bench.compare(
        {"slow": keep("slow", slow), "fast": keep("fast", fast)}, rounds=rounds, seconds=0.02
    )
    ratio = found.ratio("fast")
    speedup = Speedup(ratio.value)
    speedup.low, speedup.high = ratio.low, ratio.high
    speedup.seconds, speedup.slow_seconds = found["fast"].median, found["slow"].median
    speedup.first_seconds = found["fast"].first or 0.0
    speedup.results = results["fast"], results["slow"]
    return speedup


@dataclass(frozen=True)
class MemoryUse:
    """What a call took, in bytes. Unpacks into the result, the increase and the peak.

    **Attributes:**

    - `result`: what the call gave.
    - `increase`: memory that is still held afterwards: of Python and NumPy, and JAX's arrays.
    - `peak`: the most beyond what was held before: Python's peak, JAX's new arrays, and the
      temporary buffers of the program as XLA plans them (for `jax.jit` functions and our steps).
    - `temporary`: those buffers alone; `None` where the function has no program to ask.
    """

    result: Any
    increase: int
    peak: int
    temporary: int | None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.result, self.increase, self.peak))


def monitor_memory_usage(fn: Callable[..., Any], *args: Any) -> MemoryUse:
    """Call a function and see how much memory it takes, buffers of XLA included.

    `tracemalloc` alone sees only what Python and NumPy hold; JAX's arrays are not theirs.

    ```python
    import jax.numpy as jnp
    from acbo.training import monitor_memory_usage

    result, increase, peak = monitor_memory_usage(lambda: jnp.ones(1_000_000))
    assert increase >= 4_000_000
    ```
    """
    temporary = _temporary(fn, args)
    gc.collect()
    device = watch.device_bytes()
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        result = jax.block_until_ready(fn(*args))
        gc.collect()
        after, most = tracemalloc.get_traced_memory()
    finally:
        if started:
            tracemalloc.stop()
    arrays = watch.device_bytes() - device
    increase = after - before + arrays
    peak = max(most - before + max(arrays, 0) + (temporary or 0), increase)
    return MemoryUse(result, increase, peak, temporary)


def _temporary(fn: Callable[..., Any], args: tuple) -> int | None:
    lower = getattr(fn, "lower", None)
    if lower is None:
        return None
    plan = lower(*args).compile().memory_analysis()
    return None if plan is None else int(plan.temp_size_in_bytes)
