"""Numbers in metres mean metres, wherever on the earth."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxtrace as jt
from jaxtrace.analysis import ftle
from jaxtrace.fields import FieldError
from jaxtrace.tracking import TrackError

DEGREE = 6_371_000.0 * np.pi / 180
EARTH = ("longitude", "latitude")
UV = (
    {"standard_name": "eastward_sea_water_velocity", "units": "m s-1"},
    {"standard_name": "northward_sea_water_velocity", "units": "m s-1"},
)


def ocean(u=0.0, v=0.0, lat=(-80.0, 80.0), depth=None, time="seconds since 2000-01-01"):
    """A steady flow of `u` east and `v` north, in m/s."""
    axes = {"lat": np.linspace(*lat, 33), "lon": np.linspace(-60.0, 60.0, 25)}
    units = {"lat": "degrees_north", "lon": "degrees_east"}
    if depth:
        axes = {"level": np.linspace(0.0, 1000.0, 5), **axes}
        units["level"] = depth
    shape = (2, *map(len, axes.values()))
    dims = ("time", *axes)
    coords = {name: (name, axis, {"units": units[name]}) for name, axis in axes.items()}
    if depth:
        coords["level"][2]["axis"] = "Z"
    coords["time"] = ("time", [0.0, 10 * 86400.0], {"units": time})
    data = {n: (dims, np.full(shape, s), a) for n, s, a in zip("uv", (u, v), UV, strict=True)}
    return jt.open_dataset(xr.Dataset(data, coords=coords))


def field_of(**options):
    return ocean(**options).field(progress=False)


@pytest.mark.parametrize("latitude", [0.0, 45.0, -60.0, 75.0])
def test_the_variance_of_a_random_walk_is_2kt_in_square_metres(latitude):
    n, k, day = 20_000, 100.0, 86400.0
    tracker = jt.create_tracker("euler", field=field_of(), diffusivity=k, key=1, device_count=1)
    seeds = np.tile([0.0, latitude], (n, 1))
    end = tracker.track_particles(seeds, (0.0, day), 24, save_every=24).positions[-1]
    moved = (np.asarray(end, np.float64) - seeds) * DEGREE
    moved[:, 0] *= np.cos(np.radians(latitude))
    wanted = 2 * k * day
    assert np.allclose(moved.var(axis=0), wanted, rtol=0.04)
    # Parallels get shorter: on the sphere the mean moves towards the equator, by K t tan / R.
    drift = -k * day * np.tan(np.radians(latitude)) / 6_371_000.0
    assert abs(moved[:, 1].mean() - drift) < 4 * np.sqrt(wanted / n)


@pytest.mark.parametrize("varies", [False, True])
def test_a_tracer_that_is_well_mixed_on_the_sphere_stays_so(varies):
    """As many particles an area everywhere, between walls at 50 and 80 degrees north."""
    from jaxtrace.tracking.boundary import mixed_boundary

    rng, n = np.random.default_rng(0), 20_000
    low, high = 50.0, 80.0
    sines = rng.uniform(np.sin(np.radians(low)), np.sin(np.radians(high)), n)
    seeds = np.stack([rng.uniform(-30.0, 30.0, n), np.degrees(np.arcsin(sines))], axis=1)
    k = 4e5
    if varies:
        k = jt.AnalyticField(lambda x, t: 2e5 + 1e4 * (x[1] - 50.0), dim=2)
    walls = mixed_boundary([[-30.0, low], [30.0, high]], {"x": "reflect", "y": "reflect"})
    tracker = jt.create_tracker(
        "euler", field=field_of(), diffusivity=k, boundary_condition=walls, key=3, device_count=1
    )
    end = tracker.track_particles(seeds, (0.0, 10 * 86400.0), 120, save_every=120).positions[-1]
    found = np.sin(np.radians(np.asarray(end, np.float64)[:, 1]))
    counts, _ = np.histogram(found, 6, (np.sin(np.radians(low)), np.sin(np.radians(high))))
    assert np.abs(counts / (n / 6) - 1).max() < 0.08


def test_what_is_in_metres_a_second_is_converted_when_it_is_added():
    day, here = 86400.0, [[0.0, 60.0]]
    wind = jt.AnalyticField(lambda x, t: jnp.array([10.0, 0.0]), dim=2, frame=jt.Frame(units="m/s"))
    for total in (field_of() + 0.03 * wind, 0.03 * wind + field_of()):
        tracks = jt.create_tracker(field=total).track_particles(here, (0.0, day), 24)
        assert np.allclose(tracks.displacement()[0] * DEGREE * 0.5, [0.3 * day, 0.0], atol=30)
        assert np.allclose(tracks.path_length(), 0.3 * day, rtol=1e-3)
        assert np.allclose(tracks.speed(), 0.3, rtol=1e-2)
    drift = jt.AnalyticField(
        lambda x, t: jnp.array([0.3, 0.0]), dim=2, frame=jt.Frame(axes=EARTH, units="m/s")
    )
    alone = jt.create_tracker(field=drift).track_particles(here, (0.0, day), 24)
    assert np.allclose(alone.positions[-1], tracks.positions[-1], atol=1e-4)


def test_a_field_of_nodes_in_metres_a_second_is_converted_too():
    lon, lat = np.linspace(-5, 5, 5), np.linspace(50, 70, 9)
    data = np.zeros((1, 5, 9, 2))
    data[..., 0] = 0.5
    wind = jt.StructuredField(data, (lon, lat), frame=jt.Frame(axes=EARTH, units="m/s"))
    tracks = jt.create_tracker(field=wind).track_particles([[0.0, 60.0]], (0.0, 86400.0), 24)
    assert np.allclose(tracks.path_length(), 43200.0, rtol=1e-3)
    assert np.allclose(tracks.displacement()[0, 0] * DEGREE * 0.5, 43200.0, rtol=1e-3)


@pytest.mark.parametrize("swap", [False, True])
def test_what_has_no_units_is_refused_beside_degrees(swap):
    plain = jt.AnalyticField(lambda x, t: jnp.array([0.3, 0.0]), dim=2)
    pair = (plain, field_of()) if swap else (field_of(), plain)
    with pytest.raises(FieldError, match=r"units of a AnalyticField are not known.*longitude"):
        pair[0] + pair[1]
    knots = jt.AnalyticField(lambda x, t: jnp.ones(2), dim=2, frame=jt.Frame(units="knots"))
    with pytest.raises(FieldError, match="in 'knots'"):
        field_of() + knots


def test_a_diffusivity_that_cannot_be_converted_is_refused():
    with pytest.raises(TrackError, match="axis 2 of the field measures pressure"):
        jt.create_tracker(field=field_of(depth="hPa"), diffusivity=1.0)
    flat = jt.create_tracker(field=field_of(depth="hPa"), diffusivity=(1.0, 1.0, 0.0), key=0)
    assert flat.diffusion is not None
    k = jt.AnalyticField(lambda x, t: 1.0 + 0 * x[0], dim=2, frame=jt.Frame(units="cm2/s"))
    with pytest.raises(TrackError, match="'cm2/s'; expected m2/s"):
        jt.create_tracker(field=field_of(), diffusivity=k)
    chart = jt.Frame(axes=("map", "map"), units="m/s")
    field = jt.AnalyticField(lambda x, t: jnp.zeros(2), dim=2, frame=chart)
    with pytest.raises(TrackError, match="map projection, of which the scale is not known"):
        jt.create_tracker(field=field, diffusivity=1.0)


def test_stretching_is_measured_in_metres():
    """Solid rotation about the pole stretches nothing; in degrees it would look as if it did."""
    lon, lat = np.linspace(-60, 60, 121), np.linspace(40, 60, 81)
    data = np.zeros((1, 121, 81, 2))
    data[..., 0] = 1e-5  # degrees a second, east, at all latitudes
    data[..., 1] = -1e-4 * (lat - 50.0)
    frame = jt.Frame(axes=EARTH, units="coordinates/s")
    field = jt.StructuredField(data, (lon, lat), frame=frame)
    span = 3600.0
    found = float(ftle(field, [[0.0, 59.0]], (0.0, span), 20)[0])
    end = 50.0 + 9.0 * np.exp(-1e-4 * span)
    stretch = np.cos(np.radians(end)) / np.cos(np.radians(59.0))
    assert abs(found - np.log(stretch) / span) < 2e-6


def test_a_dataset_says_its_units():
    text = ocean(depth="m").describe()
    assert "units: longitude in degrees, latitude in degrees, metres in m" in text
    assert "values in degrees/s, degrees/s, m/s" in text
