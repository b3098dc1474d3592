"""Particles carried by measured flow fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worldloom._exports import lazy_exports

if TYPE_CHECKING:
    from jaxtrace._config import configure as configure
    from jaxtrace._errors import TraceError as TraceError
    from jaxtrace._errors import TraceWarning as TraceWarning
    from jaxtrace._status import Status as Status
    from jaxtrace.fields import AnalyticField as AnalyticField
    from jaxtrace.fields import Field as Field
    from jaxtrace.fields import Frame as Frame
    from jaxtrace.fields import StructuredField as StructuredField
    from jaxtrace.fields import TetField as TetField
    from jaxtrace.fields import TimeSeriesField as TimeSeriesField
    from jaxtrace.io import Dataset as Dataset
    from jaxtrace.io import load_optimized_dataset as load_optimized_dataset
    from jaxtrace.io import open_dataset as open_dataset
    from jaxtrace.seeding import random_seeds as random_seeds
    from jaxtrace.seeding import repeated_release as repeated_release
    from jaxtrace.seeding import uniform_grid_seeds as uniform_grid_seeds
    from jaxtrace.tracking import Trajectory as Trajectory
    from jaxtrace.tracking import create_tracker as create_tracker
    from jaxtrace.utils import track_memory as track_memory
    from jaxtrace.utils import track_operation_memory as track_operation_memory

__all__ = [
    "AnalyticField",
    "Dataset",
    "Field",
    "Frame",
    "Status",
    "StructuredField",
    "TetField",
    "TimeSeriesField",
    "TraceError",
    "TraceWarning",
    "Trajectory",
    "configure",
    "create_tracker",
    "load_optimized_dataset",
    "open_dataset",
    "random_seeds",
    "repeated_release",
    "track_memory",
    "track_operation_memory",
    "uniform_grid_seeds",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    __all__,
    found_in=(
        "_config",
        "_errors",
        "_status",
        "fields",
        "io",
        "seeding",
        "tracking",
        "utils",
    ),
    rooms=(
        "analysis",
        "density",
        "export",
        "fields",
        "integrators",
        "io",
        "seeding",
        "tracking",
        "utils",
        "visualization",
    ),
)
