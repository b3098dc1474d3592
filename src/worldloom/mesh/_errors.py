"""What can go wrong between devices and processes."""

from __future__ import annotations

from worldloom._errors import WorldloomError


class MeshError(WorldloomError, ValueError):
    """Arrays or axes do not fit the mesh they are to be spread over."""


class StartError(WorldloomError, RuntimeError):
    """Devices or processes cannot be set up as asked, or no longer."""


class LaunchError(WorldloomError, OSError):
    """The launcher could not start the processes it was asked for."""
