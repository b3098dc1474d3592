"""An embedded pair: each particle takes steps of its own."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxtrace._config import as_float
from jaxtrace._errors import TrackError
from jaxtrace._status import Status
from jaxtrace.integrators._explicit import Integrator, Move

# Dormand and Prince 1980. The last row of A is the solution of order 5; E is its distance from
# the embedded one of order 4.
_A = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_C = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_E = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class DormandPrince(Integrator):
    """Order 5 with an error estimate of order 4; each particle chooses its own steps.

    Within one step of the tracker a particle takes as many steps as its tolerance asks for. One
    that would need a step below `min_step` gets the status `STEP_TOO_SMALL`. Gradients in reverse
    do not pass its loop; those in forward mode do.

    **Arguments:**

    - `rtol`, `atol`: the error of a step may be `atol + rtol * |x|` in each coordinate.
    - `min_step`, `max_step`: limits, in units of time. By default a millionth of the tracker's
        step, and the tracker's step.
    """

    rtol: Float[Array, ""]
    atol: Float[Array, ""]
    min_step: Float[Array, ""] | None
    max_step: Float[Array, ""] | None

    order: ClassVar[int] = 5
    own_clocks: ClassVar[bool] = True

    def __init__(
        self,
        *,
        rtol: float = 1e-5,
        atol: float = 1e-7,
        min_step: float | int | None = None,
        max_step: float | int | None = None,
    ):
        if not (rtol >= 0 and atol >= 0 and rtol + atol > 0):
            raise TrackError(f"rtol={rtol}, atol={atol}: expected numbers from 0 up, not both 0")
        for name, step in (("min_step", min_step), ("max_step", max_step)):
            if step is not None and not step > 0:
                raise TrackError(f"{name}={step}: expected a positive time")
        if min_step is not None and max_step is not None and min_step > max_step:
            raise TrackError(f"min_step={min_step} is above max_step={max_step}")
        self.rtol, self.atol = as_float(rtol), as_float(atol)
        self.min_step = None if min_step is None else as_float(min_step)
        self.max_step = None if max_step is None else as_float(max_step)

    def first_step(self, n: int, dt: float, dtype: Any) -> Float[Array, " n"]:
        """The tracker's step, or the greatest allowed."""
        most = abs(dt) if self.max_step is None else min(abs(dt), float(self.max_step))
        return jnp.full(n, most, dtype)

    def advance(self, field, x, v, t, dt, hint, active, step_size) -> Move:
        """See `Integrator.advance`."""
        span = jnp.abs(dt)
        sign = jnp.sign(dt)
        least = 1e-6 * span if self.min_step is None else self.min_step
        most = span if self.max_step is None else self.max_step

        def attempt(loop):
            x, v, gone, size, hint, status, going = loop
            left = span - gone
            h = jnp.clip(jnp.minimum(size, left), jnp.minimum(least, left), most)
            signed = sign * h
            now = t + sign * gone
            ks = [v]
            new = x
            for row, c in zip(_A, _C, strict=True):
                slope = _combine(row, ks)
                new = x + signed[None] * slope
                k, _, hint = field.evaluate(new, now + c * signed, hint, active & going)
                ks.append(k)
            error = signed[None] * _combine(_E, ks)
            scale = self.atol + self.rtol * jnp.maximum(jnp.abs(x), jnp.abs(new))
            ratio = jnp.sqrt(jnp.mean((error / scale) ** 2, axis=0))
            sound = jnp.isfinite(ratio)
            good = going & sound & (ratio <= 1.0)
            factor = jnp.clip(0.9 * jnp.maximum(ratio, 1e-10) ** -0.2, 0.2, 5.0)
            small = going & sound & ~good & (h <= least)
            broken = going & ~sound
            gone = jnp.where(good, gone + h, gone)
            # A last step cut short by the end says nothing against the size before it.
            wish = jnp.where(good & (h < size), jnp.maximum(size, h * factor), h * factor)
            size = jnp.where(going & sound, jnp.clip(wish, least, most), size)
            status = jnp.where(small, jnp.int8(Status.STEP_TOO_SMALL), status)
            status = jnp.where(broken, jnp.int8(Status.NAN_VELOCITY), status)
            done = gone >= span * (1 - 1e-6)
            return (
                jnp.where(good[None], new, x),
                jnp.where(good[None], ks[-1], v),
                gone,
                size,
                hint,
                status,
                going & ~done & ~small & ~broken,
            )

        n = x.shape[1]
        first = (
            x,
            v,
            jnp.zeros(n, x.dtype),
            step_size,
            hint,
            jnp.zeros(n, jnp.int8),
            active,
        )
        x, _, _, size, hint, status, _ = lax.while_loop(
            lambda loop: jnp.any(loop[-1]), attempt, first
        )
        return Move(x, status, hint, size)


def _combine(row: tuple[float, ...], ks: list[Array]) -> Array:
    terms = [
        np.float32(a) * k if k.dtype == np.float32 else a * k
        for a, k in zip(row, ks, strict=True)
        if a
    ]
    return sum(terms[1:], terms[0])
