"""`worldloom trace run` on two processes leaves the tracks of one."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import xarray
from launching import launch

import jaxtrace as jt
import worldloom as wl
from jaxtrace.cli import _share
from jaxtrace.tracking import TrackError
from worldloom.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def flow(tmp_path, monkeypatch):
    """A vortex that turns faster and faster, as NetCDF; and particles, an odd number of them."""
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"))
    turn = np.array([0.5, 1.0, 1.5], np.float32)[:, None, None]
    axes = ("time", "x", "y")
    data = {
        "u": (axes, -turn * grid[1], {"units": "m s-1"}),
        "v": (axes, turn * grid[0], {"units": "m s-1"}),
        "salt": (axes, np.broadcast_to(grid[0], (3, 9, 9))),
    }
    times = ("time", [0.0, 1.0, 2.0], {"units": "seconds since 2001-02-03"})
    axis = ("x", x, {"units": "m"}), ("y", x, {"units": "m"})
    xarray.Dataset(data, {"time": times, "x": axis[0], "y": axis[1]}).to_netcdf("flow.nc")
    np.save("seeds.npy", np.random.default_rng(0).uniform(-0.9, 0.9, (7, 2)))
    return ["trace", "run", "flow.nc", "--seeds.file", "seeds.npy", "--n-timesteps", "30"]


def test_two_processes_leave_the_tracks_of_one(flow, capfd):
    flow += ["--save-every", "10", "--diffusivity", "0.01", "--boundary", "absorbing"]
    flow += ["--key", "7"]
    flow += ["--scalars", "salt", "--record-velocities"]
    assert main([*flow, "-o", "one.nc"]) == 0
    capfd.readouterr()
    assert launch(*flow, "-o", "two.nc") == 0
    out = capfd.readouterr().out
    assert out.count("two.nc") == 1, "figures are printed once"
    assert "7 in 2 dimensions" in out
    assert "2 processes, each with 1 x" in out
    with xarray.open_dataset("one.nc") as one:
        assert 7 in one.sizes.values()
    same("one.nc", "two.nc")


def same(one, other):
    with xarray.open_dataset(one) as one, xarray.open_dataset(other) as other:
        assert set(one) == set(other)
        for name in one.variables:
            np.testing.assert_array_equal(one[name].values, other[name].values, err_msg=name)


def test_other_processes_finish_what_two_began(flow, capfd):
    """A worker is killed; one process goes on, and three do, each with the tracks of one."""
    np.save("seeds.npy", np.random.default_rng(0).uniform(-0.9, 0.9, (50, 2)))
    flow += ["--save-every", "5", "--diffusivity", "0.01", "--key", "7"]
    assert main([*flow, "-o", "one.nc"]) == 0
    stopped = [*flow, "--checkpoint", "run", "--save-seconds", "0"]
    assert launch("trace_run.py", "3", *stopped, "-o", "two.nc") == 128 + signal.SIGKILL
    assert not Path("two.nc").exists()
    begun = sorted(path.name for path in Path("run").iterdir())
    assert "part1-of-8" in begun
    assert "part7-of-8" not in begun, "it died in the middle"
    shutil.copytree("run", "again")
    assert main([*stopped, "-o", "alone.nc"]) == 0
    same("one.nc", "alone.nc")
    stopped[stopped.index("--checkpoint") + 1] = "again"
    assert launch(*stopped, "-o", "three.nc", processes=3) == 0
    same("one.nc", "three.nc")


def test_a_checkpoint_of_another_run_is_refused(flow, capfd):
    assert main([*flow, "--checkpoint", "run", "-o", "one.nc"]) == 0
    assert main([*flow[:-1], "31", "--checkpoint", "run", "-o", "two.nc"]) != 0
    assert "--n-timesteps" in capfd.readouterr().err


def test_more_processes_than_parts_are_refused(monkeypatch):
    monkeypatch.setattr(_share.jax, "process_count", lambda: 9)
    tracker = jt.create_tracker(field=jt.AnalyticField(lambda x, t: 0 * x, dim=2))
    with pytest.raises(TrackError, match=r"9 processes .* at most 8"):
        _share.follow_share(tracker, np.zeros((20, 2)), None, checkpoint=wl.Checkpoint("run"))


def test_more_processes_than_particles(flow, capfd):
    np.save("seeds.npy", np.array([[0.5, 0.0], [0.0, 0.5]]))
    assert main([*flow, "-o", "one.nc"]) == 0
    assert launch(*flow, "-o", "three.nc", processes=3) == 0
    same("one.nc", "three.nc")
