"""Tracks to look at: a page to turn and play, and figures for print."""

from __future__ import annotations

from jaxtrace.visualization._plots import plot_field as plot_field
from jaxtrace.visualization._plots import plot_trajectory as plot_trajectory
from jaxtrace.visualization._viewer import Viewer as Viewer
from jaxtrace.visualization._viewer import ViewerError as ViewerError
from jaxtrace.visualization._viewer import write_viewer as write_viewer

__all__ = [
    "Viewer",
    "ViewerError",
    "plot_field",
    "plot_trajectory",
    "write_viewer",
]
