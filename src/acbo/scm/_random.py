"""Random numbers in few calls: every call of a generator costs about a second to compile."""

from __future__ import annotations

from math import prod

import jax
import jax.numpy as jnp
from jax.scipy.special import erfinv
from jaxtyping import Array, PRNGKeyArray


def uniforms(key: PRNGKeyArray, *shapes: tuple[int, ...]) -> list[Array]:
    """Independent numbers strictly between 0 and 1, one array a shape, from one draw."""
    sizes = [prod(shape) for shape in shapes]
    bits = jax.random.bits(key, (sum(sizes),), jnp.uint32)
    # Midpoints of 2^23 equal intervals: never 0, never 1, exact in float32.
    numbers = ((bits >> 9).astype(jnp.float32) + 0.5) * 2.0**-23
    parts, start = [], 0
    for size, shape in zip(sizes, shapes, strict=True):
        parts.append(numbers[start : start + size].reshape(shape))
        start += size
    return parts


def between(u: Array, limits: tuple[float, float]) -> Array:
    """Uniform between two limits."""
    return limits[0] + (limits[1] - limits[0]) * u


def signed(u: Array, limits: tuple[float, float]) -> Array:
    """Uniform in size between two limits, of either sign."""
    v = 2 * u - 1
    return jnp.sign(v) * between(jnp.abs(v), limits)


def normal(u: Array) -> Array:
    """Standard normal."""
    return 2.0**0.5 * erfinv(2 * u - 1)
