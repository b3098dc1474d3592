"""`write`: the format by the ending."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from jaxtrace.export._cf import write_netcdf, write_zarr
from jaxtrace.export._place import check_place, ending
from jaxtrace.export._vtk import write_vtk
from jaxtrace.tracking import Trajectory

ENDINGS = (".pvd", ".vtp", ".nc", ".zarr", ".html")


def write(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    coordinates: Sequence[str] = ("x", "y", "z"),
    time_units: str = "s",
    calendar: str = "standard",
) -> Path:
    """Write tracks in the format that the ending of `path` names.

    `.pvd` and `.vtp` for ParaView, `.nc` and `.zarr` for xarray, `.html` for a browser. The
    arguments are those of `write_netcdf`; files for ParaView have no place for them.
    """
    kind = ending(Path(path), ENDINGS)
    check_place(Path(path))
    if kind == ".html":
        from jaxtrace.visualization import write_viewer

        return write_viewer(trajectory, path, axes=tuple(coordinates))
    if kind in (".pvd", ".vtp"):
        return write_vtk(trajectory, path)
    writer = write_netcdf if kind == ".nc" else write_zarr
    return writer(
        trajectory, path, coordinates=coordinates, time_units=time_units, calendar=calendar
    )
