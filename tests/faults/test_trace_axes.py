"""Axes that are not what they seem are refused, or read right."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import jaxtrace as jt
from jaxtrace.io import DataError

EAST = {"standard_name": "eastward_sea_water_velocity", "units": "m s-1"}
NORTH = {"standard_name": "northward_sea_water_velocity", "units": "m s-1"}
LON, LAT = np.linspace(5.0, 6.0, 11), np.linspace(60.0, 61.0, 21)
DEGREE = 6_371_000.0 * np.pi / 180


def curvilinear(lon, lat, coords, about=(EAST, NORTH), as_data=False, **extra):
    """A flow on `Y`, `X` with two-dimensional longitudes and latitudes."""
    dims = ("Y", "X")
    data = {n: (dims, np.full(lon.shape, 0.5), a) for n, a in zip("uv", about, strict=True)}
    places = {
        "lon": (dims, lon, {"units": "degrees_east"}),
        "lat": (dims, lat, {"units": "degrees_north"}),
    }
    store = xr.Dataset({**data, **(places if as_data else {})}, coords=coords)
    return (store if as_data else store.assign_coords(places)).assign(extra)


def turned(angle):
    """The grid of `LON` and `LAT`, turned about its middle."""
    x, y = np.meshgrid(LON - 5.5, LAT - 60.5)
    c, s = np.cos(angle), np.sin(angle)
    return 5.5 + c * x - s * y, 60.5 + s * x + c * y


def metres_of(lon, lat):
    """Axes in metres, as long as the grid is on the earth."""
    across = np.hypot(np.diff(lon[0]) * np.cos(np.radians(60.5)), np.diff(lat[0])) * DEGREE
    along = np.hypot(np.diff(lon[:, 0]) * np.cos(np.radians(60.5)), np.diff(lat[:, 0])) * DEGREE
    return np.append(0.0, np.cumsum(across)), np.append(0.0, np.cumsum(along))


@pytest.mark.parametrize("as_data", [False, True])
@pytest.mark.parametrize("units", [None, "1", "m", "km"])
def test_counting_axes_beside_curved_longitudes_are_never_metres(units, as_data):
    about = {} if units is None else {"units": units}
    coords = {"X": ("X", np.arange(11.0), about), "Y": ("Y", np.arange(21.0), about)}
    with pytest.raises(DataError, match="two-dimensional"):
        jt.open_dataset(curvilinear(*turned(0.3), coords, as_data=as_data))
    with pytest.raises(DataError, match="two-dimensional"):
        jt.open_dataset(curvilinear(*turned(0.3), {}))


@pytest.mark.parametrize("coords", [{}, {"X": np.arange(11.0), "Y": np.arange(21.0)}])
@pytest.mark.parametrize("as_data", [False, True])
def test_two_dimensional_coordinates_of_a_rectilinear_grid_are_its_axes(coords, as_data):
    dataset = jt.open_dataset(curvilinear(*turned(0.0), coords, as_data=as_data))
    assert np.allclose(dataset.bounds, [[5.0, 60.0], [6.0, 61.0]])
    assert dataset.frame.axes == ("longitude", "latitude")
    speed = dataset.slice(0).velocity[0, 0] * DEGREE
    assert np.allclose(speed, [0.5 / np.cos(np.radians(60.0)), 0.5], rtol=1e-5)


def test_eastward_on_axes_that_are_not_east_is_refused():
    lon, lat = turned(0.3)
    x, y = metres_of(lon, lat)
    coords = {"X": ("X", x, {"units": "m"}), "Y": ("Y", y, {"units": "m"})}
    with pytest.raises(DataError, match=r"velocity eastward, and the axes are turned by up to"):
        jt.open_dataset(curvilinear(lon, lat, coords))
    along = tuple({"units": "m s-1", "standard_name": f"sea_water_{a}_velocity"} for a in "xy")
    with pytest.warns(jt.TraceWarning, match="metres on a map"):
        jt.open_dataset(curvilinear(lon, lat, coords, along))


def chart(mapping, about, axis="projection_{}_coordinate", units="m"):
    """A flow on the axes of a projection."""
    names = {"x": np.linspace(0.0, 1e5, 11), "y": np.linspace(-2e6, -1.9e6, 21)}
    if units == "degrees":
        names = {"x": np.linspace(-1.0, 1.0, 11), "y": np.linspace(-1.0, 1.0, 21)}
    coords = {
        n: (n, v, {"units": units, "standard_name": axis.format(n)}) for n, v in names.items()
    }
    data = {
        n: (("y", "x"), np.full((21, 11), 0.5), {**a, "grid_mapping": "crs"})
        for n, a in zip("uv", about, strict=True)
    }
    store = xr.Dataset(data, coords=coords)
    return store.assign(crs=((), 0, {"grid_mapping_name": mapping})) if mapping else store


@pytest.mark.parametrize("mapping", ["polar_stereographic", "lambert_conformal_conic", None])
@pytest.mark.parametrize("how", ["standard_name", "long_name"])
def test_eastward_on_a_map_is_refused(mapping, how):
    about = [{"units": "m/s", "long_name": f"{w} velocity"} for w in ("Eastward", "Northward")]
    about = (EAST, NORTH) if how == "standard_name" else about
    with pytest.raises(DataError, match="not east and north: turn the components"):
        jt.open_dataset(chart(mapping, about))


def test_a_map_says_that_its_scale_is_not_applied():
    along = [{"units": "m/s", "standard_name": f"sea_water_{a}_velocity"} for a in "xy"]
    with pytest.warns(jt.TraceWarning, match=r"on a map \(polar_stereographic\).*by its scale"):
        dataset = jt.open_dataset(chart("polar_stereographic", along))
    assert any("polar_stereographic" in note for note in dataset.notes)
    assert dataset.frame.axes == ("map", "map")


def test_a_rotated_pole_is_a_sphere_of_its_own():
    words = {"x": "grid_longitude", "y": "grid_latitude"}
    along = [{"units": "m/s", "standard_name": f"sea_water_{a}_velocity"} for a in "xy"]

    def rotated(about):
        store = chart("rotated_latitude_longitude", about, units="degrees")
        for name, word in words.items():
            store[name].attrs["standard_name"] = word
        return store

    assert jt.open_dataset(rotated(along)).frame.axes == ("longitude", "latitude")
    with pytest.raises(DataError, match="rotated_latitude_longitude, not east and north"):
        jt.open_dataset(rotated((EAST, NORTH)))


def test_components_in_the_wrong_order_are_refused():
    coords = {
        "X": ("X", LON, {"units": "degrees_east"}),
        "Y": ("Y", LAT, {"units": "degrees_north"}),
    }
    lon, lat = turned(0.0)
    store = curvilinear(lon, lat, coords).drop_vars(["lon", "lat"])
    with pytest.raises(
        DataError, match=r"'v' is a velocity northward, and it was taken .* along x"
    ):
        jt.open_dataset(store, velocity=("v", "u"))


@pytest.mark.parametrize(
    ("about", "sign"),
    [
        ({"standard_name": "upward_sea_water_velocity"}, 1.0),
        ({"standard_name": "downward_sea_water_velocity"}, -1.0),
        ({"long_name": "Downward velocity"}, -1.0),
        ({"positive": "down"}, -1.0),
        ({"positive": "up"}, 1.0),
        ({}, 1.0),
    ],
)
def test_the_sign_of_w_beside_a_depth_is_stated(about, sign):
    axes = {"depth": np.array([0.0, 10.0, 20.0]), "lat": LAT, "lon": LON}
    units = {"depth": {"units": "m", "positive": "down"}, "lat": {"units": "degrees_north"}}
    units["lon"] = {"units": "degrees_east"}
    full = np.full(tuple(map(len, axes.values())), 0.5)
    attrs = {"u": EAST, "v": NORTH, "w": {"units": "m/s", **about}}
    store = xr.Dataset(
        {n: (tuple(axes), full, a) for n, a in attrs.items()},
        coords={n: (n, v, units[n]) for n, v in axes.items()},
    )
    if about:
        dataset = jt.open_dataset(store, velocity=("u", "v", "w"))
    else:
        with pytest.warns(jt.TraceWarning, match="w does not say which way it points"):
            dataset = jt.open_dataset(store, velocity=("u", "v", "w"))
    assert (dataset.slice(0).velocity[..., 2] == 0.5 * sign).all()
    assert any("positive" in note and "ward" in note for note in dataset.notes)
