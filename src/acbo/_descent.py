"""Following a gradient: the learning rate over time, the mean over devices, and one update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from worldloom import mesh

Network = TypeVar("Network", bound=eqx.Module)


def warm_cosine(
    highest: float, steps: int, *, warm_up: int = 0, last: float = 0.01
) -> Callable[[Any], Float[Array, ""]]:
    """Up in `warm_up` steps, then down along a cosine to the share `last` of the highest."""

    def rate(step: Any) -> Float[Array, ""]:
        t = jnp.asarray(step).astype(jnp.float32)
        done = jnp.clip((t - warm_up) / max(steps - warm_up, 1), 0.0, 1.0)
        falling = last + (1 - last) * 0.5 * (1 + jnp.cos(jnp.pi * done))
        return highest * jnp.minimum((t + 1) / (warm_up + 1), falling)

    return rate


def mean_over_devices(found: Any) -> Any:
    """The mean of what each device found, inside `worldloom.mesh.each_device`."""
    row, whole = ravel_pytree(found)  # one message instead of one for each array
    return whole(lax.pmean(row, mesh.AXIS))


def follow(
    optimiser: optax.GradientTransformation,
    gradient: Any,
    memory: optax.OptState,
    network: Network,
) -> tuple[Network, optax.OptState]:
    """The network and the optimiser's memory after one update."""
    # Optax raises its decay rates to integer powers, which strict promotion would refuse.
    with jax.numpy_dtype_promotion("standard"):
        updates, memory = optimiser.update(gradient, memory, eqx.filter(network, eqx.is_array))
    return eqx.apply_updates(network, updates), memory
