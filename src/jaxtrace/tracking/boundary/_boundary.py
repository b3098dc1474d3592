"""What a boundary is: a pure map of a step that was taken."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

import worldloom as wl
from jaxtrace._config import as_float
from jaxtrace._errors import BoundaryError
from worldloom import compiled


class Draw(NamedTuple):
    """What random numbers of a boundary may depend on."""

    key: Array
    number: Int[Array, " n"]
    """Numbers of the particles."""
    step: Int[Array, ""]


class Landing(NamedTuple):
    """Where particles end up."""

    x: Float[Array, "dim n"]
    status: Int[Array, " n"]
    """0 for who goes on, else a `Status`."""
    reseed: Bool[Array, " n"]
    """Who begins anew, with age 0, at `x`."""


class Boundary(eqx.Module):
    """Maps a step from one place to another to where it ends. Pure, and compiled with the step.

    Calling a boundary with places `[N, dim]` gives where particles at those places would be.
    """

    @property
    def reseeds(self) -> bool:
        """Whether slots of particles that left are used again."""
        return False

    @property
    def draws(self) -> bool:
        """Whether it uses random numbers."""
        return True

    @abc.abstractmethod
    def apply(self, old: Float[Array, "dim n"], new: Float[Array, "dim n"], draw: Draw) -> Landing:
        """Where a step from `old` to `new` ends."""

    def __call__(self, positions: Any, *, key: int | None = None) -> Float[Array, "n dim"]:
        """Where particles at `positions`, `[N, dim]`, are put.

        An inlet draws places for those that left: others at each call, the same for the same `key`.
        """
        positions = np.asarray(positions)
        if positions.ndim != 2 or positions.shape[1] not in (2, 3):
            raise BoundaryError(
                f"positions has shape {list(positions.shape)}; expected [N, 2] or [N, 3]"
            )
        seed = wl.fresh_seed() if key is None else key
        return _apply(self, as_float(positions.T), jax.random.key(seed)).T


class NoBoundary(Boundary):
    """Steps end where they lead."""

    @property
    def draws(self) -> bool:
        """No."""
        return False

    def apply(self, old, new, draw) -> Landing:
        """See `Boundary.apply`."""
        return landing(new)


class Composed(Boundary):
    """Boundaries one after the other: walls of a box, then a sphere inside it."""

    parts: tuple[Boundary, ...]

    @property
    def reseeds(self) -> bool:
        """Whether one of the parts does."""
        return any(part.reseeds for part in self.parts)

    @property
    def draws(self) -> bool:
        """Whether one of the parts does."""
        return any(part.draws for part in self.parts)

    def apply(self, old, new, draw) -> Landing:
        """See `Boundary.apply`."""
        x, status, reseed = landing(new)
        for part in self.parts:
            after = part.apply(old, x, draw)
            free = (status == 0) & ~reseed
            x = jnp.where(free[None], after.x, x)
            reseed = reseed | (free & after.reseed)
            status = jnp.where(free, after.status, status)
        return Landing(x, status, reseed)


def landing(x: Float[Array, "dim n"]) -> Landing:
    """Everybody goes on, at `x`."""
    n = x.shape[1]
    return Landing(x, jnp.zeros(n, jnp.int8), jnp.zeros(n, bool))


@compiled
def _apply(boundary: Boundary, x: Array, key: Array) -> Array:
    n = x.shape[1]
    draw = Draw(key, jnp.arange(n, dtype=jnp.int32), jnp.int32(0))
    return boundary.apply(x, x, draw).x
