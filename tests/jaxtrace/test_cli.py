"""`worldloom trace`, on files that VTK and xarray wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray
from flows import gyre_numpy
from tracks import orbit

from jaxtrace import export
from jaxtrace.cli._options import Seeds
from worldloom.cli import main


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The double gyre on a grid: once as NetCDF, once as a PVD of VTI in three dimensions."""
    import pyvista

    folder = tmp_path_factory.mktemp("flow")
    x, y, times = np.linspace(0, 2, 41), np.linspace(0, 1, 21), np.linspace(0, 10, 11)
    grid = np.stack(np.meshgrid(x, y, indexing="ij"))
    flow = np.stack([gyre_numpy(t, grid.ravel()).reshape(2, 41, 21) for t in times])
    axes = ("time", "x", "y")
    data = xarray.Dataset(
        {
            "u": (axes, flow[:, 0].astype(np.float32), {"units": "m s-1"}),
            "v": (axes, flow[:, 1].astype(np.float32), {"units": "m s-1"}),
            "temperature": (axes, np.broadcast_to(grid[0], (11, 41, 21)).astype(np.float32)),
        },
        {"time": ("time", times, {"units": "seconds since 2001-02-03"}), "x": x, "y": y},
    )
    data["x"].attrs = data["y"].attrs = {"units": "m"}
    data.to_netcdf(folder / "gyre.nc")
    entries = []
    for i, t in enumerate(times[:3]):
        image = pyvista.ImageData(dimensions=(41, 21, 3), spacing=(0.05, 0.05, 0.5))
        velocity = np.zeros((3, 41, 21, 3), np.float32)
        velocity[:2] = flow[i][..., None]
        image.point_data["velocity"] = velocity.transpose(3, 2, 1, 0).reshape(-1, 3)
        image.save(folder / f"f{i}.vti")
        entries.append(f'<DataSet timestep="{t}" file="f{i}.vti"/>')
    (folder / "flow.pvd").write_text(
        f'<VTKFile type="Collection"><Collection>{"".join(entries)}</Collection></VTKFile>'
    )
    return folder


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


def test_run_writes_what_the_endings_say(files, tmp_path, capsys):
    words = ["trace", "run", str(files / "gyre.nc"), "--seeds.count", "50", "--n-timesteps", "40"]
    words += ["--scalars", "temperature", "--boundary", "reflective", "--save-every", "10"]
    (tmp_path / "a").mkdir()
    names = ["a/t.nc", "t.zarr", "t.pvd", "t.vtp", "t.html"]
    assert main([*words, "-o", *names]) == 0
    said = capsys.readouterr().out
    assert all((tmp_path / name).exists() for name in names)
    assert "50 in 2 dimensions" in said
    assert "5 records from 0 to 10" in said
    assert "alive          50: moves with the flow" in said
    assert said.splitlines()[-5:] == names
    with xarray.open_dataset("a/t.nc") as data:
        assert data.time.values[-1] == np.datetime64("2001-02-03T00:00:10")
    tracks = export.read("t.zarr")
    np.testing.assert_allclose(tracks.scalars["temperature"], tracks.positions[..., 0], atol=1e-4)


def test_run_is_the_python_api(files):
    import jaxtrace as jt

    box = ["--seeds.low", "0.2", "0.2", "--seeds.high", "1", "0.8"]
    words = ["--seeds.resolution", "4", "3", *box, "--dt", "0.25"]
    flow = str(files / "gyre.nc")
    assert main(["trace", "run", flow, *words]) == 0
    tracks = export.read("tracks.nc")
    field = jt.open_dataset(files / "gyre.nc").field()
    seeds = jt.uniform_grid_seeds((4, 3), [[0.2, 0.2], [1.0, 0.8]])
    expected = jt.create_tracker(field=field).track_particles(seeds, (0.0, 10.0), dt=0.25)
    np.testing.assert_array_equal(tracks.positions, expected.positions)
    assert main(["trace", "run", flow, *words, "--window", "4", "-o", "few.nc"]) == 0
    np.testing.assert_array_equal(export.read("few.nc").positions, expected.positions)


def test_values_come_from_a_file_and_flags_win(files, capsys):
    with open("run.yaml", "w") as file:
        file.write(
            f"files: ['{files / 'flow.pvd'}']\ntime_span: [0, 2]\nn_timesteps: 20\n"
            "boundary: clamping\nout: [t.nc]\nseeds:\n  count: 30\n  release: [0, 1]\n"
        )
    assert main(["trace", "run", "run.yaml", "--n-timesteps", "10"]) == 0
    assert main(["trace", "run", "--config", "run.yaml", "n_timesteps=5", "out=[u.nc]"]) == 0
    tracks = export.read("t.nc")
    assert tracks.positions.shape == (11, 60, 3)
    assert (tracks.status[0] == 1).sum() == 30
    assert export.read("u.nc").T == 6


def test_a_wrong_key_is_answered_with_the_right_ones(capsys):
    with open("run.yaml", "w") as file:
        file.write("files: [a.nc]\nintegratr: rk4\n")
    assert main(["trace", "run", "run.yaml"]) == 2
    said = capsys.readouterr().err
    assert "unknown key 'integratr'. Did you mean 'integrator'?" in said
    assert "save_every" in said


def test_info_tells_of_flows_and_of_tracks(files, capsys):
    assert main(["trace", "info", str(files / "flow.pvd")]) == 0
    said = capsys.readouterr().out
    assert "41 x 21 x 3 nodes" in said
    assert "velocity" in said
    export.write(orbit(n=7, t=8), "tracks.nc")
    assert main(["trace", "info", "tracks.nc"]) == 0
    said = capsys.readouterr().out
    assert "Trajectory(N=7, T=8, dim=2" in said
    assert "exited         1: left the domain" in said


def test_view_of_tracks_and_of_a_flow(files, capsys):
    export.write(orbit(n=7, t=8), "tracks.nc")
    assert main(["trace", "view", "tracks.nc", "-o", "a.html", "--colour-by", "status"]) == 0
    assert capsys.readouterr().out == "a.html: 7 particles at 8 times\n"
    assert main(["trace", "view", str(files / "flow.pvd"), "--particles", "20"]) == 0
    assert "tracks.html: 20 particles" in capsys.readouterr().out
    with open("a.html") as page:
        assert "<title>tracks</title>" in page.read()


def test_ftle_as_picture_and_as_numbers(files, capsys):
    flow = str(files / "gyre.nc")
    words = ["--resolution", "24", "12", "--n-timesteps", "20", "--boundary", "clamping"]
    assert main(["trace", "ftle", flow, *words, "-o", "ftle.nc"]) == 0
    assert "24 x 12 places, 0 to 10, FTLE" in capsys.readouterr().out
    with xarray.open_dataset("ftle.nc") as data:
        import jaxtrace as jt
        from jaxtrace.analysis import ftle
        from jaxtrace.tracking.boundary import clamping_boundary

        field = jt.open_dataset(flow).field()
        seeds = jt.uniform_grid_seeds((24, 12), field.bounds)
        wall = clamping_boundary(field.bounds)
        expected = ftle(field, seeds, (0.0, 10.0), 20, boundary_condition=wall)
        np.testing.assert_array_equal(data.ftle.values.ravel(), expected)
        assert data.x.values[-1] == 2.0
    assert main(["trace", "ftle", flow, *words, "--time-span", "10", "0", "-o", "ftle.png"]) == 0
    with open("ftle.png", "rb") as picture:
        assert picture.read(4) == b"\x89PNG"
    volume = str(files / "flow.pvd")
    assert main(["trace", "ftle", volume, "--resolution", "8", "4", "2", "-o", "v.png"]) == 2
    assert "a picture has two axes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run"], 2, "name the files of a flow"),
        (["run", "nothing.nc"], 1, "nothing.nc"),
        (["run", "{gyre}", "-o", "t.csv"], 2, "expected .nc, .zarr"),
        (["run", "{gyre}", "--seeds.resolution", "3"], 2, "expected 2 numbers"),
        (["run", "{gyre}", "--seeds.file", "none.npy"], 2, "there is no file 'none.npy'"),
        (["run", "{gyre}", "--velocity", "w"], 1, "w"),
        (["run", "{gyre}", "--n-timesteps", "0"], 2, "must be 1 or more"),
        (["view", "nothing.nc"], 2, "there is no 'nothing.nc'"),
        (["view", "{gyre}", "-o", "t.png"], 2, "expected .html"),
        (["ftle", "{gyre}", "-o", "t.html"], 2, "expected .png"),
        (["info", "{gyre}", "--velocity", "speedy"], 1, "speedy"),
    ],
)
def test_mistakes_are_one_message(files, capsys, words, code, message):
    words = [word.format(gyre=files / "gyre.nc") for word in words]
    assert main(["trace", *words]) == code
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_seeds_from_a_file(files):
    from jaxtrace import open_dataset

    np.savetxt("seeds.csv", [[0.5, 0.5], [1.5, 0.25]], delimiter=",")
    seeds, release = Seeds(file=Path("seeds.csv")).make(open_dataset(files / "gyre.nc"))
    assert seeds.tolist() == [[0.5, 0.5], [1.5, 0.25]]
    assert release is None


def test_a_warning_is_one_line(files, capsys):
    flow = str(files / "gyre.nc")
    words = ["--time-span", "0", "20", "--n-timesteps", "4", "--seeds.resolution", "4", "3"]
    assert main(["trace", "run", flow, *words]) == 0
    said = capsys.readouterr().err
    assert "worldloom: warning: the run goes from 0 to 20, but the field has data" in said
    assert ".py:" not in said


@pytest.mark.slow
def test_ctrl_c_leaves_no_half_of_a_file(files, tmp_path):
    words = ["trace", "run", str(files / "gyre.nc"), "--n-timesteps", "20000000", "-o", "t.nc"]
    process = subprocess.Popen(
        [sys.executable, "-m", "worldloom.cli", *words, "--save-every", "1000000"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    time.sleep(12)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []
