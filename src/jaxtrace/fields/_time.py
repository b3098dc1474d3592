"""Slices in time: which of them a moment lies between, and how much each counts."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError
from jaxtrace.fields._cubic import cubic_table
from jaxtrace.fields._field import gather


class Slices(eqx.Module):
    """Increasing times of slices, relative to `origin`.

    One slice is a steady field. Before the first and after the last slice, that slice holds.
    """

    times: Float[Array, " slices"]
    cubic: Float[Array, "intervals 4 4"] | None
    origin: Any
    count: int = eqx.field(static=True)

    def __init__(self, times: Any, method: str, origin: float | None = None):
        times = np.asarray(times, np.float64)
        check_times(times)
        if method not in ("linear", "cubic"):
            raise FieldError(f"time_method={method!r}: expected 'linear' or 'cubic'")
        if method == "cubic" and 1 < len(times) < 4:
            raise FieldError(
                f"time_method='cubic' needs 4 slices or more, there are {len(times)}; "
                "use time_method='linear'"
            )
        self.origin = float(times[0]) if origin is None else float(origin)
        self.times = as_float(times - self.origin)
        is_cubic = method == "cubic" and len(times) > 1
        self.cubic = as_float(cubic_table(times)) if is_cubic else None
        self.count = len(times)

    def absolute(self) -> np.ndarray:
        """The times as they were given, but for rounding."""
        return np.asarray(self.times, np.float64) + float(self.origin)

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last time; `None` where there is one slice, which holds always."""
        times = self.absolute()
        return (float(times[0]), float(times[-1])) if len(times) > 1 else None

    def rebase(self, origin: float) -> Slices:
        """The same times, relative to another origin."""
        shifted = as_float(np.asarray(self.times, np.float64) + (float(self.origin) - origin))
        return eqx.tree_at(lambda s: (s.times, s.origin), self, (shifted, float(origin)))

    def weights(self, t: Float[Array, "*n"]) -> tuple[Int[Array, "*n"], list[Float[Array, "*n"]]]:
        """The first of the slices that count at time `t`, and the weights of it and the next."""
        if self.count == 1:
            return jnp.zeros(t.shape, jnp.int32), [jnp.ones_like(t)]
        method = "compare_all" if t.ndim == 0 else "scan"
        cell = jnp.searchsorted(self.times[1:-1], t, side="right", method=method)
        cell = cell.astype(jnp.int32)
        left, right = gather(self.times, cell), gather(self.times, cell + 1)
        s = jnp.clip((t - left) / (right - left), 0.0, 1.0)
        if self.cubic is None:
            return cell, [1.0 - s, s]
        rows = self.cubic.reshape(-1)
        weights = []
        for tap in range(4):
            c = [gather(rows, cell * 16 + (4 * tap + power)) for power in range(4)]
            weights.append(c[0] + s * (c[1] + s * (c[2] + s * c[3])))
        return jnp.clip(cell - 1, 0, self.count - 4), weights


def check_times(times: np.ndarray) -> None:
    """Refuse times that are not a row of increasing numbers, naming the first that is wrong."""
    if times.ndim != 1 or len(times) == 0:
        raise FieldError(f"times has shape {list(times.shape)}; expected [T] with T of 1 or more")
    if not np.isfinite(times).all():
        raise FieldError(f"times[{int(np.argmin(np.isfinite(times)))}] is not finite")
    steps = np.diff(times)
    if (steps <= 0).any():
        i = int(np.argmax(steps <= 0))
        raise FieldError(
            f"times must increase: times[{i}] = {times[i]:g}, times[{i + 1}] = {times[i + 1]:g}"
        )
