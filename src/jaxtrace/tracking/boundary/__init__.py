"""What happens at walls, inlets and outlets. All of it is pure and compiled with the step."""

from __future__ import annotations

from jaxtrace._errors import BoundaryError as BoundaryError
from jaxtrace.tracking.boundary._boundary import Boundary as Boundary
from jaxtrace.tracking.boundary._boundary import Composed as Composed
from jaxtrace.tracking.boundary._boundary import Draw as Draw
from jaxtrace.tracking.boundary._boundary import Landing as Landing
from jaxtrace.tracking.boundary._boundary import NoBoundary as NoBoundary
from jaxtrace.tracking.boundary._box import BoxBoundary as BoxBoundary
from jaxtrace.tracking.boundary._factories import absorbing_boundary as absorbing_boundary
from jaxtrace.tracking.boundary._factories import clamping_boundary as clamping_boundary
from jaxtrace.tracking.boundary._factories import compose_boundaries as compose_boundaries
from jaxtrace.tracking.boundary._factories import (
    continuous_inlet_boundary_factory as continuous_inlet_boundary_factory,
)
from jaxtrace.tracking.boundary._factories import (
    flow_through_boundary_factory as flow_through_boundary_factory,
)
from jaxtrace.tracking.boundary._factories import (
    inlet_outlet_boundary_factory as inlet_outlet_boundary_factory,
)
from jaxtrace.tracking.boundary._factories import mixed_boundary as mixed_boundary
from jaxtrace.tracking.boundary._factories import no_boundary as no_boundary
from jaxtrace.tracking.boundary._factories import outflow_boundary as outflow_boundary
from jaxtrace.tracking.boundary._factories import periodic_boundary as periodic_boundary
from jaxtrace.tracking.boundary._factories import reflective_boundary as reflective_boundary
from jaxtrace.tracking.boundary._inlet import InletBoundary as InletBoundary
from jaxtrace.tracking.boundary._round import RoundBoundary as RoundBoundary
from jaxtrace.tracking.boundary._round import cylinder_boundary as cylinder_boundary
from jaxtrace.tracking.boundary._round import sphere_boundary as sphere_boundary

__all__ = [
    "Boundary",
    "BoundaryError",
    "BoxBoundary",
    "Composed",
    "Draw",
    "InletBoundary",
    "Landing",
    "NoBoundary",
    "RoundBoundary",
    "absorbing_boundary",
    "clamping_boundary",
    "compose_boundaries",
    "continuous_inlet_boundary_factory",
    "cylinder_boundary",
    "flow_through_boundary_factory",
    "inlet_outlet_boundary_factory",
    "mixed_boundary",
    "no_boundary",
    "outflow_boundary",
    "periodic_boundary",
    "reflective_boundary",
    "sphere_boundary",
]
