"""Axes of charts: ranges, scales, ticks."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np


@dataclasses.dataclass(frozen=True)
class Box:
    """The part of a drawing where the lines are."""

    left: float | int
    right: float | int
    bottom: float | int
    top: float | int

    def across(self, share: Any) -> Any:
        """From 0..1 to a place from left to right."""
        return self.left + (self.right - self.left) * share

    def up(self, share: Any) -> Any:
        """From 0..1 to a place from bottom to top."""
        return self.bottom + (self.top - self.bottom) * share


@dataclasses.dataclass(frozen=True)
class Axis:
    """A range of values, its scale and its ticks."""

    low: float
    high: float
    scale: Literal["linear", "log"]
    ticks: tuple[tuple[float, str], ...]

    @classmethod
    def fit(
        cls, values: np.ndarray, scale: Literal["linear", "log"], *, wanted: int, padded: bool
    ) -> Axis:
        """An axis for these values with about `wanted` ticks.

        `padded` lets it begin and end at a tick.
        """
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if values.size else (1.0, 1.0)
        fit = _fit_log if scale == "log" else _fit_linear
        low, high, places = fit(low, high, wanted, padded)
        return cls(low, high, scale, tuple((place, tick_label(place)) for place in places))

    def place(self, values: Any) -> Any:
        """Where values are between low (0) and high (1)."""
        if self.scale == "log":
            low, high = math.log10(self.low), math.log10(self.high)
            return (np.log10(values) - low) / (high - low)
        return (np.asarray(values) - self.low) / (self.high - self.low)


def _fit_linear(
    low: float, high: float, wanted: int, padded: bool
) -> tuple[float, float, list[float]]:
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = nice_step((high - low) / wanted)
    if padded:
        low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return low, high, [index * step for index in range(first, last + 1)]


def _fit_log(
    low: float, high: float, wanted: int, padded: bool
) -> tuple[float, float, list[float]]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    every = math.ceil((last - first) / wanted)
    first -= (first - last) % every
    if padded or low == high:
        low, high = 10.0**first, 10.0**last
    places = [10.0**power for power in range(first, last + 1, every)]
    return low, high, [place for place in places if low <= place <= high]


def nice_step(rough: float | int) -> float:
    """The next of 1, 2, 2.5, 5, 10, 20, 25, ... at or above."""
    size = 10.0 ** math.floor(math.log10(rough))
    factors = (1, 2, 2.5, 5, 10)
    return next(size * f for f in factors if size * f >= rough * (1 - 1e-9))


def tick_label(value: float | int) -> str:
    """A number as short as it can be: `0.25`, `1,500`, `20k`, `3M`."""
    for suffix, size, least in (("G", 1e9, 1e9), ("M", 1e6, 1e6), ("k", 1e3, 1e4)):
        if abs(value) >= least:
            return f"{value / size:.4g}{suffix}"
    if value and abs(value) < 1e-3:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{value:,.6g}" if abs(value) >= 1 else f"{round(value, 6):g}"
