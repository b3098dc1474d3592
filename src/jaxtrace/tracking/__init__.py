"""From seeds to tracks: boundaries, the step, the tracker, the trajectory."""

from __future__ import annotations

from jaxtrace._errors import TrackError as TrackError
from jaxtrace._status import Status as Status
from jaxtrace.tracking._particles import Particles as Particles
from jaxtrace.tracking._tracker import Tracker as Tracker
from jaxtrace.tracking._tracker import create_tracker as create_tracker
from jaxtrace.tracking._trajectory import RunReport as RunReport
from jaxtrace.tracking._trajectory import Trajectory as Trajectory

__all__ = [
    "Particles",
    "RunReport",
    "Status",
    "TrackError",
    "Tracker",
    "Trajectory",
    "create_tracker",
]
