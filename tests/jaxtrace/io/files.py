"""Small VTK data sets, written by VTK itself."""

from __future__ import annotations

import numpy as np
import vtk
from vtkmodules.util.numpy_support import numpy_to_vtk, numpy_to_vtkIdTypeArray

AXES = (np.linspace(-1.0, 1.0, 5), np.array([0.0, 0.5, 0.75, 2.0]), np.linspace(2.0, 3.0, 3))
TIMES = (0.5, 0.75, 1.5)


def velocity(p, t):
    """Linear in each coordinate and in time, so that every interpolation is exact."""
    x, y, z = np.moveaxis(np.asarray(p, np.float64), -1, 0)
    return np.stack([1 + x - 2 * y + t, z * (1 + t), 3 * x - z + 0.5], axis=-1)


def temperature(p, t):
    return p[..., 0] + 10 * t


def nodes(axes):
    """Nodes in VTK's order: x runs fastest."""
    z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
    return np.stack([x, y, z], axis=-1).reshape(-1, 3)


def add(data, name, values, place="points", dtype=np.float64):
    array = numpy_to_vtk(np.ascontiguousarray(values, dtype), deep=True)
    array.SetName(name)
    where = {"points": data.GetPointData, "cells": data.GetCellData, "field": data.GetFieldData}
    where[place]().AddArray(array)
    return data


def fill(data, points, t, *, time=True):
    """Velocity and temperature of the flow above, and the time."""
    add(data, "velocity", velocity(points, t))
    add(data, "temperature", temperature(points, t))
    return add(data, "TimeValue", [t], "field") if time else data


def vtk_points(points, dtype=np.float64):
    found = vtk.vtkPoints()
    found.SetData(numpy_to_vtk(np.ascontiguousarray(points, dtype), deep=True))
    return found


def image(axes=AXES):
    data = vtk.vtkImageData()
    data.SetDimensions(*(len(a) for a in axes))
    data.SetOrigin(*(a[0] for a in axes))
    data.SetSpacing(*(a[1] - a[0] if len(a) > 1 else 1.0 for a in axes))
    return data


def rectilinear(axes=AXES):
    data = vtk.vtkRectilinearGrid()
    data.SetDimensions(*(len(a) for a in axes))
    data.SetXCoordinates(numpy_to_vtk(axes[0], deep=True))
    data.SetYCoordinates(numpy_to_vtk(axes[1], deep=True))
    data.SetZCoordinates(numpy_to_vtk(axes[2], deep=True))
    return data


def curvilinear(shape, points):
    data = vtk.vtkStructuredGrid()
    data.SetDimensions(*shape)
    data.SetPoints(vtk_points(points))
    return data


def unstructured(points, cells, dtype=np.float64):
    """`cells` is a list of (type, [M, corners])."""
    data = vtk.vtkUnstructuredGrid()
    data.SetPoints(vtk_points(points, dtype))
    types, flat = [], []
    for kind, corners in cells:
        corners = np.atleast_2d(corners)
        types += [kind] * len(corners)
        flat.append(np.hstack([np.full((len(corners), 1), corners.shape[1]), corners]).ravel())
    array = vtk.vtkCellArray()
    flat = np.concatenate(flat).astype(np.int64)
    array.ImportLegacyFormat(numpy_to_vtkIdTypeArray(flat, deep=True))
    data.SetCells(types, array)
    return data


WRITERS = {
    ".vtu": vtk.vtkXMLUnstructuredGridWriter,
    ".vti": vtk.vtkXMLImageDataWriter,
    ".vtr": vtk.vtkXMLRectilinearGridWriter,
    ".vts": vtk.vtkXMLStructuredGridWriter,
    ".vtp": vtk.vtkXMLPolyDataWriter,
    ".vtk": vtk.vtkGenericDataObjectWriter,
    ".vtkhdf": vtk.vtkHDFWriter,
    ".pvtu": vtk.vtkXMLPUnstructuredGridWriter,
}


def write(data, path, mode=None):
    writer = WRITERS[path.suffix]()
    writer.SetFileName(str(path))
    writer.SetInputData(data)
    if mode is not None:
        getattr(writer, f"SetDataModeTo{mode}")()
    assert writer.Write() == 1
    return path


def write_pvd(path, entries):
    """`entries` is a list of (time, file) or (time, file, part)."""
    lines = [
        f'<DataSet timestep="{e[0]}" group="" part="{e[2] if len(e) > 2 else 0}" file="{e[1]}"/>'
        for e in entries
    ]
    head = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1"><Collection>'
    path.write_text("\n".join([head, *lines, "</Collection></VTKFile>"]))
    return path


def hex_block(axes=AXES):
    """Points and hexahedra of a block."""
    nx, ny, nz = (len(a) for a in axes)
    k, j, i = np.meshgrid(*[np.arange(n - 1) for n in (nz, ny, nx)], indexing="ij")
    at = lambda a, b, c: (((k + c) * ny + j + b) * nx + i + a).ravel()  # noqa: E731
    square = [(0, 0), (1, 0), (1, 1), (0, 1)]
    cells = np.stack([at(a, b, c) for c in (0, 1) for a, b in square], axis=1)
    return nodes(axes), cells


def probe(data, places):
    """VTK's own interpolation of the velocity of linear cells."""
    locator = vtk.vtkStaticCellLocator()
    locator.SetDataSet(data)
    locator.BuildLocator()
    cell, at = vtk.vtkGenericCell(), [0.0] * 3
    array = data.GetPointData().GetArray("velocity")
    found = np.full((len(places), 3), np.nan)
    for n, place in enumerate(places):
        weights = [0.0] * 8
        if locator.FindCell(place, 0.0, cell, at, weights) >= 0:
            ids = [cell.GetPointId(k) for k in range(cell.GetNumberOfPoints())]
            found[n] = np.array(weights[: len(ids)]) @ [array.GetTuple(i) for i in ids]
    return found


def inside(axes=AXES, count=50, seed=0):
    """Places inside a block, away from its walls."""
    low, high = np.array([[a[0] for a in axes], [a[-1] for a in axes]])
    return low + (high - low) * np.random.default_rng(seed).uniform(0.01, 0.99, (count, len(axes)))
