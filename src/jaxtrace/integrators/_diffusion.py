"""Random walk: unresolved motion as diffusion."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace._config import as_float
from jaxtrace._errors import TrackError
from jaxtrace.fields._field import Field
from jaxtrace.fields._frame import DEGREE, Frame
from worldloom._way import way

_SQUARE_METRES = ("m2/s", "m2s-1", "m^2/s", "m**2/s", "m^2s^-1", "m**2s**-1", "m2s^-1", "m2.s-1")


class Diffusion(eqx.Module):
    """Milstein's scheme for diffusion with a diffusivity that may vary in space and time.

    Along each axis a particle moves by `sqrt(2 K) dW + K' (dW**2 + dt) / 2`, with `K'` the slope
    of the diffusivity along that axis. So a well mixed tracer stays well mixed.

    On longitude and latitude this is done in metres, and converted. Parallels get shorter towards
    the poles; without a drift of `-K tan(latitude) / R` towards the equator particles would gather
    at the poles.

    **Arguments:**

    - `diffusivity`: one number, one for each axis, or a field with one component or one for each
        axis. Square metres a second; where the axes are not known, coordinates squared over time.
    - `dim`: 2 or 3.
    - `frame`: what the coordinates of the velocity measure.
    """

    constant: Float[Array, " axes"] | None
    field: Field | None
    frame: Frame = eqx.field(static=True)

    def __init__(self, diffusivity: Any, dim: int, frame: Frame | None = None):
        self.constant, self.field = None, None
        self.frame = frame = frame or Frame()
        if isinstance(diffusivity, Field):
            if diffusivity.dim != dim or diffusivity.components not in (1, dim):
                raise TrackError(
                    f"diffusivity is a field of {diffusivity.components} components in "
                    f"{diffusivity.dim} dimensions; expected 1 or {dim} components in {dim}"
                )
            units = diffusivity.frame.units
            if units and units.replace(" ", "") not in _SQUARE_METRES:
                raise TrackError(
                    f"diffusivity is a field in {units!r}; expected m2/s"
                    + way(". Multiply it, and say its units with frame=Frame(units='m2/s')")
                )
            self.field = diffusivity
            _refuse_axes(frame, np.ones(dim))
            return
        values = np.broadcast_to(np.asarray(diffusivity, np.float64), (dim,))
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise TrackError(f"diffusivity={diffusivity}: expected numbers from 0 up")
        _refuse_axes(frame, values)
        self.constant = as_float(values)

    def kick(
        self,
        x: Float[Array, "dim n"],
        t: Float[Array, ""],
        dt: Float[Array, ""],
        noise: Float[Array, "dim n"],
    ) -> Float[Array, "dim n"]:
        """What diffusion adds to a step from `x`, given a standard normal number an axis."""
        span = jnp.abs(dt)
        wiener = jnp.sqrt(span) * noise
        unit = None if self.frame.flat else self.frame.metres(x)
        if self.constant is not None:
            move = jnp.sqrt(2.0 * self.constant)[:, None] * wiener
            return move if unit is None else move / unit + self._to_equator(x, span, self.constant)
        assert self.field is not None
        field = self.field
        dim = x.shape[0]
        rows, values = [], []
        for i in range(dim):
            c = i if field.components == dim else 0
            along = jnp.zeros_like(x).at[i].set(1.0)
            k, slope = jax.jvp(lambda x, c=c: field.evaluate(x, t).value[c], (x,), (along,))
            k = jnp.maximum(k, 0.0)
            slope = slope if unit is None else slope / unit[i]
            rows.append(jnp.sqrt(2.0 * k) * wiener[i] + 0.5 * slope * (wiener[i] ** 2 + span))
            values.append(k)
        move = jnp.stack(rows)
        return move if unit is None else move / unit + self._to_equator(x, span, values)

    def _to_equator(self, x: Array, span: Array, k: Any) -> Float[Array, "dim n"]:
        """The drift in latitude that keeps a tracer well mixed where parallels get shorter."""
        drift = jnp.zeros_like(x)
        if "latitude" not in self.frame.axes or "longitude" not in self.frame.axes:
            return drift
        i = self.frame.axes.index("latitude")
        cosine = jnp.maximum(self.frame.cosine(x), 1e-6)
        tangent = jnp.sin(x[i] * (math.pi / 180)) / cosine
        return drift.at[i].set(-k[i] * span * tangent * (math.pi / 180 / DEGREE**2))


def noise_of(
    key: Array, number: Int[Array, " n"], step: Int[Array, ""], dim: int, dtype: Any
) -> Float[Array, "dim n"]:
    """Standard normal numbers that depend on the key, the particle and the step alone."""

    def one(number):
        own = jax.random.fold_in(jax.random.fold_in(key, number), step)
        return jax.random.normal(own, (dim,), dtype)

    return jax.vmap(one, out_axes=1)(number)


def _refuse_axes(frame: Frame, values: np.ndarray) -> None:
    """Refuse square metres a second along axes that have no metres."""
    why = {
        "pascals": "measures pressure, on which m2/s have no meaning",
        "map": "is that of a map projection, of which the scale is not known",
    }
    for i, axis in enumerate(frame.axes):
        if axis in why and values[i] > 0:
            raise TrackError(
                f"diffusivity is in m2/s, but axis {i} of the field {why[axis]}"
                + way(
                    ". Give one number an axis, with 0 for that one, or say otherwise with "
                    "dataset.field(frame=Frame(...))"
                )
            )
