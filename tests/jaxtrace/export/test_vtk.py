"""What is written for ParaView, read back with VTK."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from tracks import orbit
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

from jaxtrace import export
from jaxtrace.export import _vtk
from worldloom.store import DiskError


def opened(path):
    reader = vtkXMLPolyDataReader()
    assert reader.CanReadFile(str(path))
    reader.SetFileName(str(path))
    reader.Update()
    assert reader.GetErrorCode() == 0
    return reader.GetOutput()


def arrays(data):
    return {
        data.GetArrayName(i): vtk_to_numpy(data.GetArray(i))
        for i in range(data.GetNumberOfArrays())
    }


def points(poly):
    return vtk_to_numpy(poly.GetPoints().GetData())


@pytest.mark.parametrize("dim", [2, 3])
def test_a_series_has_the_particles_of_each_time(tmp_path, dim):
    tracks = orbit(dim=dim, velocities=True, scalars=True)
    path = export.write_vtk(tracks, tmp_path / "run" / "tracks.pvd")
    entries = ElementTree.parse(path).findall(".//DataSet")
    assert [float(e.get("timestep")) for e in entries] == tracks.times.tolist()
    shown = export.known(tracks)
    assert not shown[0, 1]
    assert shown[5, 2]
    assert not shown[6, 2]
    for i, entry in enumerate(entries):
        poly = opened(path.parent / entry.get("file"))
        found = arrays(poly.GetPointData())
        ids = found["id"]
        assert ids.tolist() == np.flatnonzero(shown[i]).tolist()
        assert poly.GetNumberOfVerts() == len(ids)
        np.testing.assert_array_equal(points(poly)[:, :dim], tracks.positions[i, ids])
        assert (points(poly)[:, dim:] == 0).all()
        np.testing.assert_array_equal(found["status"], tracks.status[i, ids])
        np.testing.assert_allclose(found["age"], tracks.ages[i, ids], rtol=1e-6)
        np.testing.assert_array_equal(found["speed"], tracks.speed()[i, ids])
        np.testing.assert_array_equal(found["velocity"][:, :dim], tracks.velocities[i, ids])
        assert found["velocity"].shape[1] == 3
        np.testing.assert_array_equal(found["temperature"], tracks.scalars["temperature"][i, ids])
        np.testing.assert_array_equal(found["stress"], tracks.scalars["stress"][i, ids])
        assert arrays(poly.GetFieldData())["TimeValue"].tolist() == [tracks.times[i]]


def test_speeds_without_velocities_are_those_of_the_trajectory(tmp_path):
    tracks = orbit()
    path = export.write_vtk(tracks, tmp_path / "t.pvd")
    for i in range(tracks.T):
        found = arrays(opened(tmp_path / "t" / f"t_{i:04d}.vtp").GetPointData())
        np.testing.assert_allclose(found["speed"], tracks.speed()[i, found["id"]], rtol=1e-5)
    assert path.exists()


@pytest.mark.parametrize("limit", [1, 10**9])
def test_lines_follow_each_particle_while_it_is_in_the_flow(tmp_path, limit, monkeypatch):
    monkeypatch.setattr(_vtk, "BLOCK_BYTES", limit)
    tracks = orbit(scalars=True, generations=True)
    poly = opened(export.write_vtk(tracks, tmp_path / "lines.vtp"))
    number = arrays(poly.GetCellData())["id"]
    assert number.tolist() == [0, 1, 2, 3, 3, 4, 5]  # slot 3 began anew
    data = arrays(poly.GetPointData())
    rows = {0: (0, 9), 1: (2, 9), 2: (0, 6), 4: (0, 9), 5: (0, 9)}
    for cell, particle in enumerate(number):
        ids = poly.GetCell(cell).GetPointIds()
        at = [ids.GetId(i) for i in range(ids.GetNumberOfIds())]
        first, last = rows.get(particle, (0, 4) if number[cell - 1] != particle else (4, 9))
        np.testing.assert_array_equal(points(poly)[at, :2], tracks.positions[first:last, particle])
        np.testing.assert_array_equal(data["time"][at], tracks.times[first:last])
        np.testing.assert_array_equal(
            data["stress"][at], tracks.scalars["stress"][first:last, particle]
        )


def test_a_particle_that_is_seen_once_has_no_line(tmp_path):
    tracks = orbit()
    tracks.status[1:, 0] = 2  # has left at record 1, which is the end of its line
    tracks.status[:, 4] = 2  # has never been in the flow; record 0 alone is kept
    number = arrays(opened(export.write_vtk(tracks, tmp_path / "l.vtp")).GetCellData())["id"]
    assert number.tolist() == [0, 1, 2, 3, 5]


def test_an_older_series_is_replaced_and_nothing_else(tmp_path):
    export.write_vtk(orbit(t=9), tmp_path / "t.pvd")
    export.write_vtk(orbit(t=6), tmp_path / "t.pvd")
    assert len(list((tmp_path / "t").glob("*.vtp"))) == 6
    (tmp_path / "t" / "thesis.tex").write_text("precious")
    with pytest.raises(export.ExportError, match="thesis"):
        export.write_vtk(orbit(), tmp_path / "t.pvd")
    assert (tmp_path / "t" / "thesis.tex").read_text() == "precious"


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = export.write_vtk(orbit(), tmp_path / "l.vtp")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_vtk, "take", full)
    with pytest.raises(DiskError, match="No space left"):
        export.write_vtk(orbit(t=6), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["l.vtp"]


@pytest.mark.parametrize("name", ["tracks", "tracks.vtu", "tracks.csv"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(tmp_path, name):
    with pytest.raises(export.ExportError, match=r"expected one of \.pvd, \.vtp, \.nc, \.zarr"):
        export.write(orbit(), tmp_path / name)
    with pytest.raises(export.ExportError, match=r"\.pvd, \.vtp"):
        export.write_vtk(orbit(), tmp_path / name)
