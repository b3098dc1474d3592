"""Arguments that cannot be meant are an error or a warning, at once."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxtrace as jt
import worldloom as wl
from jaxtrace.seeding import SeedError
from jaxtrace.tracking import TrackError, _schedule

FIELD = jt.AnalyticField(lambda x, t: jnp.stack([1.0 + 0 * x[0], 0 * x[1]]), dim=2)
SEEDS = [[0.1, 0.2], [0.3, 0.4]]


def go(seeds=SEEDS, *, key=0, **options):
    tracker = jt.create_tracker("euler", field=FIELD, device_count=1)
    return tracker.track_particles(seeds, **{"time_span": (0.0, 1.0), "n_timesteps": 2} | options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_timesteps": None, "dt": -0.1}, r"dt=-0\.1 is negative.*\(0\.0, 1\.0\) runs forward"),
        ({"n_timesteps": 10, "dt": -0.1}, r"dt=-0\.1 is negative"),
        ({"n_timesteps": 10**12}, r"n_timesteps=1000000000000: that is 1e\+12 steps"),
        ({"n_timesteps": None, "dt": 1e-12}, r"that is 1e\+12 steps"),
        ({"n_timesteps": None, "dt": float("inf")}, "dt=inf"),
        ({"n_timesteps": None, "dt": 0.0}, "other than 0"),
        ({"time_span": (0.0, 1.0, 2.0)}, "expected two times"),
        ({"time_span": 3.0}, "expected two times"),
        ({"time_span": (0.0, 1j)}, r"time_span\[1\]=1j"),
        ({"time_span": (0.0, float("nan"))}, r"time_span\[1\]=nan"),
        ({"time_span": np.array(["2000-01-01", "2000-01-02"], "M8[s]")}, "seconds of the field's"),
        ({"save_every": 0}, "save_every=0"),
        ({"release_times": [0.0, 1j]}, "type complex128"),
        ({"release_times": [0.0, float("nan")]}, "expected a finite time"),
    ],
)
def test_times_that_cannot_be_meant_are_named(options, message):
    with pytest.raises(TrackError, match=message):
        go(**options)


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (np.array(SEEDS) + 1j, "type complex128; expected real numbers"),
        (np.array([["a", "b"]]), "expected real numbers"),
        (np.array(SEEDS, bool), "expected real numbers"),
        ([[0.1, float("nan")]], "not finite"),
        ([[0.1, 1e39]], "not finite"),
        ([[0.1, 0.2], [0.3]], "no table of numbers"),
    ],
)
def test_seeds_that_cannot_be_meant_are_named(seeds, message):
    with pytest.raises(SeedError, match=message):
        go(seeds)


def test_a_release_before_the_beginning_is_said():
    with pytest.warns(
        jt.TraceWarning, match=r"1 of 2 particles have a release time before the run"
    ):
        tracks = go(release_times=[-5.0, 0.5])
    assert tracks.ages[-1].tolist() == [1.0, 0.5]
    with pytest.warns(jt.TraceWarning, match="before the run begins at 1"):
        go(time_span=(1.0, 0.0), release_times=[2.0, 1.0])
    go(time_span=(1.0, 0.0), release_times=[1.0, 0.5])


def test_400_million_seeds_are_refused_before_they_take_memory(monkeypatch):
    monkeypatch.setattr("jaxtrace._config.available_memory", lambda device: 2_000_000_000)
    many = np.broadcast_to([0.1, 0.2], (400_000_000, 2))
    with pytest.raises(jt.TraceError, match=r"400,000,000 seeds need .*, and there are 1.86 GiB"):
        go(many)
    with pytest.raises(jt.TraceError, match="400,000,000 seeds need"):
        jt.random_seeds(400_000_000, [[0, 0], [1, 1]])
    with pytest.raises(jt.TraceError, match="seeds need"):
        jt.uniform_grid_seeds((20_000, 20_000), [[0, 0], [1, 1]])


def test_memory_is_refused_against_what_is_available_without_a_limit(monkeypatch, tmp_path):
    monkeypatch.setattr("jaxtrace._config.available_memory", lambda device: 100_000)
    with pytest.raises(jt.TraceError, match=r"100,001 records: more than is available here"):
        go(n_timesteps=100_000)
    with pytest.raises(jt.TraceError, match="2,000 particles and"):
        go(np.zeros((2000, 2)))
    go(n_timesteps=100)
    sink = wl.NpySink(tmp_path / "a")
    assert go(n_timesteps=20_000, sink=sink, save_every=10).T == 2001


@settings(max_examples=60)
@given(
    span=st.tuples(*[st.floats(-1e6, 1e6, width=32)] * 2),
    n=st.one_of(st.none(), st.integers(-2, 10**13)),
    dt=st.one_of(st.none(), st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6))),
)
def test_a_schedule_goes_where_it_was_asked_or_is_refused(span, n, dt):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            schedule = _schedule.make_schedule(span, n, dt, 0.0)
        except TrackError:
            return
    assert 1 <= schedule.steps < 2**31 - 1
    assert schedule.start == span[0]
    assert (schedule.dt > 0) == (span[1] > span[0])
    near = 1e-3 * abs(schedule.dt) + 1e-9 * abs(span[1])
    assert abs(schedule.end - span[1]) <= near or said
