"""`write`: the format by the ending."""

from __future__ import annotations

import os
from pathlib import Path

from jaxtrace.export._cf import write_netcdf, write_zarr
from jaxtrace.export._place import ending
from jaxtrace.export._vtk import write_vtk
from jaxtrace.tracking import Trajectory

ENDINGS = (".pvd", ".vtp", ".nc", ".zarr", ".html")


def write(trajectory: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write tracks in the format that the ending of `path` names.

    `.pvd` and `.vtp` for ParaView, `.nc` and `.zarr` for xarray, `.html` for a browser.
    """
    kind = ending(Path(path), ENDINGS)
    if kind == ".html":
        from jaxtrace.visualization import write_viewer

        return write_viewer(trajectory, path)
    writers = {".nc": write_netcdf, ".zarr": write_zarr}
    return writers.get(kind, write_vtk)(trajectory, path)
