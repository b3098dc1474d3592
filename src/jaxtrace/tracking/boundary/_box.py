"""Boxes: a rule for each face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxtrace._config import as_float
from jaxtrace._errors import BoundaryError
from jaxtrace._status import Status
from jaxtrace.fields._analytic import check_bounds
from jaxtrace.tracking.boundary._boundary import Boundary, Landing, landing

RULES = ("reflect", "wrap", "clamp", "absorb", "exit", "open")
_ENDINGS = {"absorb": Status.ABSORBED, "exit": Status.EXITED}


class BoxBoundary(Boundary):
    """A box with a rule for each of its faces.

    **Arguments:**

    - `bounds`: `[min, max]`.
    - `lower`, `upper`: for each axis, the rule of its first and of its last face:
        `"reflect"` (mirrored), `"wrap"` (comes in at the other side; both faces), `"clamp"` (stays
        on the face), `"absorb"` and `"exit"` (ends where it crosses the face, with that status), or
        `"open"` (nothing).
    """

    low: Float[Array, " dim"]
    high: Float[Array, " dim"]
    lower: tuple[str, ...] = eqx.field(static=True)
    upper: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, bounds: Any, lower: Sequence[str], upper: Sequence[str]):
        corners = check_bounds(bounds)
        dim = corners.shape[1]
        for name, rules in (("lower", lower), ("upper", upper)):
            if len(rules) != dim or any(rule not in RULES for rule in rules):
                raise BoundaryError(f"{name}={tuple(rules)}: expected {dim} of {RULES}")
        for i, (a, b) in enumerate(zip(lower, upper, strict=True)):
            if (a == "wrap") != (b == "wrap"):
                raise BoundaryError(f"axis {i} is {a!r} and {b!r}: a wrapped axis has no end")
        self.low, self.high = as_float(corners[0]), as_float(corners[1])
        self.lower, self.upper = tuple(lower), tuple(upper)

    @property
    def draws(self) -> bool:
        """No."""
        return False

    def apply(self, old, new, draw) -> Landing:
        """See `Boundary.apply`."""
        x = self._folded(new)
        result = landing(x)
        if not any(rule in _ENDINGS for rule in (*self.lower, *self.upper)):
            return result
        # The part of the step until the first face that ends it.
        until = jnp.full(new.shape[1], jnp.inf, new.dtype)
        status = result.status
        for i, rules in enumerate(zip(self.lower, self.upper, strict=True)):
            step = new[i] - old[i]
            for rule, wall, sign in zip(rules, (self.low[i], self.high[i]), (-1, 1), strict=True):
                if rule not in _ENDINGS:
                    continue
                beyond = sign * (new[i] - wall) > 0
                part = jnp.where(step == 0, 0.0, (wall - old[i]) / jnp.where(step == 0, 1.0, step))
                part = jnp.clip(part, 0.0, 1.0)
                first = beyond & (part < until)
                until = jnp.where(first, part, until)
                status = jnp.where(first, jnp.int8(_ENDINGS[rule]), status)
        ended = status != 0
        part = jnp.where(ended, until, 1.0)[None]
        place = jnp.clip(old + part * (new - old), self.low[:, None], self.high[:, None])
        return Landing(jnp.where(ended[None], place, x), status, result.reseed)

    def _folded(self, x: Float[Array, "dim n"]) -> Float[Array, "dim n"]:
        """Places brought in by the rules that bring in.

        All axes at once, and those with other rules left out by a select: rows that are stacked
        are computed one number at a time.
        """
        pairs = list(zip(self.lower, self.upper, strict=True))
        folded = x
        for rules in dict.fromkeys(pairs):
            along = _fold(x, self.low[:, None], self.high[:, None], rules)
            mine = jnp.asarray([[pair == rules] for pair in pairs])
            folded = along if len(set(pairs)) == 1 else jnp.where(mine, along, folded)
        return folded


def _fold(x: Array, low: Array, high: Array, rules: tuple[str, str]) -> Array:
    """Coordinates brought in between two walls with these rules."""
    if rules == ("wrap", "wrap"):
        span = high - low
        return jnp.clip(x - span * jnp.floor((x - low) / span), low, high)
    if rules == ("reflect", "reflect"):
        # Folding takes care of steps longer than the box.
        y = (x - low) / (high - low)
        y = y - 2.0 * jnp.floor(0.5 * y)
        y = jnp.where(y <= 1.0, y, 2.0 - y)
        inside = (x >= low) & (x <= high)
        return jnp.where(inside, x, jnp.clip(low + y * (high - low), low, high))
    if rules[0] == "reflect":
        x = jnp.where(x < low, 2.0 * low - x, x)
    elif rules[0] == "clamp":
        x = jnp.maximum(x, low)
    if rules[1] == "reflect":
        x = jnp.where(x > high, jnp.maximum(2.0 * high - x, low), x)
    elif rules[1] == "clamp":
        x = jnp.minimum(x, high)
    return x
