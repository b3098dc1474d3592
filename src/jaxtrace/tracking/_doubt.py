"""Steps that numbers cannot tell: too short beside the place or the time where they are taken."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np

from jaxtrace._config import float_dtype
from jaxtrace._errors import TraceWarning
from jaxtrace.fields._analytic import AnalyticField
from jaxtrace.fields._field import Field
from jaxtrace.integrators import Diffusion
from jaxtrace.tracking._particles import Particles
from jaxtrace.tracking._schedule import Schedule

FEWEST = 8
"""Units in the last place that a step must have: below, rounding makes or stops the way."""


class Doubt:
    """Looks at particles before and after a run, and warns once of each thing that is wrong.

    **Arguments:**

    - `field`: the velocity.
    - `diffusion`: the random walk, if there is one.
    - `schedule`: when, and how long a step is.
    """

    def __init__(self, field: Field, diffusion: Diffusion | None, schedule: Schedule):
        self._field, self._diffusion, self._schedule = field, diffusion, schedule
        self._said: set[str] = set()
        self._clock()

    def look(self, particles: Particles) -> None:
        """Warn where a step is lost in the rounding of positions, or longer than the domain."""
        going = np.asarray(particles.status) <= 1
        x = np.asarray(particles.x)[:, going]
        v = np.abs(np.asarray(particles.v, np.float64))[:, going]
        if not x.size or not np.isfinite(v).all():
            return
        metres = np.asarray(self._field.frame.metres(x.astype(np.float64)))
        step = v * abs(self._schedule.dt) * metres
        length = np.linalg.norm(step, axis=0)
        moving = length > 0
        if not moving.any():
            return
        grain = np.where(step > 0, np.spacing(np.abs(x)) * metres, 0).max(axis=0)
        typical = float(np.median(length[moving]))
        walk = self._walk()
        worst = int(np.argmax(np.where(moving, grain, 0)))
        if max(typical, walk) < FEWEST * float(np.median(grain[moving])):
            place = [round(float(c), 3) for c in x[:, worst]]
            self._warn(
                "grain",
                f"a step of {abs(self._schedule.dt):g} moves a particle by {typical:.3g}"
                f"{self._unit()}, and near {place} {float_dtype().name} tells places apart "
                f"that are {float(grain[worst]):.3g}{self._unit()} apart: a step is "
                f"{typical / float(grain[worst]):.2g} units in the last place, and below {FEWEST} "
                "the way is made by rounding. Take longer steps, use "
                "jaxtrace.configure(dtype='float64'), or move the origin of the coordinates "
                "near the particles",
            )
        bounds = self._field.bounds
        if bounds is not None and not isinstance(self._field, AnalyticField):
            share = v * abs(self._schedule.dt) / (np.asarray(bounds[1] - bounds[0]))[:, None]
            jump = float(np.median(share.max(axis=0)[moving]))
            if jump > 1:
                self._warn(
                    "jump",
                    f"a step of {abs(self._schedule.dt):g} moves a particle by {jump:.3g} times "
                    "the size of the domain: look at the units of velocities, coordinates and dt",
                )

    def _walk(self) -> float:
        """The typical step of the random walk."""
        if self._diffusion is None or self._diffusion.constant is None:
            return 0.0
        greatest = float(np.max(np.asarray(self._diffusion.constant)))
        return (2 * greatest * abs(self._schedule.dt)) ** 0.5

    def _clock(self) -> None:
        """Warn where a formula sees times that are too far from 0 to tell steps apart."""
        if not any(isinstance(f, AnalyticField) and _sees_time(f) for f in _all(self._field)):
            return
        late = max(abs(self._schedule.start), abs(self._schedule.end))
        grain = float(np.spacing(late, dtype=float_dtype()))
        if abs(self._schedule.dt) < FEWEST * grain:
            self._warn(
                "clock",
                f"an AnalyticField sees times near {late:g}, which {float_dtype().name} tells "
                f"apart at {grain:g}, with steps of {abs(self._schedule.dt):g}: its clock jumps. "
                "Count time from a later moment, or use jaxtrace.configure(dtype='float64')",
            )

    def _unit(self) -> str:
        return " m" if self._field.frame.axes else ""

    def _warn(self, what: str, message: str) -> None:
        if what not in self._said:
            self._said.add(what)
            warnings.warn(message, TraceWarning, stacklevel=4)


def _all(field: Any) -> list[Any]:
    """A field and those that it is made of."""
    inner = getattr(field, "fields", None) or ([field.field] if hasattr(field, "field") else [])
    return [field, *(one for part in inner for one in _all(part))]


def _sees_time(field: AnalyticField) -> bool:
    """Whether its formula reads the time."""
    kind = float_dtype()
    shapes = jax.ShapeDtypeStruct((field.dim,), kind), jax.ShapeDtypeStruct((), kind)
    traced = jax.make_jaxpr(field.fn)(*shapes).jaxpr
    time = traced.invars[-1]
    used = {id(v) for equation in traced.eqns for v in equation.invars}
    return id(time) in used or any(v is time for v in traced.outvars)
