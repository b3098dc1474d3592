"""Integrators with a fixed step."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields._field import Field, Hint


class Move(NamedTuple):
    """Where an integrator takes particles in one step."""

    x: Float[Array, "dim n"]
    status: Int[Array, " n"]
    hint: Hint
    step_size: Float[Array, " n"] | None


class Integrator(eqx.Module):
    """Takes particles through one step of the tracker.

    **Attributes:**

    - `order`: the power of the step with which the error of a smooth track falls.
    - `own_clocks`: whether it samples the field at a time of each particle's own.
    """

    order: ClassVar[int]
    own_clocks: ClassVar[bool] = False

    @abc.abstractmethod
    def advance(
        self,
        field: Field,
        x: Float[Array, "dim n"],
        v: Float[Array, "dim n"],
        t: Float[Array, ""],
        dt: Float[Array, ""],
        hint: Hint,
        active: Bool[Array, " n"],
        step_size: Float[Array, " n"] | None,
    ) -> Move:
        """From `x` at `t`, where the velocity is `v`, to `t + dt`."""

    def first_step(self, n: int, dt: float, dtype: Any) -> Float[Array, " n"] | None:
        """What a particle remembers of its steps, before the first."""
        return None


class Euler(Integrator):
    """One evaluation a step, order 1."""

    order: ClassVar[int] = 1

    def advance(self, field, x, v, t, dt, hint, active, step_size) -> Move:
        """See `Integrator.advance`."""
        return Move(x + dt * v, _alive(x), hint, step_size)


class Midpoint(Integrator):
    """Runge-Kutta of order 2: two evaluations a step."""

    order: ClassVar[int] = 2

    def advance(self, field, x, v, t, dt, hint, active, step_size) -> Move:
        """See `Integrator.advance`."""
        middle = field.evaluate(x + 0.5 * dt * v, t + 0.5 * dt, hint, active)
        return Move(x + dt * middle.value, _alive(x), middle.hint, step_size)


class RungeKutta4(Integrator):
    """The classical method of order 4: four evaluations a step."""

    order: ClassVar[int] = 4

    def advance(self, field, x, v, t, dt, hint, active, step_size) -> Move:
        """See `Integrator.advance`."""

        def stage(carry, parts):
            place, total, hint = carry
            ahead, part, further = parts
            k, _, hint = field.evaluate(place, t + ahead * dt, hint, active)
            return (x + further * dt * k, total + part * k, hint), None

        # A loop, not three copies: XLA would fuse one stage into the next and gather again. It
        # carries the place of a stage, not the slope that leads there: that would be computed
        # again in every kernel of the field.
        ahead = jnp.asarray([0.5, 0.5, 1.0], x.dtype)
        part = jnp.asarray([1 / 3, 1 / 3, 1 / 6], x.dtype)
        further = jnp.asarray([0.5, 1.0, 0.0], x.dtype)
        first = (x + 0.5 * dt * v, v / 6.0, hint)
        (_, total, hint), _ = lax.scan(stage, first, (ahead, part, further))
        return Move(x + dt * total, _alive(x), hint, step_size)


def _alive(x: Array) -> Int[Array, " n"]:
    return jnp.zeros(x.shape[1], jnp.int8)
