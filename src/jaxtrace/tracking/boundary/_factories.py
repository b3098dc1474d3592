"""Boundaries by the names that users know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtrace._errors import BoundaryError
from jaxtrace.fields._analytic import check_bounds
from jaxtrace.tracking.boundary._boundary import Boundary, Composed, NoBoundary
from jaxtrace.tracking.boundary._box import BoxBoundary
from jaxtrace.tracking.boundary._inlet import (
    InletBoundary,
    axis_number,
    is_positive,
    outlet_walls,
)


def no_boundary() -> NoBoundary:
    """Steps end where they lead; the field alone says who is outside."""
    return NoBoundary()


def reflective_boundary(bounds: Any) -> BoxBoundary:
    """Walls that mirror, however long the step.

    ```python
    import numpy as np
    from jaxtrace.tracking.boundary import reflective_boundary

    box = reflective_boundary([[0, 0], [1, 2]])
    assert np.allclose(box([[1.25, -0.5], [-2.5, 1.0]]), [[0.75, 0.5], [0.5, 1.0]])
    ```
    """
    return _same(bounds, "reflect")


def periodic_boundary(bounds: Any) -> BoxBoundary:
    """Who leaves on one side comes in on the other.

    Give a field the same `period`: steps that cross the side then see the flow on the other side.
    """
    return _same(bounds, "wrap")


def clamping_boundary(bounds: Any) -> BoxBoundary:
    """Who would leave stays on the wall, and slides along it."""
    return _same(bounds, "clamp")


def absorbing_boundary(bounds: Any) -> BoxBoundary:
    """Who reaches a wall ends there, with the status `ABSORBED`."""
    return _same(bounds, "absorb")


def outflow_boundary(bounds: Any) -> BoxBoundary:
    """Who reaches a face leaves there, with the status `EXITED`."""
    return _same(bounds, "exit")


def mixed_boundary(bounds: Any, faces: Mapping[str, str]) -> BoxBoundary:
    """A rule for each face of a box.

    **Arguments:**

    - `bounds`: `[min, max]`.
    - `faces`: rules by face: `"x-"`, `"x+"`, `"y-"`, ..., or `"x"` for both faces of an axis. Rules
        are those of `BoxBoundary`. All faces must be named.

    ```python
    from jaxtrace.tracking.boundary import mixed_boundary

    channel = mixed_boundary(
        [[0, 0, 0], [4, 1, 1]], {"x-": "reflect", "x+": "exit", "y": "reflect", "z": "wrap"}
    )
    assert channel.upper == ("exit", "reflect", "wrap")
    ```
    """
    dim = check_bounds(bounds).shape[1]
    rules: dict[str, str] = {}
    for face, rule in faces.items():
        if len(face) not in (1, 2) or face[0] not in "xyz"[:dim] or face[1:] not in ("", "-", "+"):
            raise BoundaryError(f"faces has {face!r}; expected 'x', 'x-', 'x+' and so on")
        for one in (face,) if len(face) == 2 else (face + "-", face + "+"):
            if one in rules:
                raise BoundaryError(f"faces names the face {one!r} twice")
            rules[one] = rule
    missing = [a + s for a in "xyz"[:dim] for s in "-+" if a + s not in rules]
    if missing:
        raise BoundaryError(f"faces has no rule for {missing}; use 'open' for no rule")
    axes = "xyz"[:dim]
    return BoxBoundary(bounds, [rules[a + "-"] for a in axes], [rules[a + "+"] for a in axes])


def inlet_outlet_boundary_factory(
    bounds: Any,
    flow_axis: str | int = "x",
    flow_direction: str = "positive",
) -> BoxBoundary:
    """Particles leave through the outlet, with the status `EXITED`; other walls mirror.

    New ones enter by release times of their own; see `continuous_inlet_boundary_factory` for slots
    that are used again.
    """
    corners = check_bounds(bounds)
    axis = axis_number(flow_axis, corners.shape[1])
    return outlet_walls(corners, axis, is_positive(flow_direction), "reflect")


def flow_through_boundary_factory(
    bounds: Any,
    flow_axis: str | int = "x",
    flow_direction: str = "positive",
) -> BoxBoundary:
    """Particles may leave at both ends of the flow axis, with `EXITED`; the sides mirror."""
    corners = check_bounds(bounds)
    axis = axis_number(flow_axis, corners.shape[1])
    return outlet_walls(corners, axis, is_positive(flow_direction), "exit")


def continuous_inlet_boundary_factory(
    bounds: Any,
    flow_axis: str | int = "x",
    flow_direction: str = "positive",
    inlet_distribution: str = "uniform",
    concentrations: Mapping[str, int] | None = None,
) -> InletBoundary:
    """Who leaves through the outlet begins anew on the inlet. The sides and the inlet mirror.

    **Arguments:**

    - `bounds`: `[min, max]`.
    - `flow_axis`, `flow_direction`: `"x"`, `"y"` or `"z"`, and `"positive"` or `"negative"`.
    - `inlet_distribution`: places on the inlet: `"uniform"` and `"gaussian"` (around its middle, a
        sixth of its width) are random; with `"grid"` each slot has a place of its own on a grid.
    - `concentrations`: places of that grid along each axis across the flow: `{"y": 20, "z": 10}`;
        10 where not given.
    """
    return InletBoundary(bounds, flow_axis, flow_direction, inlet_distribution, concentrations)


def compose_boundaries(*parts: Boundary) -> Composed:
    """Boundaries one after the other. Who ends or begins anew at one is left alone by the next."""
    if not parts:
        raise BoundaryError("compose_boundaries() needs at least one boundary")
    return Composed(tuple(parts))


def _same(bounds: Any, rule: str) -> BoxBoundary:
    dim = check_bounds(bounds).shape[1]
    return BoxBoundary(bounds, [rule] * dim, [rule] * dim)
