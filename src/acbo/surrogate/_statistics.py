"""What a table of samples says about each pair of variables, in closed form.

Every array is `[i, j]`: what is known about an edge from i to j. Data are standardised. The learned
part of the network begins where these end.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from acbo._solve import inverse_positive
from acbo.scm import Samples

COUNT = 15
"""How many numbers `pair_statistics` gives for a pair."""

_RIDGE = 0.03


def pair_statistics(samples: Samples) -> Float[Array, "d d 15"]:
    """Correlations, regressions and effects of interventions for every pair, of size about 1."""
    values, intervened, rows, variables = samples
    dtype = values.dtype
    x, m = values.T, intervened.T.astype(dtype)
    r = rows[None, :].astype(dtype)
    n = jnp.maximum(r.sum(), 1.0)
    d = x.shape[0]
    eye = jnp.eye(d, dtype=dtype)

    free = r * (1 - m)  # rows in which j follows its causes
    calm = r * (1 - m.max(axis=0, keepdims=True))  # rows in which nothing is set
    calm_count = calm.sum()
    set_count = m.sum(axis=1)
    free_count = jnp.maximum(free.sum(axis=1), 1.0)

    # Products of variables over those rows, for each j; over calm ones, and over all.
    weighted = jnp.concatenate([free, calm, r])[:, None] * x[None]
    sums = (weighted.reshape(-1, x.shape[1]) @ values).reshape(d + 2, d, d)
    gram = sums[:d] / free_count[:, None, None]
    calm_covariance = sums[d] / jnp.maximum(calm_count, 1.0)
    free_covariance = _at_j(gram).T

    # What setting i does to j.
    of_set = jnp.concatenate([x * m, m])

    def against(y: Array) -> tuple[Array, Array]:
        products = of_set @ jnp.concatenate([y, y**2]).T
        return products[:d, :d], products[d:, d:]

    energy = (m * x**2).sum(axis=1)
    effect, swing = against(x * free)
    effect = effect / (energy + 0.5)[:, None]
    certainty = effect * jnp.sqrt(energy)[:, None]
    total = effect * (1 - eye) + eye

    ridge = _RIDGE * eye[None]
    inverse = jax.vmap(inverse_positive)(
        jnp.concatenate(
            [gram + ridge, sums[d + 1 :] / n + ridge, (total.T @ total + 0.05 * eye)[None]]
        )
    )
    direct = inverse[d + 1] @ total.T
    pooled = inverse[d]
    partial = -pooled / jnp.sqrt(_outer(jnp.diagonal(pooled)))

    # Regression of j on all others, over the rows in which j follows its causes.
    inverse = inverse[:d]
    own = jnp.diagonal(inverse, axis1=1, axis2=2)  # [j, i]
    at_j = _at_j(inverse)
    own_j = jnp.diagonal(own)
    slope = (-at_j / own_j[:, None]) * (1 - eye)  # [j, i]
    free_partial = (-at_j / jnp.sqrt(own * own_j[:, None])).T
    residual = (x - slope @ x) * free
    spread = (residual**2).sum(axis=1) / free_count
    drift, surprise = against(residual)
    drift = drift / (energy + 0.5)[:, None]
    surprise = surprise / ((set_count + 1.0)[:, None] * (spread + 0.02)[None, :])
    swing = swing / (set_count + 1.0)[:, None]

    numbers = jnp.stack(
        [
            calm_covariance,
            free_covariance,
            partial,
            free_partial,
            _bound(slope.T, 2.0),
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


def _at_j(matrices: Float[Array, "j a b"]) -> Float[Array, "j a"]:
    """Column j of each, without a gather."""
    eye = jnp.eye(matrices.shape[0], dtype=matrices.dtype)
    return (matrices * eye[:, None, :]).sum(axis=2)


def _outer(v: Array) -> Array:
    return v[:, None] * v[None, :]


def _bound(x: Array, limit: float) -> Array:
    """Smoothly held between `-limit` and `limit`."""
    return limit * jnp.tanh(x / limit)
