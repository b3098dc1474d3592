"""What every field can do, and what a sample of it is."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError
from jaxtrace._status import Status
from jaxtrace.fields._frame import Frame
from worldloom import compiled

OUTSIDE = ("status", "clamp", "zero", "nan")

Time: TypeAlias = Float[Array, ""] | Float[Array, " n"]
Hint: TypeAlias = Any


class Sample(NamedTuple):
    """A field at the places of particles."""

    value: Float[Array, "components n"]
    status: Int[Array, " n"]
    """0 in the flow; else the `Status` of a particle that is there."""
    hint: Hint
    """What makes the next sample of the same particles cheaper."""


class Field(eqx.Module):
    """A quantity in space and time: a velocity, or a scalar to be sampled along the way.

    Fields are immutable pytrees. `+`, `-` and `*` by a number compose them; `field.where(mask)`
    restricts them.

    **Attributes:**

    - `dim`: 2 or 3, the number of coordinates.
    - `components`: how many numbers the field has at a place.
    - `origin`: the time that clocks inside compiled programs count from.
    - `time_span`: first and last time of the data; `None` where there is no limit.
    - `bounds`: `[2, dim]`, the corners of the domain; `None` where there is no limit.
    - `frame`: what coordinates, values and clock mean, a [`jaxtrace.Frame`][].
    """

    frame: Frame = eqx.field(static=True, kw_only=True, default=Frame())
    dim: eqx.AbstractVar[int]
    components: eqx.AbstractVar[int]
    origin: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """The field at `x`, `[dim, N]`, at time `t` after `origin`. For use in compiled code.

        **Arguments:**

        - `x`: places, particles last.
        - `t`: one time, or one for each particle.
        - `hint`: that of the sample before, or of `first_hint`; `None` where nothing is known.
        - `active`: false for particles whose value is not needed.
        """

    def first_hint(self, n: int, *, values: bool = True) -> Hint:
        """A hint that knows nothing, for `n` particles.

        With `values`, it may keep values of the field, which help where all particles have one
        clock. Reverse-mode derivatives do not go through these.
        """
        return None

    @property
    def time_span(self) -> tuple[float, float] | None:
        """First and last time of the data; `None` where there is no limit."""
        return None

    @property
    def bounds(self) -> np.ndarray | None:
        """`[2, dim]`, the corners of the domain; `None` where there is no limit."""
        return None

    def rebase(self, origin: float) -> Field:
        """The same field with its clock counting from another time."""
        raise FieldError(f"{type(self).__name__} cannot change the origin of its clock")

    def later(self, seconds: float) -> Field:
        """The same field on a clock that shows so much more, as one with an earlier epoch does."""
        raise FieldError(
            f"{type(self).__name__} cannot be brought to a clock with another epoch; make it on "
            "that clock"
        )

    def sample(self, positions: Any, t: Any) -> Float[Array, "n components"]:
        """The field at `positions`, `[N, dim]`, at time `t`: one, or one for each.

        Outside the domain the field's own rule holds; with the rule `"status"`, which gives a
        status and no number, the values are NaN.

        ```python
        import numpy as np
        import jaxtrace as jt

        x = np.linspace(0.0, 1.0, 5)
        u = np.stack([np.broadcast_to(x[:, None], (5, 5)), np.ones((5, 5))], axis=-1)
        field = jt.StructuredField(u[None], (x, x))
        assert np.allclose(field.sample([[0.3, 0.6]], 0.0), [[0.3, 1.0]])
        ```
        """
        positions = np.asarray(positions)
        if positions.ndim != 2 or positions.shape[1] != self.dim:
            raise FieldError(
                f"positions has shape {list(positions.shape)}; expected [N, {self.dim}]"
            )
        t = np.asarray(t, np.float64) - float(self.origin)
        if t.ndim > 1 or (t.ndim == 1 and len(t) != len(positions)):
            raise FieldError(
                f"t has shape {list(t.shape)}; expected one time, or one for each of "
                f"{len(positions)} positions"
            )
        if len(positions) == 0:
            return jnp.zeros((0, self.components), as_float(0.0).dtype)
        return _sample(self, as_float(positions.T), as_float(t)).T

    def __add__(self, other: Field) -> Field:
        from jaxtrace.fields._compose import SumField

        return SumField((self, other))

    def __mul__(self, factor: Any) -> Field:
        from jaxtrace.fields._compose import ScaledField

        return ScaledField(self, factor)

    __rmul__ = __mul__

    def __neg__(self) -> Field:
        return self * -1.0

    def __sub__(self, other: Field) -> Field:
        return self + (-other)

    def where(self, mask: Any) -> Field:
        """The field where `mask(position, t)` is true, and land elsewhere.

        `mask` takes one position `[dim]` and a time.
        """
        from jaxtrace.fields._compose import MaskedField

        return MaskedField(self, mask)


@compiled
def _sample(field: Field, x: Array, t: Array) -> Array:
    value, status, _ = field.evaluate(x, t)
    return jnp.where((status == int(Status.EXITED))[None], jnp.nan, value)


def check_outside(outside: str) -> None:
    """Refuse a rule that does not exist."""
    if outside not in OUTSIDE:
        raise FieldError(f"outside={outside!r}: expected one of {OUTSIDE}")


def apply_outside(
    value: Float[Array, "components n"], inside: Bool[Array, " n"], outside: str
) -> tuple[Float[Array, "components n"], Int[Array, " n"]]:
    """Value and status where some are outside; `value` is that of the nearest place inside."""
    alive = jnp.zeros(inside.shape, jnp.int8)
    if outside == "status":
        return value, jnp.where(inside, alive, jnp.int8(Status.EXITED))
    if outside == "zero":
        value = jnp.where(inside[None], value, 0.0)
    elif outside == "nan":
        value = jnp.where(inside[None], value, jnp.nan)
    return value, alive


def apart(
    active: Bool[Array, " n"] | None,
    compute: Callable[[], tuple[Float[Array, " n"], ...]],
    like: Float[Array, " n"],
) -> Float[Array, "components n"]:
    """`compute()`, one row a component, in a branch of its own; zeros if nobody is active.

    Without the branch XLA fuses the gathers of all components into the loop that stacks them,
    where nothing is vectorised, or into the next stage of an integrator, where they are repeated.
    """
    if active is None:
        return jnp.stack(compute())
    shapes = jax.eval_shape(compute)
    blank = lambda: tuple(jnp.zeros_like(like) for _ in shapes)  # noqa: E731
    return jnp.stack(lax.cond(jnp.any(active), compute, blank))


def gather(table: Array, *index: Array) -> Array:
    """`table[index]` for indices that are known to be in bounds and not negative."""
    return table.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def finite(array: np.ndarray, name: str) -> None:
    """Refuse NaN and infinity, naming the first of them."""
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise FieldError(
            f"{name} has {int(bad.sum())} values that are not finite, the first at {list(first)}"
        )
