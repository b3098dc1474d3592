"""Missing values: the same in memory and streamed; unmarked ones are said."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings

import jaxtrace as jt
from jaxtrace.fields import FieldError, Stream
from jaxtrace.fields._fill import unmarked_fill

X = np.linspace(0.0, 1.0, 6)
TIMES = np.arange(5.0)


def flow():
    return np.random.default_rng(0).normal(size=(5, 6, 6, 2))


def make(data, streamed, **options):
    values = Stream(data.__getitem__, window=4) if streamed else data
    field = jt.StructuredField(values, (X, X), TIMES, **options)
    return jt.create_tracker(field=field, device_count=1).track_particles(
        [[0.5, 0.5]], (0.0, 4.0), 2000, save_every=2000
    )


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_nan_at_one_time_is_the_same_error_in_memory_and_streamed(streamed, at):
    data = flow()
    data[at, 2, 3, 1] = np.nan
    first = 1 if at == 0 else at
    now, before = ("a value", "NaN") if at == 0 else ("NaN", "a value")
    message = rf"slice {first} .*it has {now} at \[2, 3\], where the first slice has {before}"
    with pytest.raises(FieldError, match=message):
        make(1e-3 * data, streamed)


@pytest.mark.parametrize("streamed", [False, True])
def test_land_at_all_times_is_land(streamed):
    data = 1e-3 * flow()
    data[:, 3, 3] = np.nan
    values = Stream(data.__getitem__, window=4) if streamed else data
    field = jt.StructuredField(values, (X, X), TIMES)
    tracker = jt.create_tracker(field=field)
    with pytest.warns(jt.TraceWarning, match="1 of 1 seeds do not start"):
        tracker.track_particles([[float(X[3]), float(X[3])]], (0.0, 1.0), 4)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("mark", [1e20, 9.96921e36, -9999.0, 32767.0, -32768.0, 1e30, -999.0])
def test_marks_that_nobody_declared_are_said(mark, streamed):
    data = 1e-3 * flow()
    data[:, 0, 0] = mark
    with pytest.warns(jt.TraceWarning, match=r"looks like a mark for missing values"):
        make(data, streamed)


def test_marks_in_meshes_and_points_are_said():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    cells = np.array([[0, 1, 2], [0, 2, 3]])
    data = points[None].copy()
    data[0, 2] = 1e20
    with pytest.warns(jt.TraceWarning, match="mark for missing values"):
        jt.TetField(data, points, cells)
    with pytest.warns(jt.TraceWarning, match="mark for missing values"):
        jt.TimeSeriesField(data, points)


def ocean(u, **attrs):
    about = {"units": "m s-1", "standard_name": "eastward_sea_water_velocity", **attrs}
    dims = ("time", "lat", "lon")
    north = about | {"standard_name": "northward_sea_water_velocity"}
    return xr.Dataset(
        {"u": (dims, u, about), "v": (dims, 0 * u, north)},
        coords={
            "time": ("time", np.arange(len(u)), {"units": "days since 2000-01-01"}),
            "lat": ("lat", np.linspace(50, 51, 6), {"units": "degrees_north"}),
            "lon": ("lon", np.linspace(0, 1, 6), {"units": "degrees_east"}),
        },
    )


@pytest.mark.parametrize("mark", [1e20, -9999.0, 32767.0])
def test_marks_in_files_are_said_before_they_are_converted(mark, tmp_path):
    u = flow()[..., 0]
    u[1, 0, 0] = mark
    ocean(u).to_netcdf(tmp_path / "a.nc")
    dataset = jt.open_dataset(tmp_path / "a.nc")
    with pytest.warns(jt.TraceWarning, match=r"u is .* in 1 places: this looks like a mark"):
        dataset.slice(1)
    store = ocean(u.clip(-5, 5))
    packed = (1000 * store["u"].values).astype(np.int16)
    packed[1, 0, 0] = -32768
    about = store["u"].attrs | {"scale_factor": 0.001}
    store.assign(u=(store["u"].dims, packed, about)).to_netcdf(tmp_path / "b.nc")
    dataset = jt.open_dataset(tmp_path / "b.nc")
    with pytest.warns(jt.TraceWarning, match=r"u is -32768 in 1 places"):
        dataset.slice(1)


def test_speeds_that_no_sea_has_are_said():
    dataset = jt.open_dataset(ocean(50.0 * np.abs(flow()[..., 0]) + 30))
    with pytest.warns(jt.TraceWarning, match=r"u is up to .* m/s .*20 m/s is not plausible"):
        dataset.slice(0)
    jt.open_dataset(ocean(50.0 + flow()[..., 0], units="cm/s")).slice(0)


@settings(max_examples=100)
@given(
    scale=st.floats(1e-6, 1e6),
    mark=st.sampled_from([1e20, 9.96921e36, -9999.0, -32768.0, 32767.0, 1e35]),
    count=st.integers(1, 20),
    kind=st.sampled_from([np.float32, np.float64]),
)
def test_a_mark_is_found_where_it_stands_apart(scale, mark, count, kind):
    values = np.random.default_rng(count).normal(size=(30, 30)).astype(kind) * kind(scale)
    assert unmarked_fill(values) is None
    values.reshape(-1)[:count] = mark
    found = unmarked_fill(values)
    if abs(mark) >= 1e10 or abs(mark) > 100 * 5 * scale:
        assert found is not None
        assert found[1] == count
