"""When a run begins and ends, how long its steps are, and which of them are kept."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np

from jaxtrace._errors import TraceWarning, TrackError

NEVER = 2**31 - 1
_MOST_STEPS = 2**31 - 2


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A row of equal steps. `dt` is negative in a run backwards in time."""

    start: float
    dt: float
    steps: int

    @property
    def end(self) -> float:
        """The time after the last step."""
        return self.start + self.dt * self.steps

    def times(self, steps: Any) -> np.ndarray:
        """The times after so many steps."""
        return self.start + self.dt * np.asarray(steps, np.float64)

    def step_at(self, times: Any, name: str) -> np.ndarray:
        """The numbers of steps after which it is `times`, which must be whole."""
        times = np.atleast_1d(np.asarray(times, np.float64))
        exact = (times - self.start) / self.dt
        steps = np.round(exact)
        wrong = (np.abs(exact - steps) > 1e-4) | (steps < 0) | (steps > self.steps)
        if wrong.any():
            i = int(np.argmax(wrong))
            around = np.floor(exact[i]) + np.arange(2)
            below, above = self.times(np.clip(around, 0, self.steps))
            raise TrackError(
                f"{name}[{i}] = {times[i]:g} is not the time of a step. The nearest are "
                f"{below:g} and {above:g}; the run goes from {self.start:g} to {self.end:g} in "
                f"steps of {self.dt:g}"
            )
        return steps.astype(np.int64)


def make_schedule(
    time_span: Any, n_timesteps: int | None, dt: float | None, default_start: float
) -> Schedule:
    """A schedule from two of the three, or from all three.

    Where all three are given and contradict each other, `n_timesteps` and `dt` are followed, from
    the beginning of `time_span`, with a warning.
    """
    if n_timesteps is not None:
        n_timesteps = _whole(n_timesteps)
    if dt is not None:
        dt = _number(dt, "dt")
        if dt == 0:
            raise TrackError(f"dt={dt}: expected a time other than 0")
    if time_span is None:
        if n_timesteps is None or dt is None:
            raise TrackError("give two of time_span, n_timesteps and dt")
        return Schedule(default_start, dt, n_timesteps)
    if np.shape(time_span) != (2,):
        raise TrackError(f"time_span={time_span!r}: expected two times")
    start, end = (_number(t, f"time_span[{i}]") for i, t in enumerate(time_span))
    span = end - start
    if not (math.isfinite(span) and span != 0):
        raise TrackError(f"time_span={(start, end)}: expected two different times")
    if dt is not None:
        if dt < 0 < span:
            raise TrackError(
                f"dt={dt:g} is negative, and time_span={(start, end)} runs forward; for a run "
                f"backwards give time_span={(end, start)}, else a positive dt"
            )
        dt = math.copysign(dt, span)  # the span says which way time runs
    if dt is None:
        if n_timesteps is None:
            raise TrackError("time_span alone is not enough: give n_timesteps or dt")
        return Schedule(start, span / n_timesteps, n_timesteps)
    if n_timesteps is None:
        exact = _few_enough(span / dt, f"time_span={(start, end)}, dt={dt:g}")
        steps = max(1, math.ceil(exact - 1e-6))
        if abs(span / steps - dt) > 1e-6 * abs(dt):
            warnings.warn(
                f"time_span is {span:g} long, which is not a multiple of dt={dt:g}; "
                f"taking {steps} steps of {span / steps:g}",
                TraceWarning,
                stacklevel=4,
            )
        return Schedule(start, span / steps, steps)
    schedule = Schedule(start, dt, n_timesteps)
    if abs(schedule.end - end) > 1e-4 * abs(dt):
        warnings.warn(
            f"time_span, n_timesteps and dt contradict each other: {n_timesteps} steps of {dt:g} "
            f"end at {schedule.end:g}, not at {end:g}. Following n_timesteps and dt; for the span, "
            f"leave one of them out (dt would be {span / n_timesteps:g}).",
            TraceWarning,
            stacklevel=4,
        )
    return schedule


def _number(value: Any, name: str) -> float:
    """A real, finite number."""
    number = np.asarray(value)
    if number.shape != () or number.dtype.kind not in "iuf" or not np.isfinite(number):
        hint = " in the seconds of the field's clock" if number.dtype.kind in "MOU" else ""
        raise TrackError(f"{name}={value!r}: expected a finite number{hint}")
    return float(number)


def _whole(value: Any) -> int:
    number = _number(value, "n_timesteps")
    if number != int(number) or number < 1:
        raise TrackError(f"n_timesteps={value}: expected a whole number from 1 up")
    return int(_few_enough(number, f"n_timesteps={value}"))


def _few_enough(steps: float, what: str) -> float:
    """So many steps; more than a run can count are refused."""
    if steps > _MOST_STEPS:
        raise TrackError(
            f"{what}: that is {steps:.3g} steps, and a run has at most {_MOST_STEPS:,}; take "
            "longer steps"
        )
    return steps


def warn_beyond(schedule: Schedule, span: tuple[float, float] | None) -> None:
    """Say so where a run goes on after the data end: the nearest slice holds."""
    if span is None:
        return
    slack = 1e-4 * abs(schedule.dt)
    early, late = sorted((schedule.start, schedule.end))
    if early < span[0] - slack or late > span[1] + slack:
        warnings.warn(
            f"the run goes from {schedule.start:g} to {schedule.end:g}, but the field has data "
            f"from {span[0]:g} to {span[1]:g}; outside, its first or last slice holds",
            TraceWarning,
            stacklevel=4,
        )


def release_steps(times: Any, n: int, schedule: Schedule) -> np.ndarray:
    """The step at which each particle is released."""
    if times is None:
        return np.zeros(n, np.int32)
    times = np.asarray(times)
    real = times.dtype.kind in "iuf"
    times = times.astype(np.float64) if real else times
    if not real or times.shape != (n,) or not np.isfinite(times).all():
        raise TrackError(
            f"release_times has shape {list(times.shape)} and type {times.dtype}; expected a "
            f"finite time for each of {n} particles"
        )
    steps = np.ceil((times - schedule.start) / schedule.dt - 1e-4)
    early = int((steps < 0).sum())
    if early:
        i = int(np.argmax(steps < 0))
        warnings.warn(
            f"{early} of {n} particles have a release time before the run begins at "
            f"{schedule.start:g} (release_times[{i}] = {times[i]:g}): they are released at its "
            "beginning",
            TraceWarning,
            stacklevel=4,
        )
    late = int((steps >= schedule.steps).sum())
    if late:
        warnings.warn(
            f"{late} of {n} particles are never released: the run ends at {schedule.end:g}",
            TraceWarning,
            stacklevel=4,
        )
    return np.clip(steps, 0, NEVER).astype(np.int32)
