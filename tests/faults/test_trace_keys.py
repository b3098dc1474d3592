"""Chance without a key is another each time, is told, and can be drawn again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxtrace as jt
from jaxtrace import export
from jaxtrace.tracking import TrackError
from jaxtrace.tracking.boundary import (
    compose_boundaries,
    continuous_inlet_boundary_factory,
    reflective_boundary,
)
from worldloom.cli import main

FIELD = jt.AnalyticField(lambda x, t: jnp.stack([1.0 + 0 * x[0], 0 * x[1]]), dim=2)
BOX = [[0.0, 0.0], [1.0, 1.0]]
SEEDS = np.full((40, 2), 0.5)


def walk(**options):
    options = {"diffusivity": 0.1} | options
    tracker = jt.create_tracker("euler", field=FIELD, device_count=1, **options)
    return tracker.track_particles(SEEDS, (0.0, 1.0), 10)


def inlet(distribution="uniform"):
    return continuous_inlet_boundary_factory(BOX, inlet_distribution=distribution)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"boundary_condition": inlet(), "diffusivity": None},
        {"boundary_condition": inlet("gaussian"), "diffusivity": None},
        {
            "boundary_condition": compose_boundaries(inlet(), reflective_boundary(BOX)),
            "diffusivity": None,
        },
    ],
)
def test_without_a_key_each_tracker_draws_its_own(options):
    one, other = walk(**options), walk(**options)
    assert one.report.key != other.report.key
    assert not np.array_equal(one.positions, other.positions)
    again = walk(**options, key=one.report.key)
    assert np.array_equal(again.positions, one.positions)
    assert again.report.key == one.report.key


@pytest.mark.parametrize("boundary", [None, inlet("grid"), reflective_boundary(BOX)])
def test_where_nothing_is_drawn_there_is_no_key(boundary):
    assert walk(diffusivity=None, boundary_condition=boundary).report.key is None


def test_keys_of_jax_and_numbers_are_taken_and_others_named():
    assert np.array_equal(walk(key=jax.random.key(3)).positions, walk(key=3).positions)
    assert walk(key=0).report.key == 0
    for key in (-1, 1.5, "a", True, 2**32, 2**64):
        with pytest.raises(TrackError, match="expected a whole number from 0 to"):
            walk(key=key)


def test_seeds_without_a_seed_are_others_and_say_with_what(tmp_path):
    one, other = jt.random_seeds(50, BOX), jt.random_seeds(50, BOX)
    assert not np.array_equal(one, other)
    assert np.array_equal(jt.random_seeds(50, BOX, seed=one.seed), one)
    assert one[:3].seed is None  # not what seed would draw
    released, _ = jt.repeated_release(one, [0.0, 1.0])
    for seeds in (one, released):
        tracks = jt.create_tracker(field=FIELD).track_particles(seeds, (0.0, 0.1), 2)
        assert tracks.report.seed == one.seed
    for ending in ("nc", "zarr"):
        path = export.write(tracks, tmp_path / f"a.{ending}")
        assert xr.open_dataset(path).attrs["seed"] == one.seed


def test_a_boundary_that_draws_at_a_call_takes_a_key():
    places = np.full((9, 2), 1.5)
    assert not np.array_equal(inlet()(places), inlet()(places))
    assert np.array_equal(inlet()(places, key=1), inlet()(places, key=1))


def test_the_shell_tells_its_keys_and_takes_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    axes = {"y": np.linspace(0, 100, 5), "x": np.linspace(0, 100, 5)}
    data = {n: (("y", "x"), np.full((5, 5), 0.1), {"units": "m/s"}) for n in "uv"}
    units = {n: (n, v, {"units": "m"}) for n, v in axes.items()}
    xr.Dataset(data, coords=units).to_netcdf("flow.nc")
    words = ["trace", "run", "flow.nc", "--n-timesteps", "5", "--dt", "1"]
    words += ["--seeds.count", "20", "--diffusivity", "0.1"]

    def go(name, *more):
        main([*words, "-o", name, *more])
        with xr.open_dataset(name) as found:
            return found.load()

    one = go("a.nc")
    key, seed = int(one.attrs["key"]), int(one.attrs["seed"])
    printed = capsys.readouterr().out
    assert f"{key} (--key)" in printed
    assert f"{seed} (--seeds.key)" in printed
    again = go("b.nc", "--key", str(key), "--seeds.key", str(seed))
    assert np.array_equal(one["x"], again["x"], equal_nan=True)
    other = go("c.nc", "--seeds.key", str(seed))
    assert np.array_equal(one["x"][:, 0], other["x"][:, 0])
    assert not np.array_equal(one["x"], other["x"], equal_nan=True)
