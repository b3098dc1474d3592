"""Does calling this again and again take more and more memory?"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable
from typing import Literal

import jax
import numpy as np
from jaxtyping import Float

from worldloom._errors import WorldloomError
from worldloom.watch._memory import device_bytes, host_bytes
from worldloom.watch._tables import megabytes


class LeakHuntError(WorldloomError, ValueError):
    """A leak hunt was given numbers that show nothing."""


@dataclasses.dataclass(frozen=True)
class LeakReport:
    """What `find_leak` saw. All sizes in bytes.

    **Attributes:**

    - `verdict`: `"leak"` or `"no leak"`.
    - `reason`: why, in one sentence.
    - `slope_bytes_per_iteration`: the steady growth of arrays of JAX if there is any, else of the
      resident set.
    - `growth_bytes`: that, over the iterations that were run.
    - `host`, `device`: the two series, one value an iteration: the resident set of the process,
      and the memory that JAX holds.
    """

    verdict: Literal["leak", "no leak"]
    reason: str
    slope_bytes_per_iteration: float
    growth_bytes: float
    host: tuple[int, ...]
    device: tuple[int, ...]

    @property
    def leaking(self) -> bool:
        """Whether the verdict is `"leak"`."""
        return self.verdict == "leak"

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"


def find_leak(
    fn: Callable[[], object],
    *,
    iterations: int = 60,
    warmup: int = 10,
    threshold_bytes: float | int = 100e6,
    horizon: int = 1000,
) -> LeakReport:
    """Call `fn()` again and again and watch the memory of the process.

    It is a leak if either

    - arrays of JAX stay alive, more of them all the time: that is known exactly, so any steady
      growth counts;
    - or the resident set grows steadily by `threshold_bytes` over `horizon` iterations: it is
      noisy, so small growth proves nothing.

    Growth that levels off (a cache that fills) is none. Slopes are medians over all pairs of
    iterations, which a single jump does not move.

    **Arguments:**

    - `fn`: called without arguments; what it returns is waited for and dropped.
    - `iterations`: how often it is measured, at least 8.
    - `warmup`: calls before that, for compilation and caches.

    ```python
    import jax.numpy as jnp
    from worldloom import watch

    kept = []
    report = watch.find_leak(lambda: kept.append(jnp.ones(1000)), iterations=20)
    assert report.verdict == "leak"
    assert report.slope_bytes_per_iteration >= 4000
    ```
    """
    if iterations < 8:
        raise LeakHuntError(f"iterations is {iterations}; expected 8 or more to see a trend")
    if warmup < 0 or horizon < 1 or threshold_bytes <= 0:
        raise LeakHuntError(
            f"warmup is {warmup}, horizon {horizon}, threshold_bytes {threshold_bytes}; expected "
            "warmup of 0 or more, the others positive"
        )
    for _ in range(warmup):
        jax.block_until_ready(fn())
    host, device = _series(fn, iterations)
    host_slope, device_slope = _steady_slope(host), _steady_slope(device)
    slope = device_slope or host_slope
    per_iteration = f"{slope:,.0f} bytes an iteration"
    if device_slope > 0:
        verdict, reason = "leak", f"arrays of JAX stay alive: {per_iteration}"
    elif host_slope * horizon >= threshold_bytes:
        verdict, reason = "leak", f"host memory grows steadily: {per_iteration}"
    elif slope > 0:
        reason = (
            f"host memory grows by {per_iteration}: {megabytes(slope * horizon)} MiB in {horizon} "
            f"iterations, under the threshold of {megabytes(threshold_bytes)} MiB"
        )
        verdict = "no leak"
    else:
        verdict, reason = "no leak", f"no steady growth in {iterations} iterations"
    return LeakReport(
        verdict=verdict,
        reason=reason,
        slope_bytes_per_iteration=slope,
        growth_bytes=slope * iterations,
        host=tuple(map(int, host)),
        device=tuple(map(int, device)),
    )


def _series(
    fn: Callable[[], object], iterations: int
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    host = np.empty(iterations)
    device = np.empty(iterations)
    gc.collect()
    gc.freeze()  # what exists now is not looked at again, which makes collecting cheap
    try:
        for i in range(iterations):
            jax.block_until_ready(fn())
            gc.collect()
            host[i] = host_bytes()
            device[i] = device_bytes()
    finally:
        gc.unfreeze()
    return host, device


def _steady_slope(series: Float[np.ndarray, " n"]) -> float:
    """Slope of growth that goes on to the end; zero where it levels off or falls."""
    half = len(series) // 2
    return max(0.0, min(_median_slope(series), _median_slope(series[half:])))


def _median_slope(series: Float[np.ndarray, " n"]) -> float:
    i, j = np.triu_indices(len(series), k=1)
    return float(np.median((series[j] - series[i]) / (j - i)))
