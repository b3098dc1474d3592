"""From one time to the next: fixed steps, adaptive steps, random walk."""

from __future__ import annotations

from jaxtrace._errors import TrackError
from jaxtrace.integrators._adaptive import DormandPrince as DormandPrince
from jaxtrace.integrators._diffusion import Diffusion as Diffusion
from jaxtrace.integrators._explicit import Euler as Euler
from jaxtrace.integrators._explicit import Integrator as Integrator
from jaxtrace.integrators._explicit import Midpoint as Midpoint
from jaxtrace.integrators._explicit import Move as Move
from jaxtrace.integrators._explicit import RungeKutta4 as RungeKutta4

__all__ = [
    "INTEGRATORS",
    "Diffusion",
    "DormandPrince",
    "Euler",
    "Integrator",
    "Midpoint",
    "Move",
    "RungeKutta4",
    "integrator_named",
]

INTEGRATORS = {
    "euler": Euler,
    "rk2": Midpoint,
    "rk4": RungeKutta4,
    "dopri5": DormandPrince,
}
"""Integrators by name."""


def integrator_named(name: str) -> Integrator:
    """The integrator of a name, with its default options.

    ```python
    from jaxtrace.integrators import integrator_named

    assert integrator_named("rk4").order == 4
    ```
    """
    if name not in INTEGRATORS:
        raise TrackError(f"integrator_name={name!r}: expected one of {sorted(INTEGRATORS)}")
    return INTEGRATORS[name]()
