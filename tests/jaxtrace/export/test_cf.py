"""What is written by the CF conventions, read back with xarray."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import xarray
from tracks import orbit

import jaxtrace as jt
from jaxtrace import export
from jaxtrace.export import _cf

ENDINGS = ["nc", "zarr"]


def opened(path, **options):
    if path.suffix == ".nc":
        return xarray.open_dataset(path, **options)
    return xarray.open_zarr(path, **options)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dim", [2, 3])
def test_xarray_opens_it_with_the_attributes_of_cf(tmp_path, ending, dim):
    tracks = orbit(dim=dim, velocities=True, scalars=True, generations=True)
    path = export.write(tracks, tmp_path / f"tracks.{ending}")
    with opened(path) as data:
        assert data.attrs["featureType"] == "trajectory"
        assert data.attrs["Conventions"].startswith("CF-1.")
        assert data.trajectory.attrs["cf_role"] == "trajectory_id"
        assert data.trajectory.values.tolist() == list(range(tracks.N))
        assert data.time.values.tolist() == tracks.times.tolist()
        assert [data[name].attrs["axis"] for name in "xyz"[:dim]] == list("XYZ"[:dim])
        assert set("xyz"[:dim]) <= set(data.temperature.coords)  # xarray took `coordinates` up
        assert data.status.attrs["flag_meanings"].split()[2] == "exited"
        assert list(data.status.attrs["flag_values"]) == list(range(8))
        shown = export.known(tracks).T
        for i, name in enumerate("xyz"[:dim]):
            expected = np.where(shown, tracks.positions[..., i].T, np.nan)
            np.testing.assert_array_equal(data[name].values, expected)
        np.testing.assert_array_equal(data.status.values, tracks.status.T)
        np.testing.assert_array_equal(data.speed.values, np.where(shown, tracks.speed().T, np.nan))
        np.testing.assert_array_equal(
            data.stress.values,
            np.where(shown[..., None], tracks.scalars["stress"].swapaxes(0, 1), np.nan),
        )
        assert data.velocity.dims == ("trajectory", "time", "velocity_component")
        assert np.isnan(data.age.values[1, 0])
        assert data.generation.values[3].tolist() == [0] * 4 + [1] * 5


@pytest.mark.parametrize("ending", ENDINGS)
def test_longitude_latitude_and_a_calendar(tmp_path, ending):
    tracks = orbit(dim=3)
    write = export.write_netcdf if ending == "nc" else export.write_zarr
    path = write(
        tracks,
        tmp_path / f"ocean.{ending}",
        coordinates=("lon", "lat", "depth"),
        time_units="hours since 2020-01-01",
    )
    with opened(path) as data:
        assert data.time.values[0] == np.datetime64("2020-01-01T10:00:00")
        assert data.lon.attrs["standard_name"] == "longitude"
        assert data.lat.attrs["units"] == "degrees_north"
        assert data.depth.attrs["positive"] == "down"
    np.testing.assert_array_equal(export.read(path).positions[0, 0], tracks.positions[0, 0])
    assert export.read(path).times[0] == 10.0


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_comes_back_as_it_was(tmp_path, ending):
    tracks = orbit(dim=3, velocities=True, scalars=True, generations=True)
    back = export.read(export.write(tracks, tmp_path / f"t.{ending}"))
    np.testing.assert_array_equal(back.times, tracks.times)
    np.testing.assert_array_equal(back.status, tracks.status)
    np.testing.assert_array_equal(back.positions, tracks.positions)
    np.testing.assert_array_equal(back.generations, tracks.generations)
    shown = export.known(tracks)
    np.testing.assert_array_equal(back.velocities[shown], tracks.velocities[shown])
    np.testing.assert_allclose(back.ages[shown], tracks.ages[shown], rtol=1e-6)
    assert sorted(back.scalars) == ["stress", "temperature"]
    np.testing.assert_array_equal(back.scalars["stress"][shown], tracks.scalars["stress"][shown])
    assert np.isfinite(back.positions).all()


def test_it_is_written_in_blocks(tmp_path, monkeypatch):
    tracks = orbit(n=7, t=11)
    whole = export.read(export.write(tracks, tmp_path / "a.zarr"))
    seen = []
    real = _cf.take

    def counted(trajectory, name, rows, particles):
        values = real(trajectory, name, rows, particles)
        seen.append(values.size)
        return values

    monkeypatch.setattr(_cf, "take", counted)
    monkeypatch.setattr(_cf, "block_shape", functools.partial(_cf.block_shape, limit=150))
    pieces = export.read(export.write(tracks, tmp_path / "b.zarr"))
    assert len(seen) > 40
    assert max(seen) <= 12
    np.testing.assert_array_equal(pieces.positions, whole.positions)
    np.testing.assert_array_equal(pieces.status, whole.status)


def test_tracks_that_are_on_disk_are_read_there_in_blocks(tmp_path):
    from flows import rotation

    import worldloom as wl

    field = jt.AnalyticField(rotation, dim=2)
    seeds = jt.random_seeds(8, [[-1, -1], [1, 1]])
    sink = wl.ZarrSink(tmp_path / "run.zarr")
    tracks = jt.create_tracker(field=field).track_particles(seeds, (0.0, 1.0), 10, sink=sink)
    assert not isinstance(tracks.positions, np.ndarray)
    back = export.read(export.write(tracks, tmp_path / "cf.nc"))
    np.testing.assert_array_equal(back.positions, np.asarray(tracks.positions[:]))
    export.write(tracks, tmp_path / "lines.vtp")


def test_what_is_no_track_is_refused(tmp_path):
    xarray.Dataset({"a": ("x", [1.0])}).to_netcdf(tmp_path / "other.nc")
    with pytest.raises(export.ExportError, match="holds no tracks"):
        export.read(tmp_path / "other.nc")
    (tmp_path / "broken.nc").write_bytes(b"CDF5 and no more")
    with pytest.raises(export.ExportError, match="cannot be read"):
        export.read(tmp_path / "broken.nc")
    with pytest.raises(export.ExportError, match="there is no"):
        export.read(tmp_path / "nowhere.nc")
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "notes").write_text("precious")
    with pytest.raises(export.ExportError, match="no Zarr group"):
        export.write(orbit(), tmp_path / "mine.zarr")
    with pytest.raises(export.ExportError, match="2 names that differ"):
        export.write_netcdf(orbit(), tmp_path / "a.nc", coordinates=("x", "status"))


def test_the_folder_is_replaced_whole(tmp_path):
    export.write(orbit(scalars=True), tmp_path / "t.zarr")
    export.write(orbit(t=6), tmp_path / "t.zarr")
    with xarray.open_zarr(tmp_path / "t.zarr") as data:
        assert data.sizes["time"] == 6
        assert "stress" not in data
    assert [p.name for p in tmp_path.iterdir()] == ["t.zarr"]
