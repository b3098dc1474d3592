"""Random walk: unresolved motion as diffusion."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace._config import as_float
from jaxtrace._errors import TrackError
from jaxtrace.fields._field import Field


class Diffusion(eqx.Module):
    """Milstein's scheme for diffusion with a diffusivity that may vary in space and time.

    Along each axis a particle moves by `sqrt(2 K) dW + K' (dW**2 + dt) / 2`, with `K'` the slope
    of the diffusivity along that axis. So a well mixed tracer stays well mixed.

    **Arguments:**

    - `diffusivity`: one number, one for each axis, or a field with one component or one for each
        axis. Length squared over time.
    """

    constant: Float[Array, " axes"] | None
    field: Field | None

    def __init__(self, diffusivity: Any, dim: int):
        self.constant, self.field = None, None
        if isinstance(diffusivity, Field):
            if diffusivity.dim != dim or diffusivity.components not in (1, dim):
                raise TrackError(
                    f"diffusivity is a field of {diffusivity.components} components in "
                    f"{diffusivity.dim} dimensions; expected 1 or {dim} components in {dim}"
                )
            self.field = diffusivity
            return
        values = np.broadcast_to(np.asarray(diffusivity, np.float64), (dim,))
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise TrackError(f"diffusivity={diffusivity}: expected numbers from 0 up")
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
        if self.constant is not None:
            return jnp.sqrt(2.0 * self.constant)[:, None] * wiener
        assert self.field is not None
        field = self.field
        dim = x.shape[0]
        rows = []
        for i in range(dim):
            c = i if field.components == dim else 0
            along = jnp.zeros_like(x).at[i].set(1.0)
            k, slope = jax.jvp(lambda x, c=c: field.evaluate(x, t).value[c], (x,), (along,))
            k = jnp.maximum(k, 0.0)
            rows.append(jnp.sqrt(2.0 * k) * wiener[i] + 0.5 * slope * (wiener[i] ** 2 + span))
        return jnp.stack(rows)


def noise_of(
    key: Array, number: Int[Array, " n"], step: Int[Array, ""], dim: int, dtype: Any
) -> Float[Array, "dim n"]:
    """Standard normal numbers that depend on the key, the particle and the step alone."""

    def one(number):
        own = jax.random.fold_in(jax.random.fold_in(key, number), step)
        return jax.random.normal(own, (dim,), dtype)

    return jax.vmap(one, out_axes=1)(number)
