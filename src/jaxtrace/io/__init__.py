"""Flows on disk: series of VTK, NetCDF and Zarr files, opened and read into fields.

    files    _series   which files, in which order       _times   when they are
    one VTK file       _vtk  ->  _block  (NumPy arrays; pieces joined)
    a VTK series       _vtk_series:  _layout (grid or mesh, once), _cells (simplices), _velocity
    NetCDF and Zarr    _cf:  _cf_names, _cf_axes, _cf_time, _units
    both are a         _source  ->  _dataset.Dataset  ->  a field

A `Dataset` knows nothing of formats, and a reader of a file nothing of series.
"""

from __future__ import annotations

from jaxtrace.io._block import ArrayInfo as ArrayInfo
from jaxtrace.io._dataset import Dataset as Dataset
from jaxtrace.io._errors import DataError as DataError
from jaxtrace.io._geometry import Cloud as Cloud
from jaxtrace.io._geometry import Grid as Grid
from jaxtrace.io._geometry import Mesh as Mesh
from jaxtrace.io._open import load_optimized_dataset as load_optimized_dataset
from jaxtrace.io._open import open_dataset as open_dataset
from jaxtrace.io._source import Slice as Slice

__all__ = [
    "ArrayInfo",
    "Cloud",
    "DataError",
    "Dataset",
    "Grid",
    "Mesh",
    "Slice",
    "load_optimized_dataset",
    "open_dataset",
]
