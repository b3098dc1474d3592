"""Every format gives back the flow that was written."""

from __future__ import annotations

import files
import numpy as np
import pytest
import vtk
from vtkmodules.util.vtkAlgorithm import VTKPythonAlgorithmBase

import jaxtrace as jt
from jaxtrace.io import open_dataset

UNIFORM = (np.linspace(-1.0, 1.0, 5), np.linspace(0.0, 2.0, 4), np.linspace(2.0, 3.0, 3))


def skewed():
    """A block whose points are moved by a linear map: linear flows stay exact in its simplices."""
    points, cells = files.hex_block()
    return points @ np.array([[1.0, 0.2, 0.0], [0.1, 1.0, 0.0], [0.0, 0.3, 1.0]]), cells


def make(suffix):
    """A function of time to a data set, for each kind of file; and its kind."""
    if suffix == ".vti":
        points = files.nodes(UNIFORM)
        return (lambda t: files.fill(files.image(UNIFORM), points, t)), "grid"
    if suffix == ".vtr":
        points = files.nodes(files.AXES)
        return (lambda t: files.fill(files.rectilinear(), points, t)), "grid"
    points, cells = skewed()
    if suffix == ".vts":
        shape = [len(a) for a in files.AXES]
        return (lambda t: files.fill(files.curvilinear(shape, points), points, t)), "mesh"
    kind = [(vtk.VTK_HEXAHEDRON, cells)]
    return (lambda t: files.fill(files.unstructured(points, kind), points, t)), "mesh"


def check(dataset, *, times=files.TIMES, scalars=True, field=True):
    """Every slice, and the field between slices, against the flow itself."""
    assert np.allclose(dataset.times, times)
    where = dataset.geometry.coordinates
    for i in reversed(range(len(times))):
        one = dataset.slice(i)
        assert one.velocity.dtype == np.float32
        assert one.velocity.shape == (*dataset.geometry.shape, 3)
        wanted = files.velocity(where, times[i])
        assert np.abs(one.velocity.reshape(-1, 3) - wanted).max() < 1e-5
        if scalars:
            warm = one.scalars["temperature"].ravel()
            assert np.abs(warm - files.temperature(where, times[i])).max() < 1e-5
    if not field:
        return None
    field = dataset.field(progress=False)
    places = where.mean(axis=0) + 0.2 * (where[::7] - where.mean(axis=0))
    t = 0.6 * times[0] + 0.4 * times[-1]
    assert np.abs(field.sample(places, t) - files.velocity(places, t)).max() < 1e-5
    return field


@pytest.mark.parametrize("suffix", [".vti", ".vtr", ".vts", ".vtu", ".vtk"])
def test_a_series_of_files_comes_back(suffix, tmp_path):
    data, kind = make(suffix)
    for i, t in enumerate(files.TIMES):
        files.write(data(t), tmp_path / f"flow_{8 + i}{suffix}")
    dataset = open_dataset(str(tmp_path / f"flow_*{suffix}"), scalars=("temperature",))
    assert (dataset.kind, dataset.format, len(dataset)) == (kind, suffix[1:].upper(), 3)
    field = check(dataset)
    assert isinstance(field, jt.StructuredField if kind == "grid" else jt.TetField)
    warm = dataset.field(scalar="temperature", progress=False)
    where = dataset.geometry.coordinates
    wanted = np.stack([files.temperature(where, t) for t in files.TIMES])
    assert np.abs(np.asarray(warm.data).reshape(3, -1) - wanted).max() < 1e-4


@pytest.mark.parametrize("mode", ["Ascii", "Binary", "Appended"])
@pytest.mark.parametrize("suffix", [".vti", ".vtu"])
def test_every_encoding_of_xml_is_read(suffix, mode, tmp_path):
    data, _ = make(suffix)
    path = files.write(data(0.5), tmp_path / f"a{suffix}", mode)
    dataset = open_dataset(path)
    assert dataset.times.tolist() == [0.5]
    assert dataset.time_span is None
    wanted = files.velocity(dataset.geometry.coordinates, 0.5)
    assert np.abs(dataset.slice(0).velocity.reshape(-1, 3) - wanted).max() < 1e-5


def test_a_pvd_gives_times_and_order(tmp_path):
    data, _ = make(".vtu")
    (tmp_path / "parts").mkdir()
    for i, t in enumerate(files.TIMES):
        files.write(data(t), tmp_path / "parts" / f"{9 - i}.vtu")
    entries = [(t, f"parts/{9 - i}.vtu") for i, t in enumerate(files.TIMES)]
    dataset = open_dataset(files.write_pvd(tmp_path / "flow.pvd", entries), scalars="temperature")
    assert dataset.format == "PVD of VTU"
    check(dataset)


def test_a_list_of_files_and_times_by_paraview(tmp_path):
    data, _ = make(".vti")
    entries = []
    for i, t in enumerate(files.TIMES):
        files.write(data(9.0 if i == 9 else t), tmp_path / f"a{i}.vti")
        entries.append(f'{{"name": "a{i}.vti", "time": {t}}}')
    text = f'{{"file-series-version": "1.0", "files": [{", ".join(entries)}]}}'
    (tmp_path / "a.vti.series").write_text(text)
    check(open_dataset(tmp_path / "a.vti.series"), scalars=False)


def pieces_of(axis, cut):
    """The axis in two, with the node between them in both."""
    return axis[: cut + 1], axis[cut:]


def test_pieces_are_merged_at_their_interface(tmp_path):
    left, right = pieces_of(files.AXES[0], 2)
    for i, t in enumerate(files.TIMES):
        for part, axis in enumerate((left, right)):
            points, cells = files.hex_block((axis, *files.AXES[1:]))
            block = files.unstructured(points, [(vtk.VTK_HEXAHEDRON, cells)])
            files.write(files.fill(block, points, t), tmp_path / f"p{i}_{part}.vtu")
        sources = "".join(f'<Piece Source="p{i}_{part}.vtu"/>' for part in range(2))
        text = (
            '<VTKFile type="PUnstructuredGrid"><PUnstructuredGrid GhostLevel="0"><PPointData/>'
            f"{sources}</PUnstructuredGrid></VTKFile>"
        )
        (tmp_path / f"all_{i}.pvtu").write_text(text)
    dataset = open_dataset(tmp_path / "all_*.pvtu", scalars=("temperature",))
    whole, cells = files.hex_block()
    assert dataset.points == len(whole)
    assert dataset.cells == 6 * len(cells)
    assert any("12 points that pieces share" in note for note in dataset.notes)
    check(dataset, field=False)


def test_parts_of_a_pvd_are_pieces(tmp_path):
    entries = []
    for part, axis in enumerate(pieces_of(files.AXES[0], 3)):
        points, cells = files.hex_block((axis, *files.AXES[1:]))
        block = files.unstructured(points, [(vtk.VTK_HEXAHEDRON, cells)])
        for i, t in enumerate(files.TIMES):
            name = f"{i}_{part}.vtu"
            files.write(files.fill(block, points, t), tmp_path / name)
            entries.append((t, name, part))
    entries.sort(key=lambda entry: entry[0])
    dataset = open_dataset(files.write_pvd(tmp_path / "a.pvd", entries), scalars=("temperature",))
    assert dataset.points == len(files.nodes(files.AXES))
    check(dataset, field=False)


def test_ghost_cells_of_vtk_are_dropped(tmp_path):
    """Pieces with a layer of ghosts, as VTK's own parallel writer leaves them."""
    points, cells = files.hex_block()
    whole = files.fill(files.unstructured(points, [(vtk.VTK_HEXAHEDRON, cells)]), points, 0.5)
    split = vtk.vtkRedistributeDataSetFilter()
    split.SetInputData(whole)
    split.SetNumberOfPartitions(2)
    split.PreservePartitionsInOutputOn()
    ghosts = vtk.vtkGhostCellsGenerator()
    ghosts.SetInputConnection(split.GetOutputPort())
    ghosts.BuildIfRequiredOff()
    ghosts.SetNumberOfGhostLayers(1)
    ghosts.Update()
    parts = ghosts.GetOutputDataObject(0)
    names = []
    for i in range(parts.GetNumberOfPartitions()):
        part = parts.GetPartition(i)
        assert part.GetCellData().GetArray("vtkGhostType") is not None
        files.write(part, tmp_path / f"{i}.vtu")
        names.append((0.5, f"{i}.vtu", i))
    dataset = open_dataset(files.write_pvd(tmp_path / "a.pvd", names))
    assert (dataset.points, dataset.cells) == (len(points), 6 * len(cells))
    wanted = files.velocity(dataset.geometry.coordinates, 0.5)
    assert np.abs(dataset.slice(0).velocity - wanted).max() < 1e-5


def test_pieces_may_be_empty_and_hide_points(tmp_path):
    empty = vtk.vtkUnstructuredGrid()
    points, cells = files.hex_block()
    data = files.fill(files.unstructured(points, [(vtk.VTK_HEXAHEDRON, cells)]), points, 0.5)
    hidden = np.zeros(len(points))
    hidden[0] = 2
    files.add(data, "vtkGhostType", hidden, dtype=np.uint8)
    other = files.fill(
        files.unstructured(points + 10, [(vtk.VTK_HEXAHEDRON, cells)]), points + 10, 0.5
    )
    entries = []
    for i, part in enumerate((empty, data, other)):
        files.write(part, tmp_path / f"{i}.vtu")
        entries.append((0.5, f"{i}.vtu", i))
    dataset = open_dataset(files.write_pvd(tmp_path / "a.pvd", entries))
    assert (dataset.points, dataset.cells) == (2 * len(points) - 1, 6 * (2 * len(cells) - 1))
    wanted = files.velocity(dataset.geometry.coordinates, 0.5)
    assert np.abs(dataset.slice(0).velocity - wanted).max() < 1e-5


@pytest.mark.parametrize("suffix", [".vti", ".vtr", ".vts"])
def test_pieces_of_grids_are_put_together(suffix, tmp_path):
    axes = UNIFORM if suffix == ".vti" else files.AXES
    points = files.nodes(axes)
    shape = [len(a) for a in axes]
    data = {
        ".vti": lambda: files.image(axes),
        ".vtr": lambda: files.rectilinear(axes),
        ".vts": lambda: files.curvilinear(shape, points),
    }[suffix]()
    writer = {
        ".vti": vtk.vtkXMLPImageDataWriter,
        ".vtr": vtk.vtkXMLPRectilinearGridWriter,
        ".vts": vtk.vtkXMLPStructuredGridWriter,
    }[suffix]()
    path = tmp_path / f"a.p{suffix[1:]}"
    producer = vtk.vtkTrivialProducer()
    producer.SetOutput(files.fill(data, points, 0.5))
    producer.SetWholeExtent(data.GetExtent())
    writer.SetInputConnection(producer.GetOutputPort())
    writer.SetNumberOfPieces(2)
    writer.SetStartPiece(0)
    writer.SetEndPiece(1)
    writer.SetFileName(str(path))
    assert writer.Write() == 1
    dataset = open_dataset(path)
    assert len(dataset.files) == 2
    assert dataset.points == len(points)
    wanted = files.velocity(dataset.geometry.coordinates, 0.5)
    assert np.abs(dataset.slice(0).velocity.reshape(-1, 3) - wanted).max() < 1e-5


class InTime(VTKPythonAlgorithmBase):
    """A source with time steps, for the writer that asks for them."""

    def __init__(self, make, kind):
        super().__init__(nInputPorts=0, nOutputPorts=1, outputType=kind)
        self._make = make

    def RequestInformation(self, _request, _inputs, outputs):
        keys, info = vtk.vtkStreamingDemandDrivenPipeline, outputs.GetInformationObject(0)
        info.Set(keys.TIME_STEPS(), list(files.TIMES), len(files.TIMES))
        info.Set(keys.TIME_RANGE(), [files.TIMES[0], files.TIMES[-1]], 2)
        return 1

    def RequestData(self, _request, _inputs, outputs):
        key = vtk.vtkStreamingDemandDrivenPipeline.UPDATE_TIME_STEP()
        info = outputs.GetInformationObject(0)
        t = info.Get(key) if info.Has(key) else files.TIMES[0]
        out = vtk.vtkDataObject.GetData(outputs)
        out.ShallowCopy(self._make(t))
        out.GetInformation().Set(vtk.vtkDataObject.DATA_TIME_STEP(), t)
        return 1


@pytest.mark.parametrize("kind", ["vtkUnstructuredGrid", "vtkImageData"])
def test_one_vtkhdf_file_holds_all_times(kind, tmp_path):
    data, _ = make(".vtu" if kind == "vtkUnstructuredGrid" else ".vti")
    source = InTime(data, kind)
    writer = vtk.vtkHDFWriter()
    writer.SetInputConnection(source.GetOutputPort())
    writer.SetFileName(str(tmp_path / "a.vtkhdf"))
    writer.SetWriteAllTimeSteps(True)
    assert writer.Write() == 1
    dataset = open_dataset(tmp_path / "a.vtkhdf", scalars=("temperature",))
    assert (len(dataset.files), len(dataset)) == (1, 3)
    check(dataset)


def test_vtkhdf_files_of_one_time_each(tmp_path):
    data, _ = make(".vtu")
    for i, t in enumerate(files.TIMES):
        files.write(data(t), tmp_path / f"a{i}.vtkhdf")
    check(open_dataset(tmp_path / "a*.vtkhdf", scalars=("temperature",)))


def test_points_without_cells_are_scattered(tmp_path):
    points = np.random.default_rng(0).random((60, 3))
    data = vtk.vtkPolyData()
    data.SetPoints(files.vtk_points(points))
    verts = vtk.vtkVertexGlyphFilter()
    verts.SetInputData(files.fill(data, points, 0.5))
    verts.Update()
    for cloud, name in ((data, "bare.vtp"), (verts.GetOutput(), "verts.vtp")):
        dataset = open_dataset(files.write(cloud, tmp_path / name))
        assert (dataset.kind, dataset.points, dataset.cells) == ("points", 60, 0)
        field = dataset.field(progress=False)
        assert isinstance(field, jt.TimeSeriesField)
        wanted = files.velocity(points[:5], 0.5)
        assert np.abs(field.sample(points[:5], 0.5) - wanted).max() < 1e-5
