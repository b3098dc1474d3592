"""The Gray-Scott reaction: two chemicals that feed on each other while they spread.

One world is a small torus. `u` is food, `v` eats it and multiplies; food flows in at the rate
`feed`, and `v` is taken away at the rate `feed + kill`. Those two numbers decide whether a world
ends in spots, stripes, mazes or nothing.
"""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, Key, UInt8

from worldloom import mesh

SUBSTEPS = 20
"""Steps of the chemistry in one step of the run. A world stays in the cache for all of them."""

LEVELS = 48
"""Shades of a picture."""

_SIDE = 32
_FOOD_SPREADS, _EATER_SPREADS = 0.16, 0.08
_FEED, _KILL = (0.014, 0.062), (0.050, 0.0665)


class Worlds(eqx.Module):
    """One world, or a batch of them."""

    u: Float[Array, "*worlds 32 32"]
    v: Float[Array, "*worlds 32 32"]
    feed: Float[Array, "*worlds"]
    kill: Float[Array, "*worlds"]


def recipes(side: int) -> tuple[Float[Array, " worlds"], Float[Array, " worlds"]]:
    """Feed and kill rates of a square map of worlds: feed rises upwards, kill to the right."""
    feed = jnp.linspace(_FEED[1], _FEED[0], side)
    kill = jnp.linspace(_KILL[0], _KILL[1], side)
    return jnp.repeat(feed, side), jnp.tile(kill, side)


@functools.partial(jax.jit, static_argnames="side")
def begin(key: Key[Array, ""], side: int) -> Worlds:
    """`side * side` worlds full of food, with a few patches of `v` in each."""
    feed, kill = recipes(side)
    u, v = jax.vmap(_sow)(jax.random.split(key, side * side))
    return Worlds(u, v, feed, kill)


def _sow(key: Key[Array, ""]) -> tuple[Float[Array, "32 32"], Float[Array, "32 32"]]:
    places, noise = jax.random.split(key)
    corners = jax.random.randint(places, (4, 2), 0, _SIDE)
    offsets = (jnp.arange(_SIDE)[None, :, None] - corners[:, None, :]) % _SIDE
    rows, columns = jnp.moveaxis(offsets < 5, -1, 0)
    sown = jnp.any(rows[:, :, None] & columns[:, None, :], axis=0)
    shake = 0.1 * jax.random.uniform(noise, (_SIDE, _SIDE))
    return jnp.where(sown, 0.5, 1.0 - 0.2 * shake), jnp.where(sown, 0.25 + shake, 0.0)


def react(world: Worlds) -> Worlds:
    """One step of one world."""
    reaction = world.u * world.v * world.v
    u = world.u + _FOOD_SPREADS * _laplacian(world.u) - reaction + world.feed * (1 - world.u)
    v = world.v + _EATER_SPREADS * _laplacian(world.v) + reaction
    v = v - (world.feed + world.kill) * world.v
    return Worlds(u, v, world.feed, world.kill)


def _laplacian(x: Float[Array, "32 32"]) -> Float[Array, "32 32"]:
    """What the four neighbours have more than a cell, on a torus."""
    vertical = jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0)
    return vertical + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4 * x


def advance(worlds: Worlds, t: Int[Array, ""]) -> tuple[Worlds, None]:
    """Many steps of many worlds: a step for `worldloom.run`."""

    def many_steps(world: Worlds) -> Worlds:
        return jax.lax.fori_loop(0, SUBSTEPS, lambda _, world: react(world), world)

    return jax.lax.map(many_steps, worlds), None


def advance_on(devices: Mesh) -> jax.tree_util.Partial:
    """`advance`, one part of the batch on each device."""
    return jax.tree_util.Partial(
        mesh.each_device(advance, devices, in_axes=(0, None), out_axes=(0, None))
    )


def shades(v: Float[Array, "*worlds 32 32"]) -> UInt8[Array, "*worlds 32 32"]:
    """`v` as shades of a picture."""
    return jnp.clip(v * (LEVELS / 0.42), 0, LEVELS - 1).astype(jnp.uint8)
