"""How many particles are where: kernel densities on the device."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxtrace._config import as_float
from jaxtrace._errors import TraceError
from worldloom import compiled

_BLOCK = 1024


def kde(
    points: Any,
    at: Any,
    *,
    bandwidth: float | int | str = "scott",
    weights: Any = None,
) -> Float[Array, " m"]:
    """Gaussian kernel density of `points` at places; its integral is 1.

    The kernel has the shape of the points' own covariance, scaled by the bandwidth factor, as in
    SciPy's `gaussian_kde`.

    **Arguments:**

    - `points`: `[N, dim]`.
    - `at`: `[M, dim]`.
    - `bandwidth`: `"scott"`, `"silverman"`, or the factor itself.
    - `weights`: `[N]`, from 0 up.

    ```python
    import numpy as np
    from jaxtrace.density import kde

    points = np.random.default_rng(0).normal(size=(2000, 2))
    peak = kde(points, [[0.0, 0.0]])
    assert abs(peak[0] - 1 / (2 * np.pi)) < 0.03
    ```
    """
    points, at, weights = _check(points, at, weights)
    n, dim = points.shape
    effective = 1.0 / float((weights**2).sum())
    if isinstance(bandwidth, str):
        factors = {
            "scott": effective ** (-1 / (dim + 4)),
            "silverman": (effective * (dim + 2) / 4) ** (-1 / (dim + 4)),
        }
        if bandwidth not in factors:
            raise TraceError(f"bandwidth={bandwidth!r}: expected one of {sorted(factors)}")
        factor = factors[bandwidth]
    else:
        factor = float(bandwidth)
    if not factor > 0:
        raise TraceError(f"bandwidth={bandwidth}: expected a positive number")
    if n <= dim:
        raise TraceError(f"{n} points span no volume in {dim} dimensions; more than {dim} needed")
    covariance = np.atleast_2d(np.cov(points.T, aweights=weights)) * factor**2
    if np.linalg.cond(covariance) > 1e12:
        raise TraceError("the points lie in a plane or on a line, so they have no density there")
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    scale = abs(np.linalg.det(whiten)) / (2 * math.pi) ** (dim / 2)
    centre = points.mean(axis=0)
    sums = _sum_kernels(
        as_float((points - centre) @ whiten.T),
        as_float(weights),
        as_float((at - centre) @ whiten.T),
        kind="gaussian",
    )
    return sums * scale


def sph_density(
    points: Any,
    at: Any,
    *,
    smoothing_length: float | int,
    kernel: str = "cubic",
    weights: Any = None,
) -> Float[Array, " m"]:
    """Smoothed-particle density of `points` at places; its integral is the sum of the weights.

    **Arguments:**

    - `points`, `at`: `[N, dim]` and `[M, dim]`.
    - `smoothing_length`: the length `h` of the kernel, which ends at `2 h`.
    - `kernel`: `"cubic"` spline, or Wendland's C2.
    - `weights`: mass of each particle; all together 1 by default.
    """
    given = weights is not None
    total = float(np.sum(np.asarray(weights, np.float64))) if given else 1.0
    points, at, weights = _check(points, at, weights)
    h = float(smoothing_length)
    if not h > 0:
        raise TraceError(f"smoothing_length={smoothing_length}: expected a positive length")
    dim = points.shape[1]
    norms = {
        "cubic": {2: 10 / (7 * math.pi), 3: 1 / math.pi},
        "wendland": {2: 7 / (4 * math.pi), 3: 21 / (16 * math.pi)},
    }
    if kernel not in norms:
        raise TraceError(f"kernel={kernel!r}: expected one of {sorted(norms)}")
    centre = points.mean(axis=0)
    sums = _sum_kernels(
        as_float((points - centre) / h),
        as_float(weights * total),
        as_float((at - centre) / h),
        kind=kernel,
    )
    return sums * (norms[kernel][dim] / h**dim)


@compiled(static=("kind",))
def _sum_kernels(
    points: Float[Array, "n dim"], weights: Float[Array, " n"], at: Float[Array, "m dim"], kind: str
) -> Float[Array, " m"]:
    """Weighted sums of kernels, points in blocks, so that memory is `M * 1024` at most."""
    n, dim = points.shape
    blocks = -(-n // _BLOCK)
    extra = blocks * _BLOCK - n
    points = jnp.concatenate([points, jnp.zeros((extra, dim), points.dtype)])
    weights = jnp.concatenate([weights, jnp.zeros(extra, weights.dtype)])

    def add(total, block):
        some, weight = block
        square = jnp.zeros((at.shape[0], some.shape[0]), at.dtype)
        for i in range(dim):
            square = square + (at[:, i][:, None] - some[:, i][None, :]) ** 2
        return total + jnp.sum(_KERNELS[kind](square) * weight[None, :], axis=1), None

    parts = (points.reshape(blocks, _BLOCK, dim), weights.reshape(blocks, _BLOCK))
    return lax.scan(add, jnp.zeros(at.shape[0], at.dtype), parts)[0]


def _gaussian(square: Array) -> Array:
    return jnp.exp(-0.5 * square)


def _cubic(square: Array) -> Array:
    q = jnp.sqrt(square)
    near = 1.0 - 1.5 * square + 0.75 * square * q
    far = 0.25 * jnp.maximum(2.0 - q, 0.0) ** 3
    return jnp.where(q < 1.0, near, far)


def _wendland(square: Array) -> Array:
    q = jnp.sqrt(square)
    return jnp.maximum(1.0 - 0.5 * q, 0.0) ** 4 * (2.0 * q + 1.0)


_KERNELS = {"gaussian": _gaussian, "cubic": _cubic, "wendland": _wendland}


def _check(points: Any, at: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points, at = np.asarray(points, np.float64), np.asarray(at, np.float64)
    for name, array in (("points", points), ("at", at)):
        if array.ndim != 2 or array.shape[1] not in (2, 3) or len(array) == 0:
            raise TraceError(f"{name} has shape {list(array.shape)}; expected [N, 2] or [N, 3]")
        if not np.isfinite(array).all():
            i = int(np.argmin(np.isfinite(array).all(axis=1)))
            raise TraceError(f"{name}[{i}] is not finite: {array[i].tolist()}")
    if points.shape[1] != at.shape[1]:
        raise TraceError(f"points have {points.shape[1]} coordinates and `at` {at.shape[1]}")
    weights = np.ones(len(points)) if weights is None else np.asarray(weights, np.float64)
    if weights.shape != (len(points),) or not (weights >= 0).all() or not weights.sum() > 0:
        raise TraceError(
            f"weights has shape {list(weights.shape)}; expected one number from 0 up for each of "
            f"{len(points)} points, not all 0"
        )
    return points, at, weights / weights.sum()
