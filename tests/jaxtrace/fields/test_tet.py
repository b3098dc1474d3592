from __future__ import annotations

import flows
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import Delaunay

import jaxtrace as jt
from jaxtrace import Status
from jaxtrace.fields import FieldError, _walk
from jaxtrace.fields import _simplices as simplices
from jaxtrace.fields._bins import bins_of_boxes


def linear(p):
    return np.stack([1 + p[:, 0] - 2 * p[:, 1], p[:, 2], 3 * p[:, 0] - p[:, 2] + 0.5], axis=1)


@pytest.fixture(scope="module")
def conforming():
    points, cells = flows.jittered(8)
    return points, cells, jt.TetField(linear(points)[None], points, cells)


@pytest.fixture(scope="module")
def hanging():
    points, cells = flows.nonconforming()
    return points, cells, jt.TetField(linear(points)[None], points, cells)


def rounded(places):
    """Places that float32 can hold, so that both sides look at the same ones."""
    return places.astype(np.float32).astype(np.float64)


def vtk_probe(points, cells, values, places):
    """Values by VTK's own cell locator and weights, and whether it found each place."""
    vtk = pytest.importorskip("vtk")
    from vtk.util.numpy_support import numpy_to_vtk, numpy_to_vtkIdTypeArray

    mesh = vtk.vtkUnstructuredGrid()
    mesh_points = vtk.vtkPoints()
    mesh_points.SetDataTypeToDouble()
    mesh_points.SetData(numpy_to_vtk(points, deep=True))
    mesh.SetPoints(mesh_points)
    array = vtk.vtkCellArray()
    flat = np.hstack([np.full((len(cells), 1), 4), cells]).astype(np.int64).ravel()
    array.ImportLegacyFormat(numpy_to_vtkIdTypeArray(flat, deep=True))
    mesh.SetCells(vtk.VTK_TETRA, array)
    locator = vtk.vtkStaticCellLocator()
    locator.SetDataSet(mesh)
    locator.BuildLocator()
    cell, at, weights = vtk.vtkGenericCell(), [0.0] * 3, [0.0] * 4
    wanted, valid = np.full((len(places), values.shape[1]), np.nan), np.zeros(len(places), bool)
    for i, place in enumerate(places):
        found = locator.FindCell(place, 0.0, cell, at, weights)
        if found >= 0 and min(weights) < 0:
            # VTK takes a neighbour that is within a thousandth: go by the right cell there.
            corner = points[cells[:, 0]]
            edges = (points[cells[:, 1:]] - corner[:, None]).transpose(0, 2, 1)
            b = np.linalg.solve(edges, (place - corner)[..., None])[..., 0]
            b = np.concatenate([1 - b.sum(1, keepdims=True), b], axis=1)
            found = int(b.min(axis=1).argmax())
            weights = b[found].tolist()
        if found >= 0:
            wanted[i], valid[i] = np.asarray(weights) @ values[cells[found]], True
        weights = [0.0] * 4
    return wanted, valid


@pytest.mark.parametrize("mesh", ["conforming", "hanging"])
def test_vtk_agrees_at_every_point(mesh, request):
    points, cells, _ = request.getfixturevalue(mesh)
    values = np.random.default_rng(1).random((len(points), 3))
    if mesh == "hanging":  # two values at a duplicated point would make both of us right
        values = np.sin(5 * points)
    field = jt.TetField(values[None], points, cells)
    places = rounded(np.random.default_rng(2).uniform(0.001, 0.999, (4000, 3)))
    wanted, valid = vtk_probe(points, cells, values, places)
    found = np.asarray(field.sample(places, 0.0))
    assert not np.isnan(found).any()
    assert valid.mean() > 0.999  # VTK itself loses a few on the interface
    near = np.abs(places[:, 0] - 0.5) < 1e-4 if mesh == "hanging" else np.zeros(len(places), bool)
    assert np.abs(found - wanted)[valid & ~near].max() < 1e-5


@pytest.mark.slow
def test_vtk_agrees_on_a_large_mesh():
    points, cells = flows.jittered(26)
    assert len(cells) > 100_000
    values = np.random.default_rng(1).random((len(points), 3))
    field = jt.TetField(values[None], points, cells)
    places = rounded(np.random.default_rng(2).uniform(0.001, 0.999, (10_000, 3)))
    wanted, valid = vtk_probe(points, cells, values, places)
    found = np.asarray(field.sample(places, 0.0))
    assert valid.all()
    assert np.abs(found - wanted).max() < 1e-5


@pytest.mark.parametrize("mesh", ["conforming", "hanging"])
def test_walking_far_finds_every_point(mesh, request):
    """From one corner to anywhere in one step: no cap on cells crossed."""
    _, _, field = request.getfixturevalue(mesh)
    places = np.random.default_rng(3).uniform(0.001, 0.999, (3000, 3))
    x = jnp.asarray(places.T, jnp.float32)
    hint = jnp.zeros(3000, jnp.int32)
    value, status, cell = jax.jit(lambda f, *a: f.evaluate(*a))(field, x, jnp.float32(0), hint)
    assert (status == 0).all()
    assert np.abs(np.asarray(value).T - linear(places)).max() < 1e-5
    again = field.evaluate(x, jnp.float32(0), cell)
    assert (again.hint == cell).all()


def test_soft_neighbours_let_a_walk_cross_an_interface(hanging):
    """With them nobody needs the hash; without them whoever must cross does."""
    _, _, field = hanging
    places = np.random.default_rng(4).uniform(0.01, 0.99, (500, 3))
    x = jnp.asarray(places.T, jnp.float32)
    start = _walk.search(field.mesh, x[::-1])  # places across the diagonal
    walked = _walk._walk(field.mesh, x, start._replace(inside=jnp.zeros(500, bool)))
    there = field.mesh.barycentric(x, walked.cell)
    assert np.allclose(there, walked.barycentric, atol=1e-5)
    arrived = np.min(there, axis=0) >= -_walk.TOLERANCE
    assert arrived.mean() > 0.97
    crossing = (np.asarray(x[0]) < 0.5) != (np.asarray(x[2]) < 0.5)
    assert crossing.sum() > 100
    assert arrived[crossing].mean() > 0.95


@pytest.mark.parametrize("mesh", ["conforming", "hanging"])
def test_hints_make_no_difference_to_values(mesh, request):
    """Near hints, far ones, none: walks in blocks, and searches, all lead to the same cell."""
    _, cells, field = request.getfixturevalue(mesh)
    rng = np.random.default_rng(5)
    places = rounded(rng.uniform(0.001, 0.999, (3000, 3)))
    x = jnp.asarray(places.T, jnp.float32)
    near = np.asarray(field.evaluate(x, jnp.float32(0)).hint)
    far = rng.integers(0, len(cells), len(places))
    hint = np.where(rng.random(len(places)) < 0.7, near, far)
    hint[rng.random(len(places)) < 0.02] = -1
    evaluate = jax.jit(lambda f, x, h, a: f.evaluate(x, jnp.float32(0), h, a))
    active = jnp.ones(len(places), bool)
    for hints in (hint, far, np.full(len(places), -1)):
        value, status, cell = evaluate(field, x, jnp.asarray(hints, jnp.int32), active)
        assert not np.asarray(status).any()
        assert np.allclose(value.T, linear(places), atol=2e-5)
        assert np.min(field.mesh.barycentric(x, cell), axis=0).min() >= -2 * _walk.TOLERANCE


def test_a_walk_around_a_hole_arrives():
    angle = np.linspace(0, 2 * np.pi, 33)[:-1]
    ring = lambda r: np.stack([r * np.cos(angle), r * np.sin(angle)], 1)  # noqa: E731
    points = np.concatenate([ring(1.0), ring(2.0)])
    i = np.arange(32)
    j = (i + 1) % 32
    cells = np.concatenate([np.stack([i, j, i + 32], 1), np.stack([j, j + 32, i + 32], 1)])
    field = jt.TetField(points[None], points, cells)
    x = jnp.array([[-1.5], [0.0]], jnp.float32)
    start = _walk.search(field.mesh, -x).cell
    value, status, _ = field.evaluate(x, jnp.float32(0), start)
    assert status.tolist() == [0]
    assert np.allclose(value, x, atol=1e-5)
    assert field.evaluate(0 * x, jnp.float32(0), start).status.tolist() == [Status.EXITED]


@hypothesis.settings(max_examples=4)
@hypothesis.given(seed=st.integers(0, 2**31))
def test_triangles_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    points = rng.random((60, 2))
    mesh = Delaunay(points)
    field = jt.TetField(points[None], points, mesh.simplices)
    places = rng.random((64, 2))
    found = np.asarray(field.sample(places, 0.0))
    inside = mesh.find_simplex(places, tol=-1e-6) >= 0
    outside = mesh.find_simplex(places, tol=1e-4) < 0
    assert np.abs(found - places)[inside].max(initial=0) < 1e-5
    assert np.isnan(found[outside]).all()


def test_a_walk_in_a_circle_ends():
    """Neighbours that lie: 0 -> 1 -> 0. The hash finds the place all the same."""
    points, cells = flows.cube_tets([0, 0, 0], [1, 1, 1], 2)
    field = jt.TetField(linear(points)[None], points, cells)
    import equinox as eqx

    lying = jnp.zeros_like(field.mesh.neighbour).at[:4].set(1)
    field = eqx.tree_at(lambda f: f.mesh.neighbour, field, lying)
    places = np.random.default_rng(0).random((100, 3))
    x = jnp.asarray(places.T, jnp.float32)
    value, status, _ = field.evaluate(x, jnp.float32(0), jnp.zeros(100, jnp.int32))
    assert (status == 0).all()
    assert np.abs(np.asarray(value).T - linear(places)).max() < 1e-5


def test_derivatives_are_those_of_the_linear_pieces(conforming):
    _, _, field = conforming
    x = jnp.full((3, 1), 0.41, jnp.float32)
    for j, wanted in enumerate(np.array([[1, 0, 3], [-2, 0, 0], [0, 1, -1]])):
        along = jnp.zeros((3, 1), jnp.float32).at[j].set(1.0)
        _, slope = jax.jvp(lambda x: field.evaluate(x, jnp.float32(0)).value, (x,), (along,))
        assert np.allclose(slope[:, 0], wanted, atol=1e-4)
    reverse = jax.grad(lambda x: field.evaluate(x, jnp.float32(0)).value[0, 0])(x)
    assert np.allclose(reverse[:, 0], [1, -2, 0], atol=1e-4)


def test_inverted_cells_are_as_good_and_flat_ones_are_left_out():
    points, cells = flows.cube_tets([0, 0, 0], [1, 1, 1], 2)
    flipped = cells[:, [1, 0, 2, 3]]
    place = np.random.default_rng(0).random((50, 3))
    field = jt.TetField(linear(points)[None], points, flipped)
    assert np.abs(field.sample(place, 0.0) - linear(place)).max() < 1e-5
    flat = np.concatenate([cells[:3], [[0, 1, 2, 2]], cells[3:]])
    with pytest.warns(jt.TraceWarning, match="1 of 49 cells have no volume.* cell 3"):
        field = jt.TetField(linear(points)[None], points, flat)
    assert np.abs(field.sample(place, 0.0) - linear(place)).max() < 1e-5


@pytest.mark.parametrize(("outside", "wanted"), [("clamp", 1.0), ("zero", 0.0), ("nan", np.nan)])
def test_outside_follows_the_rule(outside, wanted):
    points, cells = flows.cube_tets([0, 0, 0], [1, 1, 1], 2)
    field = jt.TetField(points[None, :, :1], points, cells, outside=outside)
    value = field.sample([[1.2, 0.5, 0.5]], 0.0)
    assert np.allclose(value, wanted, equal_nan=True, atol=0.2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": np.array([[0, 1, 2, 99]])}, r"cells\[0, 3\] = 99"),
        ({"cells": np.zeros((0, 4), int)}, "cells is empty"),
        ({"cells": np.array([[0, 1, 2]])}, "need tetrahedra"),
        ({"points": np.full((27, 3), np.nan)}, r"points has 81 values .* first at \[0, 0\]"),
        ({"data": np.zeros((1, 5, 3))}, "with 27 points"),
        ({"data": np.full((1, 27, 3), np.inf)}, "data has 81 values"),
        ({"cells": np.array([[0, 0, 0, 0]])}, "no cell of the mesh has a volume"),
    ],
)
def test_bad_input_is_named(change, message):
    points, cells = flows.cube_tets([0, 0, 0], [1, 1, 1], 2)
    good = {"data": points[None], "points": points, "cells": cells}
    with pytest.raises(FieldError, match=message):
        jt.TetField(**(good | change))


def test_neighbours_of_many_points_are_those_of_few():
    """Keys too long for one integer are numbered first: the answer is the same."""
    _, cells = flows.jittered(5)
    few = simplices.neighbours(cells)
    assert np.array_equal(few, simplices.neighbours(cells * np.int64(30_000_011)))
    slow = {}
    for cell, corners in enumerate(cells):
        for j in range(4):
            slow.setdefault(frozenset(np.delete(corners, j).tolist()), []).append((cell, j))
    wanted = np.full(cells.shape, -1)
    for pair in slow.values():
        if len(pair) == 2:
            (a, i), (b, j) = pair
            wanted[a, i], wanted[b, j] = b, a
    assert np.array_equal(few, wanted)


def test_bins_list_every_box_that_touches_them():
    rng = np.random.default_rng(3)
    low = rng.random((300, 2))
    high = low + rng.random((300, 2)) ** 6  # a few of them are wide
    bins = bins_of_boxes(low, high, 400)
    places = rng.random((200, 2))
    start, count, _ = bins.find(jnp.asarray(places.T, jnp.float32))
    for place, first, length in zip(places, np.asarray(start), np.asarray(count), strict=True):
        listed = set(np.asarray(bins.entries)[first : first + length].tolist())
        assert set(np.flatnonzero(((low <= place) & (place <= high)).all(axis=1))) <= listed


@pytest.mark.parametrize("index", [-1, 4])
def test_a_corner_that_is_just_not_there_is_named(index):
    points = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    with pytest.raises(FieldError, match=rf"cells\[0, 3\] = {index}, but there are 4 points"):
        jt.TetField(np.zeros((1, 4, 3)), points, np.array([[0, 1, 2, index]]))
