"""What a table of samples says about each pair of variables, in closed form.

Every array is `[i, j]`: what is known about an edge from i to j. Data are standardised. The learned
part of the network begins where these end.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from acbo._solve import inverse_positive, solve_positive
from acbo.scm import Samples

COUNT = 15
"""How many numbers `pair_statistics` gives for a pair."""

_RIDGE = 0.03


def pair_statistics(samples: Samples) -> Float[Array, "d d 15"]:
    """Correlations, regressions and effects of interventions for every pair, of size about 1."""
    x, set_, rows, variables = samples
    dtype = x.dtype
    m = set_.astype(dtype)
    r = rows.astype(dtype)[:, None]
    n = jnp.maximum(r.sum(), 1.0)
    d = x.shape[1]
    eye = jnp.eye(d, dtype=dtype)

    free = r * (1 - m)  # rows in which j follows its causes
    calm = r * (1 - m.max(axis=1, keepdims=True))  # rows in which nothing is set
    calm_count = calm.sum()
    set_count = m.sum(axis=0)
    free_count = jnp.maximum(free.sum(axis=0), 1.0)

    calm_covariance = (x * calm).T @ x / jnp.maximum(calm_count, 1.0)
    free_covariance = x.T @ (x * free) / free_count[None, :]
    pooled = inverse_positive(x.T @ x / n + _RIDGE * eye)
    partial = -pooled / jnp.sqrt(_outer(jnp.diagonal(pooled)))

    # Regression of j on all others, over the rows in which j follows its causes.
    gram = jnp.einsum("nj,na,nb->jab", free, x, x) / free_count[:, None, None]
    inverse = jax.vmap(inverse_positive)(gram + _RIDGE * eye[None])
    own = jnp.diagonal(inverse, axis1=1, axis2=2)  # [j, i]
    at_j = jnp.take_along_axis(inverse, jnp.arange(d)[:, None, None], axis=2)[..., 0]  # [j, i]
    own_j = jnp.diagonal(own)
    slope = (-at_j / own_j[:, None]).T
    free_partial = (-at_j / jnp.sqrt(own * own_j[:, None])).T
    slope = slope * (1 - eye)
    residual = (x - x @ slope) * free
    spread = (residual**2).sum(axis=0) / free_count

    # What setting i does to j.
    energy = (m * x**2).sum(axis=0)
    effect = (x * m).T @ (x * free) / (energy + 0.5)[:, None]
    certainty = effect * jnp.sqrt(energy)[:, None]
    total = effect * (1 - eye) + eye
    direct = solve_positive(total.T @ total + 0.05 * eye, total.T)
    swing = (m.T @ (x**2 * free)) / (set_count + 1.0)[:, None]
    surprise = (m.T @ residual**2) / ((set_count + 1.0)[:, None] * (spread + 0.02)[None, :])
    drift = (x * m).T @ residual / (energy + 0.5)[:, None]

    numbers = jnp.stack(
        [
            calm_covariance,
            free_covariance,
            partial,
            free_partial,
            _bound(slope, 2.0),
            _bound(effect, 2.0),
            _bound(certainty, 8.0) / 4,
            _bound((eye - direct) * (1 - eye), 2.0),
            _bound(swing, 3.0),
            _bound(surprise, 4.0),
            _bound(drift, 2.0),
            jnp.broadcast_to(jnp.log1p(set_count)[:, None], (d, d)) / 4,
            jnp.broadcast_to(jnp.log1p(set_count)[None, :], (d, d)) / 4,
            jnp.broadcast_to(jnp.log1p(calm_count) / 5, (d, d)),
            jnp.broadcast_to(jnp.log(n) / 5, (d, d)),
        ],
        axis=-1,
    )
    exists = variables[:, None] & variables[None, :]
    return jnp.where(exists[..., None], numbers, 0.0)


def _outer(v: Array) -> Array:
    return v[:, None] * v[None, :]


def _bound(x: Array, limit: float) -> Array:
    """Smoothly held between `-limit` and `limit`."""
    return limit * jnp.tanh(x / limit)
