"""Series of files: their order and times, what is refused, and what is known before reading."""

from __future__ import annotations

import concurrent.futures

import files
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import vtk

import jaxtrace as jt
from jaxtrace.io import DataError, open_dataset

POINTS, HEXES = files.hex_block()
CUBE = (np.linspace(0.0, 1.0, 3),) * 3
BESIDE = POINTS + np.array([2.0, 0.0, 0.0])


def mesh(t, points=POINTS, cells=HEXES, **options):
    data = files.unstructured(points, [(vtk.VTK_HEXAHEDRON, cells)])
    return files.fill(data, points, t, **options)


def image(t, axes=CUBE, **options):
    return files.fill(files.image(axes), files.nodes(axes), t, **options)


def series(folder, make=mesh, suffix=".vtu", times=files.TIMES, **options):
    for i, t in enumerate(times):
        files.write(make(t, **options), folder / f"a{i}{suffix}")
    return str(folder / f"a*{suffix}")


def test_numbers_in_names_are_numbers(tmp_path):
    for i, t in ((9, 0.5), (10, 0.75), (100, 1.5)):
        files.write(image(t), tmp_path / f"a{i}.vti")
    dataset = open_dataset(str(tmp_path / "a*.vti"))
    assert dataset.times.tolist() == [0.5, 0.75, 1.5]


def test_times_must_be_given_where_files_have_none(tmp_path):
    pattern = series(tmp_path, image, ".vti", time=False)
    with pytest.raises(DataError, match=r"a0\.vti \(slice 0 of 3\) does not say its time; give t"):
        open_dataset(pattern)
    dataset = open_dataset(pattern, times=[1, 2, 4])
    assert dataset.times.tolist() == [1.0, 2.0, 4.0]
    with pytest.raises(DataError, match=r"times has shape \[2\], but there are 3 slices"):
        open_dataset(pattern, times=[1, 2])
    steady = open_dataset(tmp_path / "a1.vti")
    assert steady.time_span is None
    assert steady.field(progress=False).time_span is None


def test_times_that_do_not_increase_are_named(tmp_path):
    pattern = series(tmp_path, image, ".vti", (0.5, 1.5, 0.75))
    with pytest.raises(
        DataError, match=r"a2\.vti \(slice 2\) has an earlier time than slice 1 .*a1"
    ):
        open_dataset(pattern)
    (tmp_path / "b").mkdir()
    pattern = series(tmp_path / "b", image, ".vti", (0.5, 0.5))
    with pytest.raises(DataError, match=r"a1\.vti \(slice 1\) has the same time as slice 0"):
        open_dataset(pattern)
    with pytest.raises(DataError, match=r"\(slice 1\): its time is nan"):
        open_dataset(pattern, times=[0.0, np.nan])


def test_a_pvd_that_lists_what_is_not_there(tmp_path):
    files.write(image(0.5), tmp_path / "a.vti")
    path = files.write_pvd(tmp_path / "a.pvd", [(0.5, "a.vti"), (0.75, "b.vti")])
    with pytest.raises(DataError, match=r"a\.pvd: slice 1 is in .*b\.vti, and there is no such"):
        open_dataset(path)
    files.write_pvd(path, [(0.5, "a.vti"), ("soon", "a.vti")])
    with pytest.raises(DataError, match=r"a\.pvd: DataSet 1 lacks its file or a timestep"):
        open_dataset(path)
    files.write_pvd(path, [])
    with pytest.raises(DataError, match="lists no files"):
        open_dataset(path)
    path.write_text("<VTKFile><Coll")
    with pytest.raises(DataError, match=r"a\.pvd: the file is damaged"):
        open_dataset(path)


def test_sources_that_name_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"source='none_\*\.vtu': no file matches"):
        open_dataset("none_*.vtu")
    with pytest.raises(DataError, match=r"none\.vtu: there is no such file"):
        open_dataset("none.vtu")
    with pytest.raises(DataError, match="empty list"):
        open_dataset([])
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(
        DataError, match=r"a\.csv: unknown ending '\.csv'; known are.*\.nc, .*\.vtu"
    ):
        open_dataset("a.csv")
    files.write(image(0.5), tmp_path / "a.vti")
    with pytest.raises(DataError, match=r"several formats, \['\.csv', '\.vti'\]"):
        open_dataset(["a.vti", "a.csv"])


@pytest.mark.parametrize("mode", ["Ascii", "Binary", "Appended"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.97])
def test_a_truncated_file_in_the_middle_is_named(mode, part, tmp_path, capfd):
    for i, t in enumerate(files.TIMES):
        files.write(mesh(t), tmp_path / f"a{i}.vtu", mode)
    path = tmp_path / "a1.vtu"
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(DataError, match=r"slice 1.*a1\.vtu: the file is damaged"):
        open_dataset(str(tmp_path / "a*.vtu")).field(progress=False)
    assert "ERR" not in capfd.readouterr().err


def test_vtk_speaks_again_after_an_error(tmp_path, capfd):
    (tmp_path / "a.vti").write_text("<VTKFile")
    with pytest.raises(DataError, match="damaged"):
        open_dataset(tmp_path / "a.vti")
    assert capfd.readouterr().err == ""
    reader = vtk.vtkXMLImageDataReader()
    reader.SetFileName(str(tmp_path / "a.vti"))
    reader.Update()
    assert "Error parsing XML" in capfd.readouterr().err


def test_not_a_vtk_file_at_all(tmp_path):
    for name in ("a.vtu", "a.vtk", "a.vtkhdf", "a.nc"):
        (tmp_path / name).write_bytes(b"hello" * 50)
        with pytest.raises(DataError, match=name.replace(".", r"\.")):
            open_dataset(tmp_path / name)


def test_meshes_that_change_are_refused(tmp_path):
    pattern = series(tmp_path)
    fewer, cells = files.hex_block((files.AXES[0][:-1], *files.AXES[1:]))
    files.write(mesh(0.75, fewer, cells), tmp_path / "a1.vtu")
    with pytest.raises(DataError, match=r"a1\.vtu \(slice 1\) has 48 points, slice 0 .* has 60"):
        open_dataset(pattern).slice(1)
    files.write(mesh(0.75, POINTS + 0.01), tmp_path / "a1.vtu")
    with pytest.raises(DataError, match=r"a1\.vtu \(slice 1\): points or cells differ"):
        open_dataset(pattern).slice(1)
    files.write(mesh(0.75, cells=HEXES[::-1]), tmp_path / "a1.vtu")
    with pytest.raises(DataError, match=r"a1\.vtu \(slice 1\): points or cells differ"):
        open_dataset(pattern).slice(1)
    other = files.unstructured(POINTS, [(vtk.VTK_HEXAHEDRON, HEXES)])
    files.write(files.add(other, "TimeValue", [0.75], "field"), tmp_path / "a1.vtu")
    with pytest.raises(DataError, match=r"a1\.vtu \(slice 1\) has no array 'velocity' on points"):
        open_dataset(pattern).slice(1)


def test_pieces_with_other_arrays_are_refused(tmp_path):
    files.write(mesh(0.5), tmp_path / "p0.vtu")
    bare = files.unstructured(BESIDE, [(vtk.VTK_HEXAHEDRON, HEXES)])
    files.write(bare, tmp_path / "p1.vtu")
    path = files.write_pvd(tmp_path / "a.pvd", [(0.5, "p0.vtu", 0), (0.5, "p1.vtu", 1)])
    with pytest.raises(
        DataError, match=r"p0\.vtu has the array 'velocity' on points, .*p1\.vtu has"
    ):
        open_dataset(path).slice(0)
    (tmp_path / "a.pvtu").write_text(
        '<V><P><Piece Source="p0.vtu"/><Piece Source="q.vtu"/></P></V>'
    )
    with pytest.raises(DataError, match=r"a\.pvtu: a piece is in .*q\.vtu, and there is no such"):
        open_dataset(tmp_path / "a.pvtu")


def test_the_two_sides_of_a_wall_stay_apart(tmp_path):
    """Points of one piece that coincide are not merged; a piece beside them changes nothing."""
    double = np.concatenate([POINTS, POINTS[:1]])
    for i, points in enumerate((double, BESIDE)):
        cells = [(vtk.VTK_HEXAHEDRON, HEXES), (vtk.VTK_TETRA, [[60, 1, 5, 20]])]
        data = files.unstructured(points, cells[: 2 - i])
        files.write(files.fill(data, points, 0.5), tmp_path / f"{i}.vtu")
    path = files.write_pvd(tmp_path / "a.pvd", [(0.5, "0.vtu", 0), (0.5, "1.vtu", 1)])
    dataset = open_dataset(path)
    shared = (POINTS[:, 0] == 1).sum()
    assert dataset.points == 61 + 60 - shared


def test_values_that_are_not_numbers_are_named(tmp_path):
    bad = files.velocity(POINTS, 0.5)
    bad[7, 1] = np.nan
    data = files.unstructured(POINTS, [(vtk.VTK_HEXAHEDRON, HEXES)])
    path = files.write(files.add(data, "velocity", bad), tmp_path / "a.vtu")
    with pytest.raises(
        DataError, match=r"a\.vtu \(slice 0\): velocity is nan at \[7, 1\] and in 1 p"
    ):
        open_dataset(path).slice(0)
    axes = CUBE
    values = files.velocity(files.nodes(axes), 0.5)
    values[0] = np.nan
    grid = files.add(files.image(axes), "velocity", values)
    dataset = open_dataset(files.write(grid, tmp_path / "a.vti"))
    assert np.isnan(dataset.slice(0).velocity[0, 0, 0]).all()
    values[1, 2] = np.inf
    grid = files.add(files.image(axes), "velocity", values)
    with pytest.raises(
        DataError, match=r"velocity is inf at \[1, 0, 0, 2\].*land is marked by NaN"
    ):
        open_dataset(files.write(grid, tmp_path / "a.vti")).slice(0)


def test_a_flow_that_sticks_to_its_walls_simply_loads(tmp_path):
    data = files.unstructured(POINTS, [(vtk.VTK_HEXAHEDRON, HEXES)])
    still = np.zeros((len(POINTS), 3))
    dataset = open_dataset(files.write(files.add(data, "velocity", still), tmp_path / "a.vtu"))
    assert (dataset.slice(0).velocity == 0).all()
    assert isinstance(dataset.field(progress=False), jt.TetField)


def test_types_may_differ_between_points_and_values(tmp_path):
    data = files.unstructured(POINTS, [(vtk.VTK_HEXAHEDRON, HEXES)], np.float32)
    files.add(data, "velocity", files.velocity(POINTS, 0.5), dtype=np.float64)
    dataset = open_dataset(files.write(data, tmp_path / "a.vtu"))
    assert dataset.arrays[0].dtype == "float64"
    assert dataset.slice(0).velocity.dtype == np.float32


@pytest.mark.parametrize("flat", [0, 1, 2])
def test_a_grid_with_an_axis_of_length_one_is_2d(flat, tmp_path):
    axes = [np.linspace(0.0, 1.0, 3), np.linspace(0.0, 2.0, 4)]
    axes.insert(flat, np.array([0.25]))
    dataset = open_dataset(files.write(image(0.5, axes), tmp_path / "a.vti"))
    assert (dataset.kind, dataset.dim, dataset.geometry.shape) == ("grid", 2, (3, 4))
    kept = [i for i in range(3) if i != flat]
    where = np.insert(dataset.geometry.coordinates, flat, 0.25, axis=1)
    found = dataset.slice(0).velocity.reshape(-1, 2)
    assert np.abs(found - files.velocity(where, 0.5)[:, kept]).max() < 1e-5
    line = (np.linspace(0.0, 1.0, 3), np.zeros(1), np.zeros(1))
    with pytest.raises(DataError, match="3 x 1 x 1 nodes; expected at least two along two axes"):
        open_dataset(files.write(image(0.5, line), tmp_path / "b.vti"))


def test_a_turned_image_is_a_mesh(tmp_path):
    data = image(0.5)
    data.SetDirectionMatrix(0, -1, 0, 1, 0, 0, 0, 0, 1)
    dataset = open_dataset(files.write(data, tmp_path / "a.vti"))
    places = {tuple(np.round(data.GetPoint(i), 6)) for i in range(27)}
    assert dataset.kind == "mesh"
    assert {tuple(p) for p in np.round(dataset.geometry.positions, 6)} == places


def test_hidden_points_of_a_grid_are_land(tmp_path):
    data = image(0.5)
    data.BlankPoint(13)
    velocity = open_dataset(files.write(data, tmp_path / "a.vti")).slice(0).velocity
    assert np.isnan(velocity[1, 1, 1]).all()
    assert np.isnan(velocity).sum() == 3


@pytest.mark.parametrize(
    ("name", "found"), [("velocity", True), ("U", True), ("Vel", True), ("Displacement", False)]
)
def test_only_names_that_say_velocity_are_taken(name, found, tmp_path):
    axes = CUBE
    data = files.add(files.image(axes), name, files.velocity(files.nodes(axes), 0.5))
    files.add(data, "p", np.zeros(27), dtype=np.float32)
    path = files.write(data, tmp_path / "a.vti")
    if found:
        assert open_dataset(path).velocity == (name,)
        return
    wanted = r"Displacement \(3-vector on points, float64\); p \(scalar on points, float32\)"
    with pytest.raises(DataError, match=rf"a\.vti: no array is obviously the velocity.*{wanted}"):
        open_dataset(path)
    assert open_dataset(path, velocity=name).velocity == (name,)
    with pytest.raises(DataError, match=r"velocity='p' has 1 components, and the data is 3-D"):
        open_dataset(path, velocity="p")
    with pytest.raises(DataError, match=r"no array is called 'T'; there are: Displacement"):
        open_dataset(path, velocity=name, scalars=("T",))
    files.write(files.add(files.add(data, "U", np.zeros((27, 3))), "vel", np.zeros((27, 3))), path)
    with pytest.raises(DataError, match=r"\['U', 'vel'\] may each be the velocity"):
        open_dataset(path)


def test_components_in_arrays_of_their_own(tmp_path):
    axes = CUBE
    values = files.velocity(files.nodes(axes), 0.5)
    data = files.image(axes)
    for i, name in enumerate("uvw"):
        files.add(data, name, values[:, i])
    path = files.write(data, tmp_path / "a.vti")
    for wanted in (None, ("u", "v", "w")):
        dataset = open_dataset(path, velocity=wanted)
        assert dataset.velocity == ("u", "v", "w")
        found = dataset.slice(0).velocity.reshape(-1, 3)
        assert np.abs(found - files.velocity(dataset.geometry.coordinates, 0.5)).max() < 1e-5
    with pytest.raises(DataError, match="expected 3 arrays of one component each"):
        open_dataset(path, velocity=("u", "v"))


def test_memory_is_known_and_refused_before_anything_is_read(tmp_path):
    pattern = series(tmp_path, image, ".vti")
    dataset = open_dataset(pattern)
    assert dataset.slice_nbytes == 27 * 3 * 4
    assert dataset.nbytes == 3 * 27 * 3 * 4
    for i in range(3):
        (tmp_path / f"a{i}.vti").unlink()
    jt.configure(memory_limit_gb=800e-9)
    wanted = r"3 slices of 324 B .* need .*\(800 B\): take at most 2 with steps=\.\.\., or raise"
    with pytest.raises(DataError, match=wanted):
        dataset.field()
    with pytest.raises(DataError, match="there is no such file"):
        dataset.field(steps=[0, 2])
    jt.configure(memory_limit_gb=0)


def test_a_series_larger_than_memory_is_streamed(tmp_path):
    times = tuple(np.arange(12) / 4)
    dataset = open_dataset(series(tmp_path, image, ".vti", times))
    jt.configure(memory_limit_gb=9 * 324e-9)
    wanted = r"12 slices .* at most 8 with .* stream them with window=4,"
    with pytest.raises(DataError, match=wanted):
        dataset.field()
    with pytest.raises(DataError, match="10 slices of 324 B"):
        dataset.field(window=5)
    field = dataset.field(window="auto")
    assert field.tables.parts[0].shape[0] == 4
    for c in range(3):
        wanted = [dataset.slice(i).velocity[..., c].ravel() for i in range(4)]
        assert np.array_equal(field.tables.parts[c], wanted)
    jt.configure(memory_limit_gb=0)
    assert dataset.field(window="auto", progress=False).data.shape[0] == 12
    with pytest.raises(DataError, match="window=4: points without cells cannot be streamed"):
        dataset.field(window=4, scattered=True)


@pytest.mark.slow
def test_streamed_tracks_are_the_same(tmp_path):
    dataset = open_dataset(series(tmp_path, image, ".vti", tuple(np.arange(12) / 4)))
    seeds = np.random.default_rng(0).uniform(0.4, 0.6, (20, 3))
    found = []
    for window in (None, 4):
        field = dataset.field(progress=False, outside="clamp", window=window)
        tracker = jt.create_tracker("rk4", field=field)
        tracks = tracker.track_particles(seeds, time_span=(0.0, 2.75), n_timesteps=40)
        found.append(np.asarray(tracks.positions))
    assert np.array_equal(*found)


def test_slices_can_be_read_from_threads_in_any_order(tmp_path):
    pattern = series(tmp_path, times=tuple(np.arange(8) / 4))
    dataset = open_dataset(pattern)
    wanted = [dataset.slice(i).velocity for i in range(8)]
    order = np.random.default_rng(0).integers(0, 8, 40).tolist()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: dataset.slice(i).velocity, order))
    for i, one in zip(order, found, strict=True):
        assert np.array_equal(one, wanted[i])
    assert np.array_equal(dataset.slice(-1).velocity, wanted[7])
    with pytest.raises(DataError, match="slice 8: there are 8 slices"):
        dataset.slice(8)


class Meter:
    def __init__(self):
        self.seen = []

    def start(self, done, length):
        self.seen.append((done, length))

    def update(self, done):
        self.seen.append(done)

    def stop(self):
        self.seen.append("end")


def test_steps_options_and_progress_of_a_field(tmp_path):
    dataset = open_dataset(series(tmp_path, image, ".vti"), scalars=("temperature",))
    meter = Meter()
    field = dataset.field(steps=slice(None, None, 2), outside="clamp", progress=meter)
    assert meter.seen == [(0, 2), 1, 2, "end"]
    assert field.times.tolist() == [0.5, 1.5]
    assert field.outside == "clamp"
    assert dataset.field(steps=[1], progress=False).time_span is None
    with pytest.raises(DataError, match=r"steps=\[2, 1\]: expected slices in increasing order"):
        dataset.field(steps=[2, 1])
    with pytest.raises(DataError, match="none of the 3 slices"):
        dataset.field(steps=slice(5, 9))
    with pytest.raises(DataError, match=r"scalar='salt': the dataset reads \['temperature'\]"):
        dataset.field(scalar="salt")
    with pytest.raises(DataError, match=r"a StructuredField has no option 'colour'; it has \['met"):
        dataset.field(colour="red")


def test_what_is_known_can_be_read(tmp_path):
    dataset = open_dataset(series(tmp_path), scalars=("temperature",))
    text = str(dataset)
    for part in (
        "VTU, 3 files: ",
        "mesh, 3-D: 60 points, 144 simplices in [-1, 1] x [0, 2] x [2, 3]",
        "times: 3 slices from 0.5 to 1.5, every 0.25 to 0.75",
        "velocity: velocity; scalars: temperature",
        "memory: 720 B a slice, 2.11 KiB in all",
        "  temperature (scalar on points, float64)",
    ):
        assert part in text
    assert repr(dataset) == "Dataset(VTU, mesh, 60 points, 3 slices, velocity=velocity)"
    assert dataset.arrays[0].shape == (60, 3)


@pytest.mark.parametrize(
    ("keep", "wanted"), [("last", [6, 7, 8]), ("first", [0, 1, 2]), ("even", [0, 4, 8])]
)
def test_a_bounded_number_of_slices(keep, wanted, tmp_path):
    pattern = series(tmp_path, image, ".vti", tuple(range(9)))
    field = jt.load_optimized_dataset(pattern, max_time_steps=3, dtype="float32", keep=keep)
    assert field.times.tolist() == wanted
    whole = jt.load_optimized_dataset(pattern, max_time_steps=40, keep=keep)
    assert len(whole.times) == 9


def test_bounds_that_make_no_sense(tmp_path):
    pattern = series(tmp_path, image, ".vti")
    with pytest.raises(DataError, match="max_time_steps=0"):
        jt.load_optimized_dataset(pattern, max_time_steps=0)
    with pytest.raises(DataError, match="dtype='float64', but fields are float32: call"):
        jt.load_optimized_dataset(pattern, dtype="float64")


@pytest.mark.parametrize("scattered", [True, False])
def test_the_way_of_the_seed(tmp_path, scattered):
    """Assigning device arrays to the loaded field, as its guide does."""
    pattern = series(tmp_path)
    field = jt.load_optimized_dataset(pattern, dtype="float32", scattered=scattered)
    assert isinstance(field, jt.TimeSeriesField if scattered else jt.TetField)
    field.data = jnp.array(field.data)
    field.positions = jnp.array(field.positions)
    field.times = jnp.array(field.times)
    field._data_dev = jax.device_put(field.data)
    field._times_dev = jax.device_put(field.times)
    field._pos_dev = jax.device_put(field.positions)
    assert field.data.shape == (3, 60, 3)
    found = field.sample(POINTS[:4], 0.75)
    assert np.abs(found - files.velocity(POINTS[:4], 0.75)).max() < 1e-5
    assert isinstance(jt.load_optimized_dataset(pattern), jt.TetField)
