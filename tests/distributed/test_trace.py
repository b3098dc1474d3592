"""`worldloom trace run` on two processes leaves the tracks of one."""

from __future__ import annotations

import numpy as np
import pytest
import xarray
from launching import launch

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
    flow += ["--scalars", "salt", "--record-velocities"]
    assert main([*flow, "-o", "one.nc"]) == 0
    capfd.readouterr()
    assert launch(*flow, "-o", "two.nc") == 0
    out = capfd.readouterr().out
    assert out.count("two.nc") == 1, "figures are printed once"
    assert "7 in 2 dimensions" in out
    assert "2 processes, each with 1 x" in out
    with xarray.open_dataset("one.nc") as one, xarray.open_dataset("two.nc") as two:
        assert set(one) == set(two)
        assert 7 in one.sizes.values()
        for name in one.variables:
            np.testing.assert_array_equal(one[name].values, two[name].values, err_msg=name)


def test_more_processes_than_particles(flow, capfd):
    np.save("seeds.npy", np.array([[0.5, 0.0], [0.0, 0.5]]))
    assert main([*flow, "-o", "one.nc"]) == 0
    assert launch(*flow, "-o", "three.nc", processes=3) == 0
    with xarray.open_dataset("one.nc") as one, xarray.open_dataset("three.nc") as three:
        for name in one.variables:
            np.testing.assert_array_equal(one[name].values, three[name].values, err_msg=name)
