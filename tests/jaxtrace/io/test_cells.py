"""Cells of every kind become simplices that fill the same space and fit together."""

from __future__ import annotations

import files
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import vtk

from jaxtrace.io import DataError, open_dataset
from jaxtrace.io._cells import split

UNIT = tuple(np.linspace(0.0, 1.0, n) for n in (4, 3, 3))
PYRAMIDS = ((0, 1, 2, 3), (4, 7, 6, 5), (0, 4, 5, 1), (1, 5, 6, 2), (2, 6, 7, 3), (3, 7, 4, 0))


def mixed(seed):
    """A conforming block of hexahedra, wedges and pyramids, its points in a random order."""
    points, hexes = files.hex_block(UNIT)
    rng = np.random.default_rng(seed)
    inner = ((points > 0.01) & (points < 0.99)).all(axis=1)
    points = points + rng.uniform(-0.03, 0.03, points.shape) * inner[:, None]
    centre = points[hexes].mean(axis=1)
    column = centre[:, 0] > 0.67
    split_up = ~column & (rng.random(len(hexes)) < 0.5)
    wedges = np.concatenate(
        [hexes[column][:, [0, 1, 2, 4, 5, 6]], hexes[column][:, [0, 2, 3, 4, 6, 7]]]
    )
    tips = len(points) + np.arange(split_up.sum())
    pyramids = np.concatenate(
        [np.column_stack([hexes[split_up][:, face], tips]) for face in PYRAMIDS]
    )
    points = np.concatenate([points, centre[split_up]])
    order = rng.permutation(len(points))
    place = np.argsort(order)
    cells = {
        "hexahedron": place[hexes[~column & ~split_up]],
        "wedge": place[wedges],
        "pyramid": place[pyramids],
    }
    return points[order], cells


def volumes(points, tets):
    edges = points[tets[:, 1:]] - points[tets[:, :1]]
    return np.abs(np.linalg.det(edges)) / 6


@hypothesis.given(st.integers(0, 10**6))
@hypothesis.settings(max_examples=20)
def test_mixed_cells_fill_their_space_and_share_their_faces(seed):
    points, cells = mixed(seed)
    tets = np.concatenate([split(kind, found) for kind, found in cells.items()])
    assert volumes(points, tets).min() > 1e-7
    assert abs(volumes(points, tets).sum() - 1.0) < 1e-9
    faces = np.concatenate([np.delete(tets, j, axis=1) for j in range(4)])
    faces, count = np.unique(np.sort(faces, axis=1), axis=0, return_counts=True)
    assert count.max() == 2
    outer = points[faces[count == 1]]
    on_wall = (np.abs(outer - outer[:, :1]).max(axis=1) < 1e-12) & (
        (np.abs(outer[:, 0]) < 1e-12) | (np.abs(outer[:, 0] - 1) < 1e-12)
    )
    # A face with one cell inside the block would be two diagonals that cross.
    assert on_wall.any(axis=1).all()


KINDS = {
    "hexahedron": vtk.VTK_HEXAHEDRON,
    "wedge": vtk.VTK_WEDGE,
    "pyramid": vtk.VTK_PYRAMID,
}


def test_a_mixed_file_is_exact_for_linear_flows(tmp_path):
    points, cells = mixed(3)
    # Boundary patches, a line and a vertex are in many files; they are no part of the volume.
    extra = [(vtk.VTK_TRIANGLE, [0, 1, 2]), (vtk.VTK_LINE, [0, 1]), (vtk.VTK_VERTEX, [2])]
    data = files.unstructured(points, [*((KINDS[k], c) for k, c in cells.items()), *extra])
    dataset = open_dataset(files.write(files.fill(data, points, 0.5), tmp_path / "a.vtu"))
    assert any("3 cells of lower dimension" in note for note in dataset.notes)
    places = files.inside(UNIT, 400)
    found = dataset.field(progress=False).sample(places, 0.5)
    assert np.abs(found - files.velocity(places, 0.5)).max() < 1e-5


def test_voxels_and_hexahedra_are_the_same(tmp_path):
    points, hexes = files.hex_block(UNIT)
    found = []
    for kind, order in ((vtk.VTK_HEXAHEDRON, range(8)), (vtk.VTK_VOXEL, [0, 1, 3, 2, 4, 5, 7, 6])):
        data = files.unstructured(points, [(kind, hexes[:, list(order)])])
        path = files.write(files.fill(data, points, 0.5), tmp_path / f"{kind}.vtu")
        found.append(open_dataset(path).geometry.simplices)
    assert np.array_equal(*found)


@pytest.mark.parametrize("kind", ["triangle", "quad", "pixel", "mixed"])
@pytest.mark.parametrize("flat", [0, 1, 2])
def test_cells_in_a_plane_make_2d_fields(kind, flat, tmp_path):
    plane = [np.linspace(0.0, 1.0, 4), np.linspace(0.0, 2.0, 3)]
    axes = [*plane]
    axes.insert(flat, np.array([0.25]))
    points = files.nodes(axes)
    j, i = np.meshgrid(range(2), range(3), indexing="ij")
    quads = np.stack([(j + b) * 4 + i + a for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))], -1)
    quads = quads.reshape(-1, 4)
    triangles = (vtk.VTK_TRIANGLE, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]))
    cells = {
        "triangle": [triangles],
        "quad": [(vtk.VTK_QUAD, quads)],
        "pixel": [(vtk.VTK_PIXEL, quads[:, [0, 1, 3, 2]])],
        "mixed": [
            (vtk.VTK_QUAD, quads[:3]),
            (vtk.VTK_TRIANGLE, quads[3:, [0, 1, 2]]),
            (vtk.VTK_TRIANGLE, quads[3:, [0, 2, 3]]),
        ],
    }[kind]
    data = files.fill(files.unstructured(points, cells), points, 0.5)
    dataset = open_dataset(files.write(data, tmp_path / "a.vtu"))
    assert (dataset.dim, dataset.cells) == (2, 12)
    kept = [axis for axis in range(3) if axis != flat]
    assert np.allclose(dataset.bounds, [[0, 0], [1, 2]])
    places = files.inside(plane)
    whole = np.insert(places, flat, 0.25, axis=1)
    found = dataset.field(progress=False).sample(places, 0.5)
    assert np.abs(found - files.velocity(whole, 0.5)[:, kept]).max() < 1e-5


def test_quadratic_cells_count_by_their_corners(tmp_path):
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    pairs = [(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)]
    points = np.concatenate([corners, [(corners[a] + corners[b]) / 2 for a, b in pairs]])
    data = files.unstructured(points, [(vtk.VTK_QUADRATIC_TETRA, np.arange(10))])
    dataset = open_dataset(files.write(files.fill(data, points, 0.5), tmp_path / "a.vtu"))
    assert (dataset.points, dataset.cells) == (4, 1)
    assert any("by their corners" in note for note in dataset.notes)
    wanted = files.velocity(corners, 0.5)
    assert np.abs(dataset.slice(0).velocity - wanted).max() < 1e-6


def test_cells_that_cannot_be_split_are_named(tmp_path):
    points, hexes = files.hex_block(UNIT)
    data = files.unstructured(points, [(vtk.VTK_LAGRANGE_HEXAHEDRON, hexes)])
    path = files.write(files.fill(data, points, 0.5), tmp_path / "a.vtu")
    with pytest.raises(DataError, match=r"a\.vtu.*type 72 \(vtkLagrangeHexahedron\)"):
        open_dataset(path)


def test_a_curved_surface_is_refused(tmp_path):
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]])
    data = files.unstructured(points, [(vtk.VTK_TRIANGLE, [[0, 1, 2], [1, 3, 2]])])
    path = files.write(files.fill(data, points, 0.5), tmp_path / "a.vtu")
    with pytest.raises(DataError, match="do not lie in a plane"):
        open_dataset(path)


def test_inverted_and_collapsed_cells_are_taken(tmp_path):
    points, hexes = files.hex_block(UNIT)
    hexes = hexes.copy()
    hexes[0] = hexes[0][[4, 5, 6, 7, 0, 1, 2, 3]]  # inside out
    low = hexes[1][[0, 0, 3, 3, 4, 5, 6, 7]]  # collapsed: a wedge, and the other half beside it
    wedge = hexes[1][[0, 1, 5, 3, 2, 6]]
    cells = [(vtk.VTK_HEXAHEDRON, np.vstack([hexes[:1], low, hexes[2:]])), (vtk.VTK_WEDGE, wedge)]
    data = files.fill(files.unstructured(points, cells), points, 0.5)
    dataset = open_dataset(files.write(data, tmp_path / "a.vtu"))
    mesh = dataset.geometry
    assert volumes(mesh.positions, mesh.simplices).min() > 0
    assert abs(volumes(mesh.positions, mesh.simplices).sum() - 1) < 1e-9


def test_vtk_agrees_between_the_points(tmp_path):
    """Random velocities on a mesh of tetrahedra: VTK's own locator and weights as referee."""
    points, cells = mixed(3)
    tets = np.concatenate([split(kind, found) for kind, found in cells.items()])
    data = files.unstructured(points, [(vtk.VTK_TETRA, tets)])
    files.add(data, "velocity", np.random.default_rng(0).random((len(points), 3)))
    dataset = open_dataset(files.write(data, tmp_path / "a.vtu"))
    places = files.inside(UNIT, 400).astype(np.float32).astype(np.float64)
    wanted = files.probe(data, places)
    found = np.asarray(dataset.field(progress=False).sample(places, 0.0))
    assert not np.isnan(wanted).any()
    # VTK takes a neighbour that is within a thousandth: a few values are off by that much.
    wrong = np.abs(found - wanted).max(axis=1)
    assert np.median(wrong) < 1e-6
    assert (wrong > 1e-5).mean() < 0.02
    assert wrong.max() < 1e-2


@pytest.mark.parametrize("kind", ["mesh", "image", "curvilinear"])
def test_values_on_cells_become_the_means_that_vtk_makes(kind, tmp_path):
    rng = np.random.default_rng(1)
    if kind == "mesh":
        points, cells = mixed(7)
        data = files.unstructured(points, [(KINDS[k], c) for k, c in cells.items()])
        suffix = ".vtu"
    elif kind == "image":
        data, suffix = files.image(UNIT), ".vti"
    else:
        points = files.nodes(UNIT)
        data, suffix = files.curvilinear([len(a) for a in UNIT], points), ".vts"
    files.add(data, "U", rng.random((data.GetNumberOfCells(), 3)), "cells")
    files.add(data, "U", rng.random((data.GetNumberOfPoints(), 1)), "points")
    dataset = open_dataset(files.write(data, tmp_path / f"a{suffix}"), velocity=None)
    assert dataset.velocity == ("U",)
    assert any("mean of the cells around" in note for note in dataset.notes)
    means = vtk.vtkCellDataToPointData()
    means.SetInputData(data)
    means.Update()
    wanted = means.GetOutput().GetPointData().GetArray("U")
    from vtkmodules.util.numpy_support import vtk_to_numpy

    places = [data.GetPoint(i) for i in range(data.GetNumberOfPoints())]
    by_place = {tuple(p): v for p, v in zip(np.round(places, 9), vtk_to_numpy(wanted), strict=True)}
    found = dataset.slice(0).velocity.reshape(-1, 3)
    for place, value in zip(np.round(dataset.geometry.coordinates, 9), found, strict=True):
        assert np.abs(by_place[tuple(place)] - value).max() < 1e-6
