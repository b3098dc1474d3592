"""Spheres and cylinders, to stay in or to stay out of."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxtrace._config import as_float
from jaxtrace._errors import BoundaryError
from jaxtrace._status import Status
from jaxtrace.tracking.boundary._boundary import Boundary, Landing, landing

_RULES = ("reflect", "clamp", "absorb", "exit")


class RoundBoundary(Boundary):
    """A sphere (a circle in 2-D), or a cylinder along an axis.

    A step across the wall is mirrored along the radius (`"reflect"`), or ends on the wall.
    """

    centre: Float[Array, " dim"]
    radius: Float[Array, ""]
    across: tuple[int, ...] = eqx.field(static=True)
    rule: str = eqx.field(static=True)
    inside: bool = eqx.field(static=True)

    @property
    def draws(self) -> bool:
        """No."""
        return False

    def apply(self, old, new, draw) -> Landing:
        """See `Boundary.apply`."""
        away = [new[i] - self.centre[i] for i in self.across]
        square = sum(a * a for a in away[1:]) + away[0] * away[0]
        # At the centre every direction is as good as another.
        r = jnp.sqrt(jnp.maximum(square, 1e-12 * self.radius * self.radius))
        beyond = r > self.radius if self.inside else r < self.radius
        if self.rule == "reflect":
            wanted = 2.0 * self.radius - r
            wanted = jnp.maximum(wanted, 0.0) if self.inside else wanted
        else:
            wanted = jnp.broadcast_to(self.radius, r.shape)
        scale = jnp.where(beyond, wanted / r, 1.0)
        rows = [
            self.centre[i] + scale * (new[i] - self.centre[i]) if i in self.across else new[i]
            for i in range(new.shape[0])
        ]
        result = landing(jnp.where(beyond[None], jnp.stack(rows), new))
        if self.rule in ("reflect", "clamp"):
            return result
        ending = jnp.int8(Status.ABSORBED if self.rule == "absorb" else Status.EXITED)
        return result._replace(status=jnp.where(beyond, ending, result.status))


def sphere_boundary(
    centre: Any,
    radius: float | int,
    *,
    rule: str = "reflect",
    inside: bool = True,
) -> RoundBoundary:
    """A sphere, or a circle in 2-D: particles stay in it, or out of it (`inside=False`).

    ```python
    import numpy as np
    from jaxtrace.tracking.boundary import sphere_boundary

    wall = sphere_boundary([0, 0, 0], 1.0)
    assert np.allclose(wall([[0.0, 1.2, 0.0]]), [[0.0, 0.8, 0.0]])
    ```
    """
    centre = np.asarray(centre, np.float64)
    return _round(centre, radius, tuple(range(len(centre))), rule, inside)


def cylinder_boundary(
    centre: Any,
    radius: float | int,
    *,
    axis: str = "z",
    rule: str = "reflect",
    inside: bool = True,
) -> RoundBoundary:
    """An endless cylinder along an axis: particles stay in it, or out of it (`inside=False`).

    `centre` is any point of its axis, with three coordinates.
    """
    centre = np.asarray(centre, np.float64)
    if centre.shape != (3,) or axis not in ("x", "y", "z"):
        raise BoundaryError(
            f"centre={centre.tolist()}, axis={axis!r}: expected 3 coordinates and 'x', 'y' or 'z'"
        )
    across = tuple(i for i in range(3) if i != "xyz".index(axis))
    return _round(centre, radius, across, rule, inside)


def _round(
    centre: np.ndarray, radius: float, across: tuple[int, ...], rule: str, inside: bool
) -> RoundBoundary:
    if centre.shape not in ((2,), (3,)) or not np.isfinite(centre).all():
        raise BoundaryError(f"centre={centre.tolist()}: expected 2 or 3 finite coordinates")
    if not (radius > 0 and np.isfinite(radius)):
        raise BoundaryError(f"radius={radius}: expected a positive number")
    if rule not in _RULES:
        raise BoundaryError(f"rule={rule!r}: expected one of {_RULES}")
    return RoundBoundary(as_float(centre), as_float(radius), across, rule, inside)
