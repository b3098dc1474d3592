"""Tracks in files that other programs open: ParaView, xarray, a browser."""

from __future__ import annotations

from jaxtrace.export._cf import holds_tracks as holds_tracks
from jaxtrace.export._cf import read as read
from jaxtrace.export._cf import write_netcdf as write_netcdf
from jaxtrace.export._cf import write_zarr as write_zarr
from jaxtrace.export._columns import known as known
from jaxtrace.export._place import ExportError as ExportError
from jaxtrace.export._vtk import write_vtk as write_vtk
from jaxtrace.export._write import write as write

__all__ = [
    "ExportError",
    "holds_tracks",
    "known",
    "read",
    "write",
    "write_netcdf",
    "write_vtk",
    "write_zarr",
]
