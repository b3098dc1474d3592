"""One VTK file, through VTK's own readers; what they only print becomes an error."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace.io._block import GHOSTS, ArrayInfo, Block, join
from jaxtrace.io._errors import DataError
from jaxtrace.io._look import look
from jaxtrace.io._looker import time_of
from jaxtrace.io._xml import check_xml
from worldloom._extras import import_extra
from worldloom._reading import reading

READERS = {
    ".vtu": ("vtkIOXML", "vtkXMLUnstructuredGridReader"),
    ".vti": ("vtkIOXML", "vtkXMLImageDataReader"),
    ".vtr": ("vtkIOXML", "vtkXMLRectilinearGridReader"),
    ".vts": ("vtkIOXML", "vtkXMLStructuredGridReader"),
    ".vtp": ("vtkIOXML", "vtkXMLPolyDataReader"),
    ".vtk": ("vtkIOLegacy", "vtkGenericDataObjectReader"),
    ".vtkhdf": ("vtkIOHDF", "vtkHDFReader"),
    ".hdf": ("vtkIOHDF", "vtkHDFReader"),
}

# VTK reports through one output window, and its HDF5 is not made for threads.
_reading = threading.RLock()


@dataclasses.dataclass(frozen=True)
class Header:
    """What a file says before its data is read.

    `arrays` is `None` where a format tells only with the data; `times` has an entry for each slice
    in the file, and is empty where the file has no times.
    """

    arrays: tuple[ArrayInfo, ...] | None
    times: tuple[float, ...]


def header(path: Path) -> Header:
    """Arrays and times of a file, without its data where the format allows it."""
    if path.suffix.lower() == ".vtk":
        time = look("vtk", path, str(path))
        return Header(None, () if time is None else (time,))
    with _quiet(path):
        reader = _reader(path)
        reader.UpdateInformation()
        info = reader.GetOutputInformation(0)
        key = _vtk("vtkCommonExecutionModel").vtkStreamingDemandDrivenPipeline.TIME_STEPS()
        times = tuple(float(t) for t in info.Get(key)) if info.Has(key) else ()
        if not _is_hdf(path):
            return Header(tuple(_infos(info)), times)
        if not times:
            _select(reader, ())
            time = time_of(_update(reader, path))
            times = () if time is None else (time,)
        return Header(None, times)


def read(path: Path, step: int = 0, names: Collection[str] | None = None) -> Block:
    """One slice of a file, with the arrays in `names`; `None` reads all."""
    with _quiet(path):
        reader = _reader(path)
        if path.suffix.lower() != ".vtk":
            reader.UpdateInformation()
            if names is not None:
                _select(reader, names)
        if _is_hdf(path):
            reader.SetStep(step)
        block = _block(_update(reader, path), path, names)
        if flaw := block.flaw():
            raise DataError(f"{path}: the file is damaged or not what its name says: {flaw}")
        return block


def _is_hdf(path: Path) -> bool:
    return path.suffix.lower() in (".vtkhdf", ".hdf")


def _select(reader: Any, names: Collection[str]) -> None:
    """Have only these arrays read."""
    for selection in (reader.GetPointDataArraySelection(), reader.GetCellDataArraySelection()):
        selection.DisableAllArrays()
        for name in (*names, GHOSTS):
            if selection.ArrayExists(name):
                selection.EnableArray(name)


def _vtk(module: str) -> Any:
    return import_extra(f"vtkmodules.{module}", extra="trace", purpose="reading VTK files")


def _reader(path: Path) -> Any:
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    module, name = READERS[path.suffix.lower()]
    if module == "vtkIOXML":
        check_xml(path)
    reader = getattr(_vtk(module), name)()
    reader.SetFileName(str(path))
    return reader


def _update(reader: Any, path: Path) -> Any:
    reader.Update()
    found = reader.GetOutputDataObject(0)
    if found is None:
        raise DataError(f"{path}: no data set that VTK knows")
    return found


@contextlib.contextmanager
def _quiet(path: Path) -> Iterator[None]:
    """Collect what VTK would print, and raise it."""
    core = _vtk("vtkCommonCore")
    with _reading:
        window, before = core.vtkStringOutputWindow(), core.vtkOutputWindow.GetInstance()
        verbosity = core.vtkLogger.GetCurrentVerbosityCutoff()
        core.vtkOutputWindow.SetInstance(window)
        core.vtkLogger.SetStderrVerbosity(core.vtkLogger.VERBOSITY_OFF)
        failed = None
        try:
            with reading(path, "VTK data", DataError):
                yield
        except DataError as error:
            failed = error
        finally:
            core.vtkLogger.SetStderrVerbosity(verbosity)
            core.vtkOutputWindow.SetInstance(before)
        said = window.GetOutput()
    if "ERROR:" in said:
        # The first line is where in VTK's source; the next one says what.
        lines = said.partition("ERROR:")[2].splitlines()
        what = lines[1].partition("): ")[2] if len(lines) > 1 else said
        raise DataError(
            f"{path}: the file is damaged or not what its name says: {what}"
        ) from failed
    if failed is not None:
        raise failed


def _infos(info: Any) -> Iterator[ArrayInfo]:
    data = _vtk("vtkCommonDataModel").vtkDataObject
    support = _vtk("util.numpy_support")
    places = (("points", data.POINT_DATA_VECTOR()), ("cells", data.CELL_DATA_VECTOR()))
    for place, key in places:
        vector = info.Get(key)
        for i in range(vector.GetNumberOfInformationObjects() if vector else 0):
            one = vector.GetInformationObject(i)
            name = one.Get(data.FIELD_NAME())
            if name == GHOSTS:
                continue
            kind = support.get_numpy_array_type(one.Get(data.FIELD_ARRAY_TYPE()))
            components = max(one.Get(data.FIELD_NUMBER_OF_COMPONENTS()), 1)
            yield ArrayInfo(name, place, components, np.dtype(kind).name)


def _block(data: Any, path: Path, names: Collection[str] | None) -> Block:
    if data.IsA("vtkPartitionedDataSet"):
        parts = [data.GetPartition(i) for i in range(data.GetNumberOfPartitions())]
        labels = [f"{path} (part {i})" for i in range(len(parts))]
        return join([_block(part, path, names) for part in parts], labels)
    if data.IsA("vtkPolyData"):
        append = _vtk("vtkFiltersCore").vtkAppendFilter()
        append.AddInputData(data)
        append.Update()
        data = append.GetOutput()
    common: dict[str, Any] = {
        "point_data": _arrays(data.GetPointData(), names),
        "cell_data": _arrays(data.GetCellData(), names),
        "time": time_of(data),
    }
    if data.IsA("vtkImageData"):
        return _image(data, common)
    if data.IsA("vtkRectilinearGrid"):
        sides = (data.GetXCoordinates(), data.GetYCoordinates(), data.GetZCoordinates())
        axes = tuple(_numpy(side)[:, 0].astype(np.float64) for side in sides)
        return Block(extent=tuple(data.GetExtent()), axes=axes, **common)
    if data.IsA("vtkStructuredGrid"):
        return Block(extent=tuple(data.GetExtent()), points=_points(data), **common)
    if data.IsA("vtkUnstructuredGrid"):
        cells = data.GetCells()
        empty = data.GetNumberOfCells() == 0
        return Block(
            points=_points(data),
            types=np.zeros(0, np.uint8) if empty else _types(data),
            offsets=np.zeros(1, np.int64) if empty else _numpy(cells.GetOffsetsArray())[:, 0],
            connectivity=(
                np.zeros(0, np.int64) if empty else _numpy(cells.GetConnectivityArray())[:, 0]
            ),
            **common,
        )
    raise DataError(
        f"{path}: a {data.GetClassName()}; expected a grid, a mesh or points. Write each block of "
        "a composite data set to a file of its own"
    )


def _image(data: Any, common: dict[str, Any]) -> Block:
    extent = tuple(data.GetExtent())
    origin, spacing = np.array(data.GetOrigin()), np.array(data.GetSpacing())
    steps = [
        np.arange(a, b + 1) * h for a, b, h in zip(extent[::2], extent[1::2], spacing, strict=True)
    ]
    matrix = data.GetDirectionMatrix()
    turn = np.array([[matrix.GetElement(i, j) for j in range(3)] for i in range(3)])
    if np.array_equal(turn, np.eye(3)):
        axes = tuple(o + s for o, s in zip(origin, steps, strict=True))
        return Block(extent=extent, axes=axes, **common)
    z, y, x = np.meshgrid(*steps[::-1], indexing="ij")
    places = np.stack([x, y, z], axis=-1).reshape(-1, 3) @ turn.T + origin
    return Block(extent=extent, points=places, **common)


def _points(data: Any) -> np.ndarray:
    if data.GetNumberOfPoints() == 0:
        return np.zeros((0, 3))
    return _numpy(data.GetPoints().GetData()).astype(np.float64)


def _types(data: Any) -> np.ndarray:
    version = _vtk("vtkCommonCore").vtkVersion
    new = (version.GetVTKMajorVersion(), version.GetVTKMinorVersion()) >= (9, 6)
    return _numpy(data.GetCellTypes() if new else data.GetCellTypesArray())[:, 0]


def _arrays(attributes: Any, names: Collection[str] | None) -> dict[str, np.ndarray]:
    found = {}
    for i in range(attributes.GetNumberOfArrays()):
        array = attributes.GetArray(i)
        if array is None or array.GetName() is None:  # text
            continue
        if names is None or array.GetName() in names or array.GetName() == GHOSTS:
            found[array.GetName()] = _numpy(array)
    return found


def _numpy(array: Any) -> np.ndarray:
    """A copy, `[tuples, components]`."""
    values = _vtk("util.numpy_support").vtk_to_numpy(array)
    return np.array(values).reshape(array.GetNumberOfTuples(), -1)


def cell_name(number: int) -> str:
    """VTK's name of a type of cell."""
    model = _vtk("vtkCommonDataModel")
    util = getattr(model, "vtkCellTypeUtilities", model.vtkCellTypes)
    return str(util.GetClassNameFromTypeId(number))
