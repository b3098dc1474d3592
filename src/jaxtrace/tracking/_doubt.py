"""Steps that numbers cannot tell: too short beside the place or the time where they are taken."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxtrace._config import float_dtype
from jaxtrace._errors import TraceWarning
from jaxtrace._status import Status
from jaxtrace.fields._analytic import AnalyticField
from jaxtrace.fields._field import Field
from jaxtrace.integrators import Diffusion
from jaxtrace.tracking._particles import Particles
from jaxtrace.tracking._schedule import Schedule

FEWEST = 8
"""Units in the last place that a step must have: below, rounding makes or stops the way."""

_SAMPLE = 10_000


class _Look(NamedTuple):
    """What is typical of the particles that move at one moment."""

    step: float
    """The length of a step; metres where the axes are known."""
    grain: float
    """How far apart neighbouring numbers are there."""
    place: list[float]
    share: float
    """The length of a step beside that of the domain."""


class Doubt:
    """Looks at particles before and after a run, and says at its end what is wrong.

    **Arguments:**

    - `field`: the velocity.
    - `diffusion`: the random walk, if there is one.
    - `schedule`: when, and how long a step is.
    """

    def __init__(self, field: Field, diffusion: Diffusion | None, schedule: Schedule):
        self._field, self._diffusion, self._schedule = field, diffusion, schedule
        self._looks: list[_Look] = []
        self._clock()

    def look(self, particles: Particles) -> None:
        """Note how far a step takes particles that move, and what their numbers can tell."""
        some = slice(None, None, 1 + particles.number.shape[0] // _SAMPLE)
        going = np.asarray(particles.status)[some] <= Status.WAITING
        x = np.asarray(particles.x)[:, some][:, going]
        v = np.abs(np.asarray(particles.v)[:, some][:, going].astype(np.float64))
        metres = np.asarray(self._field.frame.metres(x.astype(np.float64)))
        step = v * abs(self._schedule.dt) * metres
        moving = (step > 0).any(axis=0) & np.isfinite(step).all(axis=0)
        if not moving.any():
            return
        grain = np.where(step > 0, np.spacing(np.abs(x)) * metres, 0).max(axis=0)[moving]
        bounds = self._field.bounds
        share = 0.0
        if bounds is not None and not isinstance(self._field, AnalyticField):
            extent = np.asarray(bounds[1] - bounds[0], np.float64)[:, None]
            share = np.median((v * abs(self._schedule.dt) / extent).max(axis=0)[moving])
        self._looks.append(
            _Look(
                step=float(np.median(np.linalg.norm(step, axis=0)[moving])),
                grain=float(np.median(grain)),
                place=[round(float(c), 3) for c in x[:, moving][:, int(np.argmax(grain))]],
                share=float(share),
            )
        )

    def say(self) -> None:
        """Warn where a step is lost in the rounding of positions, or longer than the domain.

        At some moment of a run many may stand still: what counts is the look with the longest
        steps.
        """
        if not self._looks:
            return
        walk = self._walk()
        look = max(self._looks, key=lambda look: max(look.step, walk) / look.grain)
        unit = " m" if self._field.frame.axes else ""
        if max(look.step, walk) < FEWEST * look.grain:
            warnings.warn(
                f"a step of {abs(self._schedule.dt):g} moves a particle by {look.step:.3g}{unit}, "
                f"and near {look.place} {float_dtype().name} tells places apart that are "
                f"{look.grain:.3g}{unit} apart: a step is {look.step / look.grain:.2g} units in "
                f"the last place, and below {FEWEST} the way is made by rounding. Take longer "
                "steps, use jaxtrace.configure(dtype='float64'), or move the origin of the "
                "coordinates near the particles",
                TraceWarning,
                stacklevel=3,
            )
        share = max(look.share for look in self._looks)
        if share > 1:
            warnings.warn(
                f"a step of {abs(self._schedule.dt):g} moves a particle by {share:.3g} times the "
                "size of the domain: look at the units of velocities, coordinates and dt",
                TraceWarning,
                stacklevel=3,
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
            warnings.warn(
                f"an AnalyticField sees times near {late:g}, which {float_dtype().name} tells "
                f"apart at {grain:g}, with steps of {abs(self._schedule.dt):g}: its clock jumps. "
                "Count time from a later moment, or use jaxtrace.configure(dtype='float64')",
                TraceWarning,
                stacklevel=4,
            )


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
