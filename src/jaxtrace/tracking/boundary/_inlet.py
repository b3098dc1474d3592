"""An inlet that gives the slots of particles that left to new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxtrace._errors import BoundaryError
from jaxtrace._status import Status
from jaxtrace.fields._analytic import check_bounds
from jaxtrace.tracking.boundary._boundary import Boundary, Draw, Landing
from jaxtrace.tracking.boundary._box import BoxBoundary

DISTRIBUTIONS = ("uniform", "gaussian", "grid")


class InletBoundary(Boundary):
    """Particles leave through one face of a box and enter through the opposite one.

    Who leaves is replaced at once: the slot begins anew on the inlet, with age 0. The number of
    slots never changes.
    """

    walls: BoxBoundary
    axis: int = eqx.field(static=True)
    positive: bool = eqx.field(static=True)
    distribution: str = eqx.field(static=True)
    grid: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        bounds: Any,
        flow_axis: str | int,
        flow_direction: str,
        distribution: str,
        concentrations: Mapping[str, int] | None,
    ):
        corners = check_bounds(bounds)
        dim = corners.shape[1]
        self.axis = axis_number(flow_axis, dim)
        self.positive = is_positive(flow_direction)
        if distribution not in DISTRIBUTIONS:
            raise BoundaryError(
                f"inlet_distribution={distribution!r}: expected one of {DISTRIBUTIONS}"
            )
        self.distribution = distribution
        counts = {"xyz".index(name): n for name, n in (concentrations or {}).items()}
        across = [i for i in range(dim) if i != self.axis]
        self.grid = tuple(int(counts.get(i, 10)) for i in across)
        if any(n < 1 for n in self.grid):
            raise BoundaryError(f"concentrations={concentrations}: expected numbers from 1 up")
        self.walls = outlet_walls(corners, self.axis, self.positive, "reflect")

    @property
    def reseeds(self) -> bool:
        """Yes."""
        return True

    @property
    def draws(self) -> bool:
        """Yes, but for places on a grid."""
        return self.distribution != "grid"

    def apply(self, old, new, draw) -> Landing:
        """See `Boundary.apply`."""
        x, status, _ = self.walls.apply(old, new, draw)
        gone = status == int(Status.EXITED)

        def enter():
            return jnp.where(gone[None], self._entrances(x, draw), x)

        x = lax.cond(jnp.any(gone), enter, lambda: x)
        return Landing(x, jnp.where(gone, jnp.int8(0), status), gone)

    def _entrances(self, x: Float[Array, "dim n"], draw: Draw) -> Float[Array, "dim n"]:
        """A place on the inlet for every slot."""
        low, high = self.walls.low, self.walls.high
        across = [i for i in range(x.shape[0]) if i != self.axis]
        if self.distribution == "grid":
            places, rest = [], draw.number % int(np.prod(self.grid))
            for n in reversed(self.grid):
                places.append(((rest % n).astype(x.dtype) + 0.5) / n)
                rest = rest // n
            parts = places[::-1]
        else:
            parts = list(self._random(draw, len(across), x.dtype))
        rows = []
        for i in range(x.shape[0]):
            if i == self.axis:
                rows.append(jnp.broadcast_to((low if self.positive else high)[i], x.shape[1:]))
            else:
                rows.append(low[i] + parts[across.index(i)] * (high - low)[i])
        return jnp.stack(rows)

    def _random(self, draw: Draw, count: int, dtype: Any) -> Float[Array, "count n"]:
        """Numbers from 0 to 1: uniform, or normal around the middle with six sigma across."""

        def one(number):
            key = jax.random.fold_in(jax.random.fold_in(draw.key, number), draw.step)
            key = jax.random.fold_in(key, 1)  # the random walk has the key itself
            if self.distribution == "uniform":
                return jax.random.uniform(key, (count,), dtype)
            return jnp.clip(0.5 + jax.random.normal(key, (count,), dtype) / 6.0, 0.0, 1.0)

        return jax.vmap(one, out_axes=1)(draw.number)


def outlet_walls(corners: np.ndarray, axis: int, positive: bool, inlet: str) -> BoxBoundary:
    """A box with an exit downstream, a rule for the inlet, and reflecting sides."""
    dim = corners.shape[1]
    lower, upper = ["reflect"] * dim, ["reflect"] * dim
    (upper if positive else lower)[axis] = "exit"
    (lower if positive else upper)[axis] = inlet
    return BoxBoundary(corners, lower, upper)


def axis_number(axis: str | int, dim: int) -> int:
    """0, 1 or 2 of 'x', 'y', 'z', or of the number itself."""
    number = "xyz".find(axis) if isinstance(axis, str) and len(axis) == 1 else axis
    if not isinstance(number, int) or not 0 <= number < dim:
        raise BoundaryError(f"flow_axis={axis!r}: expected one of {tuple('xyz'[:dim])}")
    return number


def is_positive(direction: str) -> bool:
    """Whether the flow goes towards greater coordinates."""
    if direction not in ("positive", "negative"):
        raise BoundaryError(f"flow_direction={direction!r}: expected 'positive' or 'negative'")
    return direction == "positive"
