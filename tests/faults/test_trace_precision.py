"""Steps that are lost in the rounding of positions are said, with numbers."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxtrace as jt

EARTH = jt.Frame(axes=("longitude", "latitude"), units="m/s")


def east(speed, frame):
    return jt.AnalyticField(
        lambda x, t: jnp.stack([speed + 0 * x[0], 0 * x[1]]), dim=2, frame=frame
    )


@pytest.mark.parametrize(
    ("place", "speed", "dt", "frame"),
    [
        ([179.0, 0.0], 0.01, 60.0, EARTH),
        ([179.0, 0.0], 0.1, 10.0, EARTH),
        ([7e6, 0.0], 0.1, 1.0, jt.Frame()),
    ],
)
def test_a_step_below_eight_units_in_the_last_place_warns(place, speed, dt, frame):
    tracker = jt.create_tracker("euler", field=east(speed, frame), device_count=1)
    with pytest.warns(jt.TraceWarning, match="a step of .* moves a particle by .* float32") as said:
        tracker.track_particles([place], n_timesteps=20, dt=dt)
    assert len([w for w in said if "units in the last place" in str(w.message)]) == 1


@settings(max_examples=15)
@given(
    origin=st.floats(1.0, 1e7),
    speed=st.floats(1e-3, 10.0),
    dt=st.floats(1.0, 1e4),
    backwards=st.booleans(),
)
def test_whoever_goes_wrong_was_warned(origin, speed, dt, backwards):
    """No path is wrong by more than a tenth without a word."""
    field = jt.AnalyticField(jt_constant(speed), dim=2)
    tracker = jt.create_tracker("euler", field=field, device_count=1)
    steps, sign = 50, -1 if backwards else 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tracks = tracker.track_particles([[origin, 0.0]], n_timesteps=steps, dt=sign * dt)
    wanted = float(np.float32(speed)) * sign * dt * steps
    start = float(np.float32(origin))
    wrong = abs(float(tracks.positions[-1, 0, 0]) - start - wanted) > 0.1 * abs(wanted)
    grain = any("units in the last place" in str(w.message) for w in said)
    assert grain or not wrong
    assert grain == (speed * dt < 8 * float(np.spacing(np.float32(origin)))) or wrong


class jt_constant:
    """A flow along x; one program for all speeds."""

    def __new__(cls, speed):
        import jax

        return jax.tree_util.Partial(_along, jnp.float32(speed))


def _along(speed, x, t):
    return jnp.stack([speed + 0 * x[0], 0 * x[1]])


def test_a_clock_that_jumps_is_said():
    wave = jt.AnalyticField(lambda x, t: jnp.stack([jnp.sin(t), 0 * t]), dim=2)
    tracker = jt.create_tracker("euler", field=wave, device_count=1)
    with pytest.warns(jt.TraceWarning, match=r"times near 1\.45e\+09.*apart at 128"):
        tracker.track_particles(
            [[0.0, 0.0]], n_timesteps=2, dt=10.0, time_span=(1.45e9, 1.45e9 + 20)
        )


def test_nothing_is_said_where_steps_are_long_or_nobody_moves():
    x = np.linspace(0, 1000, 5)
    field = jt.StructuredField(np.zeros((1, 5, 5, 2)), (x, x))
    jt.create_tracker(field=field).track_particles([[500.0, 500.0]], (0.0, 1.0), 10)
    field = jt.StructuredField(np.ones((1, 5, 5, 2)), (x, x))
    jt.create_tracker(field=field).track_particles([[500.0, 500.0]], (0.0, 10.0), 10)
    with pytest.warns(jt.TraceWarning, match="times the size of the domain"):
        jt.create_tracker(field=field).track_particles([[500.0, 500.0]], (0.0, 1e6), 10)
