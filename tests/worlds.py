"""Three miniature worlds: a grid that is edited, a particle in a vortex, a regression that is
trained. Every room of the engine is proven on them, because those are the three kinds of user.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, UInt8


class World(NamedTuple):
    """A step for the whole batch, its first state, and the inputs of `length` steps."""

    name: str
    step: Any
    state: Any
    inputs: Any
    length: int


class Grid(eqx.Module):
    """A small picture and how often it was edited."""

    cells: UInt8[Array, "*worlds 8 8"]
    edits: Int[Array, "*worlds"]


def edit(grid: Grid, action: Int[Array, " 3"]) -> tuple[Grid, Int[Array, ""]]:
    """Paint one cell of one grid; the output is the number of coloured cells."""
    row, col, colour = action
    cells = grid.cells.at[row, col].set(colour.astype(jnp.uint8))
    grid = Grid(cells, grid.edits + 1)
    return grid, jnp.sum(cells > 0, dtype=jnp.int32)


edit_all = jax.vmap(edit)


class Particle(eqx.Module):
    """Where one particle is, and its own stream of random numbers."""

    position: Float[Array, "*worlds 2"]
    key: Array


def swirl(position: Float[Array, " 2"]) -> Float[Array, " 2"]:
    """Velocity of solid rotation with period 2 pi."""
    return jnp.stack([-position[1], position[0]])


def drift(particle: Particle, t: Int[Array, ""]) -> tuple[Particle, Float[Array, ""]]:
    """One RK4 step of a twentieth, plus a small kick; the output is the radius."""
    h = 0.05
    x = particle.position
    k1 = swirl(x)
    k2 = swirl(x + h / 2 * k1)
    k3 = swirl(x + h / 2 * k2)
    k4 = swirl(x + h * k3)
    kick = 1e-3 * jax.random.normal(jax.random.fold_in(particle.key, t), (2,))
    x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4) + kick
    return Particle(x, particle.key), jnp.sqrt(jnp.sum(x * x))


drift_all = jax.vmap(drift, in_axes=(0, None))

OPTIMIZER = optax.sgd(0.05, momentum=0.9)


class Trainee(eqx.Module):
    """Weights being fitted and the state of their optimiser."""

    weights: Float[Array, " 4"]
    optimizer: Any


def fit(trainee: Trainee, t: Int[Array, ""]) -> tuple[Trainee, Float[Array, ""]]:
    """One gradient step on a fresh batch of a linear regression; the output is the loss."""
    key = jax.random.fold_in(jax.random.key(7), t)
    x = jax.random.normal(key, (32, 4))
    y = x @ jnp.array([1.0, -2.0, 3.0, 0.5])
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(trainee.weights)
    updates, optimizer = OPTIMIZER.update(gradient, trainee.optimizer)
    weights = optax.apply_updates(trainee.weights, updates)
    return Trainee(weights, optimizer), loss  # pyright: ignore[reportArgumentType]


def grid_world(worlds: int = 6, length: int = 40) -> World:
    """`worlds` empty grids and `length` random edits of each."""
    state = Grid(jnp.zeros((worlds, 8, 8), jnp.uint8), jnp.zeros(worlds, jnp.int32))
    rng = np.random.default_rng(0)
    inputs = np.stack(
        [
            rng.integers(0, 8, (length, worlds)),
            rng.integers(0, 8, (length, worlds)),
            rng.integers(0, 10, (length, worlds)),
        ],
        axis=-1,
    ).astype(np.int32)
    return World("grid", edit_all, state, inputs, length)


def vortex_world(worlds: int = 6, length: int = 40) -> World:
    """`worlds` particles on a ray, each with a key of its own."""
    position = jnp.stack([jnp.linspace(0.5, 2.0, worlds), jnp.zeros(worlds)], axis=1)
    state = Particle(position, jax.random.split(jax.random.key(1), worlds))
    return World("vortex", drift_all, state, None, length)


def regression_world(length: int = 40) -> World:
    """One linear regression that starts from zero."""
    weights = jnp.zeros(4)
    return World("regression", fit, Trainee(weights, OPTIMIZER.init(weights)), None, length)


def all_worlds(length: int = 40) -> list[World]:
    """The three of them, `length` steps each."""
    return [grid_world(length=length), vortex_world(length=length), regression_world(length)]
