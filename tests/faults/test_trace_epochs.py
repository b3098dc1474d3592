"""Fields of other years are not taken to be of the same time."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import jaxtrace as jt
from jaxtrace.fields import FieldError

AXES = {"lat": np.linspace(-5.0, 5.0, 5), "lon": np.linspace(-5.0, 5.0, 5)}
DEGREE = 6_371_000.0 * np.pi / 180


def flow(since, days=10, speed=1.0, calendar=None, name="sea_water_velocity", units="days"):
    """As fast, eastward, as many days have gone since."""
    times = np.arange(days + 1.0)
    about = {"units": f"{units} since {since}"} | ({"calendar": calendar} if calendar else {})
    clock = times * {"days": 1.0, "hours": 24.0}[units]
    u = speed * times[:, None, None] * np.ones((5, 5))
    dims = ("time", "lat", "lon")
    store = xr.Dataset(
        {
            "u": (dims, u, {"units": "m/s", "standard_name": f"eastward_{name}"}),
            "v": (dims, 0 * u, {"units": "m/s", "standard_name": f"northward_{name}"}),
        },
        coords={
            "time": ("time", clock, about),
            "lat": ("lat", AXES["lat"], {"units": "degrees_north"}),
            "lon": ("lon", AXES["lon"], {"units": "degrees_east"}),
        },
    )
    return jt.open_dataset(store)


def east(field, day):
    return float(field.sample([[0.0, 0.0]], day * 86400.0)[0, 0]) * DEGREE


def test_a_current_of_2000_and_a_wind_of_2001_are_refused():
    current, wind = (flow(f"{year}-01-01").field(progress=False) for year in (2000, 2001))
    with pytest.raises(FieldError, match="no time in common"):
        current + wind
    with pytest.raises(FieldError, match="no time in common"):
        jt.create_tracker(field=current, scalars={"wind": wind})
    a, b = (
        jt.StructuredField(np.zeros((2, 3, 3, 2)), (np.arange(3.0),) * 2, [t, t + 1.0])
        for t in (0.0, 5.0)
    )
    with pytest.raises(FieldError, match="no time in common"):
        a + b


@pytest.mark.parametrize("units", ["days", "hours"])
def test_clocks_with_other_epochs_are_aligned(units):
    current = flow("2000-01-01").field(progress=False)
    wind = flow("2000-01-05", speed=0.5, units=units).field(progress=False)
    for total in (current + wind, current + 2.0 * (0.5 * wind), current - (-wind)):
        assert total.time_span == (4 * 86400.0, 10 * 86400.0)
        assert abs(east(total, 6.0) - (6.0 + 0.5 * 2.0)) < 1e-4
    other = wind + current
    assert other.frame.epoch.startswith("seconds since 2000-01-05")
    assert abs(east(other, 2.0) - 7.0) < 1e-4
    three = (current + wind) + flow("1999-12-30", speed=0.25).field(progress=False)
    assert abs(east(three, 6.0) - (6.0 + 1.0 + 0.25 * 8.0)) < 1e-4


def test_scalars_are_on_the_clock_of_the_run():
    current = flow("2000-01-01", speed=0.0).field(progress=False)
    late = flow("2000-01-05")
    tracker = jt.create_tracker(field=current, scalars={"wind": late.field(progress=False)})
    tracks = tracker.track_particles([[0.0, 0.0]], (4 * 86400.0, 8 * 86400.0), 4)
    found = np.asarray(tracks.scalars["wind"])[:, 0, 0] * DEGREE
    assert np.allclose(found, [0, 1, 2, 3, 4], atol=1e-4)
    assert tracks.frame.epoch.startswith("seconds since 2000-01-01")


def test_other_calendars_are_refused_and_unknown_ones_said():
    current = flow("2000-01-01").field(progress=False)
    with pytest.raises(FieldError, match="different calendars"):
        current + flow("2000-01-02", calendar="noleap").field(progress=False)
    data = np.zeros((2, 5, 5, 2))
    axes, times = (AXES["lon"], AXES["lat"]), [0.0, 86400.0]
    frame = jt.Frame(units="coordinates/s")
    with pytest.warns(jt.TraceWarning, match="times without a date"):
        current + jt.StructuredField(data, axes, times, frame=frame)
    dated = jt.Frame(units="coordinates/s", epoch="2000-01-01")
    current + jt.StructuredField(data, axes, times, frame=dated)
    current + jt.StructuredField(data[:1], axes, frame=frame)


def test_another_epoch_is_no_other_program(no_recompile):
    trackers = [
        jt.create_tracker(field=flow(f"{year}-01-01").field(progress=False))
        for year in (2000, 2001)
    ]
    go = lambda tracker: tracker.track_particles([[0.0, 0.0]], (0.0, 1e4), 4)  # noqa: E731
    go(trackers[0])
    with no_recompile():
        go(trackers[1])
