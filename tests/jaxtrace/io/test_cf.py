"""NetCDF and Zarr by the CF conventions."""

from __future__ import annotations

import cftime
import files
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxtrace as jt
from jaxtrace import Status
from jaxtrace.io import DataError, open_dataset

METRES = 6_371_000.0 * np.pi / 180
LON, LAT = np.linspace(-10.0, 10.0, 9), np.linspace(30.0, 60.0, 7)
EAST = {"standard_name": "eastward_sea_water_velocity", "units": "m s-1"}
NORTH = {"standard_name": "northward_sea_water_velocity", "units": "m s-1"}
UP = {"standard_name": "upward_sea_water_velocity", "units": "m s-1"}


def ocean(times=(0.0, 1.0), units="days since 2000-01-01", lat=LAT, lon=LON, calendar=None):
    """1 m/s east and 0.5 m/s north, twice as fast in each next slice."""
    time = {"units": units, "standard_name": "time"}
    if calendar:
        time["calendar"] = calendar
    speed = (2.0 ** np.arange(len(times)))[:, None, None] * np.ones((len(lat), len(lon)))
    dims = ("time", "lat", "lon")
    return xr.Dataset(
        {"a": (dims, speed, EAST), "b": (dims, 0.5 * speed, NORTH)},
        coords={
            "time": ("time", np.asarray(times, np.float64), time),
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
    )


def box():
    """A flow in metres, with its axes in an order of their own and depth downwards."""
    x, y, z = files.AXES
    values = [files.velocity(np.stack(np.meshgrid(x, y, -z, indexing="ij"), -1), t) for t in (0, 1)]
    dims = ("time", "x", "depth", "y")
    parts = np.stack(values).transpose(4, 0, 1, 3, 2)
    about = [{"units": "m/s"}, {"units": "m/s"}, UP]
    return xr.Dataset(
        {n: (dims, part, a) for n, part, a in zip("uvw", parts, about, strict=True)},
        coords={
            "time": ("time", [0.0, 1.0], {"units": "seconds since 2000-01-01"}),
            "x": ("x", x, {"units": "m"}),
            "y": ("y", y, {"units": "m"}),
            "depth": ("depth", z, {"units": "m", "positive": "down"}),
        },
    )


@pytest.mark.parametrize("form", ["nc", "zarr", "xarray"])
def test_a_3d_flow_comes_back_from_every_store(form, tmp_path):
    path = tmp_path / f"a.{form}"
    store = box()
    if form == "nc":
        store.to_netcdf(path)
    elif form == "zarr":
        store.to_zarr(path, zarr_format=2, consolidated=False)
    dataset = open_dataset(store if form == "xarray" else path)
    assert (dataset.kind, dataset.dim, dataset.velocity) == ("grid", 3, ("u", "v", "w"))
    assert dataset.epoch == "seconds since 2000-01-01, calendar standard"
    assert np.allclose(dataset.bounds, [[-1, 0, -3], [1, 2, -2]])
    where = dataset.geometry.coordinates
    for i in (1, 0):
        found = dataset.slice(i).velocity.reshape(-1, 3)
        assert np.abs(found - files.velocity(where, i)).max() < 1e-5
    field = dataset.field(progress=False)
    assert isinstance(field, jt.StructuredField)
    places = files.inside((files.AXES[0], files.AXES[1], np.array([-3.0, -2.0])))
    assert np.abs(field.sample(places, 0.25) - files.velocity(places, 0.25)).max() < 1e-5


def test_metres_a_second_become_degrees_a_second(tmp_path):
    ocean().to_netcdf(tmp_path / "a.nc")
    dataset = open_dataset(tmp_path / "a.nc")
    assert dataset.velocity == ("a", "b")
    assert dataset.times.tolist() == [0.0, 86400.0]
    field = dataset.field(progress=False)
    found = np.asarray(field.sample([[0.0, 45.0], [0.0, 60.0]], 0.0))
    wanted = [[1 / np.cos(np.radians(45.0)), 0.5], [2.0, 0.5]]
    assert np.allclose(found * METRES, wanted, rtol=1e-5)
    plain = open_dataset(tmp_path / "a.nc", convert_units=False)
    assert np.allclose(plain.slice(1).velocity, [2.0, 1.0])


def test_a_particle_goes_as_far_as_on_the_earth():
    """A day at 1 m/s along the parallel of 60 degrees is 86.4 km."""
    store = ocean((0.0,)).isel(time=0)
    store["b"].values[:] = 0.0
    tracker = jt.create_tracker("euler", field=open_dataset(store).field(progress=False))
    end = tracker.track_particles([[0.0, 60.0]], time_span=(0.0, 86400.0), n_timesteps=20)
    east, north = np.asarray(end.positions[-1, 0])
    assert abs(east * METRES * 0.5 - 86400.0) < 5
    assert north == 60.0


@pytest.mark.parametrize(
    ("units", "scale"), [("cm/s", 0.01), ("km h-1", 1 / 3.6), ("knots", 1852 / 3600)]
)
def test_units_of_velocity_are_converted(units, scale):
    store = ocean()
    for name in "ab":
        store[name].attrs["units"] = units
    found = open_dataset(store).slice(0).velocity
    assert np.allclose(found[..., 1] * METRES, 0.5 * scale, rtol=1e-5)


def test_unknown_units_are_said_and_wrong_ones_refused():
    store = ocean()
    del store["a"].attrs["units"]
    with pytest.warns(jt.TraceWarning, match="a has units '' and lon is in degrees.*as m/s"):
        dataset = open_dataset(store)
    assert np.allclose(dataset.slice(0).velocity[..., 1] * METRES, 0.5, rtol=1e-5)
    store = box()
    store["w"].attrs["units"] = "Pa s-1"
    with pytest.raises(DataError, match=r"w is in 'Pa s-1', but depth measures a length"):
        open_dataset(store)
    assert open_dataset(store, velocity=("u", "v")).dim == 3


def test_kilometres_become_metres():
    store = box()
    store["x"].attrs["units"] = "km"
    assert np.allclose(open_dataset(store).geometry.axes[0], 1000 * files.AXES[0])


def test_latitude_from_north_to_south_is_turned_round(tmp_path):
    store = ocean(lat=LAT[::-1])
    store["b"].values += 0.01 * store["lat"].values[:, None]
    store.to_netcdf(tmp_path / "a.nc")
    field = open_dataset(tmp_path / "a.nc").field(progress=False)
    assert np.allclose(field.sample([[0.0, 40.0]], 0.0)[0, 1] * METRES, 0.9, rtol=1e-5)


def test_longitudes_that_jump_are_unwrapped():
    store = ocean(lon=np.array([170.0, 175.0, 180.0, -175.0, -170.0]))
    store["b"].values[:] = store["lon"].values / 10
    dataset = open_dataset(store)
    assert np.allclose(dataset.bounds[:, 0], [170.0, 190.0])
    found = dataset.field(progress=False).sample([[187.0, 45.0]], 0.0)[0, 1] * METRES
    assert np.allclose(found, -17.3, rtol=1e-4)


@pytest.mark.parametrize("lon", [[0.0, 200.0], np.arange(0.0, 340.0, 10.0)])
def test_less_than_a_circle_is_not_periodic(lon):
    assert open_dataset(ocean(lon=np.asarray(lon))).geometry.period == (None, None)


@pytest.mark.parametrize("start", [-180.0, 0.0])
def test_a_whole_circle_is_periodic(start):
    lon = start + np.arange(0.0, 360.0, 30.0)
    store = ocean(lon=lon)
    store["b"].values[:] = np.cos(np.radians(lon))
    dataset = open_dataset(store)
    assert dataset.geometry.period == (360.0, None)
    field = dataset.field(progress=False)
    places = np.array([[10.0, 45.0], [350.0, 45.0], [-10.0, 45.0], [370.0, 45.0]])
    found = np.asarray(field.sample(places, 0.0))[:, 1]
    assert np.isfinite(found).all()
    assert np.ptp(found) < 1e-3 * found.max()


def test_land_is_where_values_are_missing(tmp_path):
    store = ocean()
    store["a"][:, 3, 4] = np.nan
    store["b"][:, 3, 4] = np.nan
    path = tmp_path / "a.nc"
    packed = {"dtype": "int16", "scale_factor": 0.01, "_FillValue": -9999}
    store.to_netcdf(path, encoding={"a": packed, "b": packed})
    dataset = open_dataset(path)
    assert np.isnan(dataset.slice(0).velocity[4, 3]).all()
    field = dataset.field(progress=False)
    places = jnp.array([[0.1, 45.1], [8.0, 45.0]], jnp.float32).T
    status = jax.jit(lambda f, x: f.evaluate(x, jnp.float32(0)).status)(field, places)
    assert status.tolist() == [Status.BEACHED, Status.ALIVE]


def test_scattered_points_of_a_grid_leave_land_out():
    store = ocean()
    store["a"][:, 3, 4] = np.nan
    field = open_dataset(store).field(scattered=True, progress=False)
    assert isinstance(field, jt.TimeSeriesField)
    assert field.positions.shape == (len(LON) * len(LAT) - 1, 2)


@pytest.mark.parametrize(
    ("units", "calendar", "times", "wanted"),
    [
        ("hours since 1990-01-01", None, (0.0, 6.0), (0.0, 21600.0)),
        ("days since 2000-02-28", "noleap", (0.0, 1.0, 2.0), (0.0, 86400.0, 172800.0)),
        ("days since 2001-02-28", "360_day", (0.0, 3.0), (0.0, 259200.0)),
        ("seconds since 1970-01-01", None, (1.6e9, 1.6e9 + 0.25), (1.6e9, 1.6e9 + 0.25)),
        ("days since 0001-01-01", "standard", (730000.0, 730000.5), None),
    ],
)
@pytest.mark.parametrize("decoded", [False, True])
def test_units_and_calendars_of_time(units, calendar, times, wanted, decoded, tmp_path):
    ocean(times, units, calendar=calendar).to_netcdf(tmp_path / "a.nc")
    if decoded:
        coder = xr.coders.CFDatetimeCoder(use_cftime=None, time_unit="us")
        source = xr.open_dataset(tmp_path / "a.nc", decode_times=coder)
    else:
        source = tmp_path / "a.nc"
    wanted = np.asarray(times) * 86400 if wanted is None else wanted
    dataset = open_dataset(source)
    assert np.abs(dataset.times - wanted).max() < 1e-4
    assert dataset.epoch.startswith(f"seconds since {units.partition(' since ')[2]}")


def test_dates_without_units_count_from_1970():
    store = ocean().assign_coords(time=np.array(["1970-01-02", "1970-01-03"], "datetime64[ns]"))
    assert open_dataset(store).times.tolist() == [86400.0, 172800.0]
    dates = [cftime.DatetimeNoLeap(1970, 3, 1), cftime.DatetimeNoLeap(1970, 3, 2)]
    assert open_dataset(ocean().assign_coords(time=dates)).times.tolist() == [
        59 * 86400.0,
        60 * 86400.0,
    ]


def test_files_of_a_series_share_one_clock(tmp_path):
    ocean((0.0, 1.0)).to_netcdf(tmp_path / "f1.nc")
    ocean((0.0, 12.0), "hours since 2000-01-03").to_netcdf(tmp_path / "f2.nc")
    dataset = open_dataset(str(tmp_path / "f*.nc"))
    assert dataset.times.tolist() == [0.0, 86400.0, 172800.0, 172800.0 + 43200.0]
    assert np.allclose(dataset.slice(3).velocity[..., 1] * METRES, 1.0)
    ocean((5.0,), calendar="noleap").to_netcdf(tmp_path / "f3.nc")
    with pytest.raises(DataError, match=r"f3\.nc: its calendar is 'noleap'"):
        open_dataset(str(tmp_path / "f*.nc"))
    ocean((5.0,), lat=LAT + 1).to_netcdf(tmp_path / "f3.nc")
    with pytest.raises(DataError, match=r"f3\.nc: 'lat' differs"):
        open_dataset(str(tmp_path / "f*.nc"))
    ocean((1.0,)).to_netcdf(tmp_path / "f3.nc")
    with pytest.raises(DataError, match=r"f3\.nc \(slice 4\) has an earlier time than slice 3"):
        open_dataset(str(tmp_path / "f*.nc"))


def test_an_axis_of_length_one_is_left_out():
    store = box().isel(depth=[1])
    dataset = open_dataset(store)
    assert (dataset.dim, dataset.velocity) == (2, ("u", "v"))
    where = np.column_stack([dataset.geometry.coordinates, np.full(dataset.points, -2.5)])
    found = dataset.slice(1).velocity.reshape(-1, 2)
    assert np.abs(found - files.velocity(where, 1)[:, :2]).max() < 1e-5
    side = open_dataset(box().isel(y=[2]))
    assert side.dim == 2
    where = np.insert(side.geometry.coordinates, 1, files.AXES[1][2], axis=1)
    found = side.slice(1).velocity.reshape(-1, 2)
    assert np.abs(found - files.velocity(where, 1)[:, [0, 2]]).max() < 1e-5
    assert side.velocity == ("u", "w")
    named = open_dataset(box().isel(y=[2]), velocity=("u", "w"))
    assert np.array_equal(named.slice(1).velocity, side.slice(1).velocity)
    with pytest.raises(DataError, match="expected at least two axes"):
        open_dataset(box().isel(x=[0], y=[0]))


@pytest.mark.parametrize("lat", [3, [3]])
def test_a_section_along_a_parallel_knows_its_latitude(lat):
    store = ocean().expand_dims(depth=[0.0, 10.0]).isel(lat=lat)
    store["depth"].attrs["units"] = "m"
    dataset = open_dataset(store)
    assert np.allclose(dataset.bounds, [[-10, -10], [10, 0]])
    found = dataset.slice(0).velocity
    assert np.allclose(found[..., 0] * METRES * np.cos(np.radians(LAT[3])), 1.0, rtol=1e-5)
    with pytest.raises(DataError, match="no length without a latitude"):
        open_dataset(store.isel(lat=0).drop_vars("lat") if lat == [3] else store.drop_vars("lat"))


def test_without_a_vertical_velocity_particles_stay_at_their_depth():
    dataset = open_dataset(box().drop_vars("w"))
    assert dataset.dim == 3
    assert (dataset.slice(0).velocity[..., 2] == 0).all()
    assert any("stay at their depth" in note for note in dataset.notes)


def test_scalars_come_along_even_without_a_time():
    store = box()
    store["salt"] = store["u"] * 2
    store["floor"] = store["u"].isel(time=0, drop=True) * 3
    dataset = open_dataset(store, scalars=("salt", "floor"))
    one = dataset.slice(1)
    assert np.allclose(one.scalars["salt"], 2 * one.velocity[..., 0])
    assert np.allclose(one.scalars["floor"], 3 * dataset.slice(0).velocity[..., 0])
    field = dataset.field(scalar="salt", progress=False)
    assert field.components == 1


def test_velocities_that_are_not_obvious_are_refused_with_what_there_is():
    store = ocean()
    for name in "ab":
        del store[name].attrs["standard_name"]
    with pytest.raises(DataError, match=r"no variables are obviously.*a \(scalar on points, flo"):
        open_dataset(store)
    assert open_dataset(store, velocity=("b", "a")).velocity == ("b", "a")
    with pytest.raises(DataError, match="no array is called 'c'"):
        open_dataset(store, velocity=("a", "c"))
    with pytest.raises(DataError, match="expected the names of two or three"):
        open_dataset(store, velocity="a")
    twice = ocean()
    twice["wind_u"] = twice["a"].assign_attrs(standard_name="eastward_wind")
    twice["wind_v"] = twice["b"].assign_attrs(standard_name="northward_wind")
    with pytest.raises(DataError, match=r"\['a', 'b', 'wind_u', 'wind_v'\] are more than one"):
        open_dataset(twice)


def test_grids_that_are_not_rectilinear_a_grids_are_refused():
    store = ocean()
    staggered = store.assign(b=store["b"].rename(lon="lon_v").assign_coords(lon_v=LON + 1))
    with pytest.raises(DataError, match=r"'b' has dimensions .*lon_v.*expected values at the same"):
        open_dataset(staggered)
    lon, lat = np.meshgrid(LON, LAT)
    lon = lon + 0.1 * (lat - 45.0)
    curved = xr.Dataset(
        {n: (("j", "i"), lon, {"units": "m/s"}) for n in "uv"},
        coords={"lon": (("j", "i"), lon), "lat": (("j", "i"), lat)},
    )
    with pytest.raises(DataError, match="two-dimensional"):
        open_dataset(curved)
    bare = ocean().drop_vars("lon")
    with pytest.raises(DataError, match=r"dimension 'lon' of 'a': it has no coordinates"):
        open_dataset(bare)
    with pytest.raises(DataError, match=r"slice 0 of 2\) does not say its time; give times="):
        open_dataset(ocean().drop_vars("time"))
    assert open_dataset(ocean().drop_vars("time"), times=[3, 4]).times.tolist() == [3.0, 4.0]
    many = store.expand_dims(member=[1, 2])
    with pytest.raises(DataError, match=r"dimension 'member'.*isel\(member=0\)"):
        open_dataset(many)
    assert open_dataset(many.isel(member=0)).dim == 2


def test_damaged_files_are_named(tmp_path):
    ocean((0.0, 1.0)).to_netcdf(tmp_path / "f1.nc")
    ocean((2.0, 3.0)).to_netcdf(tmp_path / "f2.nc")
    whole = (tmp_path / "f2.nc").read_bytes()
    (tmp_path / "f2.nc").write_bytes(whole[: len(whole) // 3])
    with pytest.raises(DataError, match=r"f2\.nc \(file 1\): the file is damaged"):
        open_dataset(str(tmp_path / "f*.nc"))


def test_nothing_turns_at_a_pole():
    store = ocean(lat=np.array([80.0, 85.0, 90.0]))
    found = open_dataset(store).slice(0).velocity
    assert np.isfinite(found).all()
    assert (found[:, -1, 0] == 0).all()
    with pytest.raises(DataError, match="a latitude of 95 degrees"):
        open_dataset(ocean(lat=np.array([80.0, 95.0])))
