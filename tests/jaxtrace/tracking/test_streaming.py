"""Streamed fields: the same tracks, bit for bit, from a window of slices."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import jaxtrace as jt
import worldloom as wl
from jaxtrace.fields import FieldError, Stream
from jaxtrace.tracking import TrackError
from jaxtrace.tracking.boundary import reflective_boundary

X, Y = np.linspace(0.0, 2.0, 13), np.linspace(0.0, 1.0, 9)
TIMES = 5.0 + np.cumsum(np.r_[0.0, np.tile([0.2, 0.3], 9)])  # 19 slices, not equally spaced
WALLS = reflective_boundary([[0.0, 0.0], [2.0, 1.0]])
SEEDS = np.random.default_rng(0).uniform([0.1, 0.1], [1.9, 0.9], (33, 2))


def _values(points: np.ndarray, land: bool = False) -> np.ndarray:
    slices = []
    for k, t in enumerate(TIMES):
        a = 1.0 + 0.5 * np.sin(t) + 0.01 * k
        s, c = np.sin(np.pi * points), np.cos(np.pi * points)
        slices.append(np.stack([-a * s[..., 0] * c[..., 1], a * c[..., 0] * s[..., 1]], -1))
    data = np.stack(slices)
    if land:
        data[:, 5, 4] = np.nan
    return data


NODES = np.stack(np.meshgrid(X, Y, indexing="ij"), -1)
POINTS = NODES.reshape(-1, 2)


def _cells() -> np.ndarray:
    i, j = np.meshgrid(np.arange(len(X) - 1), np.arange(len(Y) - 1), indexing="ij")
    a = (i * len(Y) + j).reshape(-1)
    b, c, d = a + len(Y), a + 1, a + len(Y) + 1
    return np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, c], 1)])


def _grid(data, **options):
    return jt.StructuredField(data, (X, Y[::-1]), TIMES, **options)


def _mesh(data, **options):
    return jt.TetField(data, POINTS, _cells(), TIMES, **options)


def _tracker(field, integrator="rk4"):
    return jt.create_tracker(
        integrator, field=field, boundary_condition=WALLS, record_velocities=True
    )


def _track(field, span, **options):
    return _tracker(field).track_particles(SEEDS, span, 60, **options)


@pytest.mark.parametrize(
    ("make", "time_method"), [(_grid, "linear"), (_grid, "cubic"), (_mesh, "linear")]
)
def test_tracks_are_bit_for_bit_those_of_a_field_in_memory(make, time_method):
    data = _values(NODES, land=True) if make is _grid else _values(POINTS)
    window = 6 if time_method == "cubic" else 4
    asked = []
    stream = Stream(lambda i: (asked.append(i), data[i])[1], window=window)
    fields = [make(values, time_method=time_method) for values in (data, stream)]
    trackers = [_tracker(field) for field in fields]
    for span in [(5.0, 9.5), (9.4, 5.1)]:
        asked.clear()
        whole, streamed = (t.track_particles(SEEDS, span, 60) for t in trackers)
        assert np.array_equal(whole.positions, streamed.positions)
        assert np.array_equal(whole.velocities, streamed.velocities)
        assert np.array_equal(whole.status, streamed.status)
        assert len(set(asked)) >= len(TIMES) - window
        # Each slice is read once, but for the window in which the run begins.
        assert len(asked) <= len(TIMES) + 2 * window


@pytest.mark.slow
def test_adaptive_steps_scalars_and_sums_are_streamed_too():
    data = _values(NODES)

    def tracks(make):
        both = _grid(make(data)) + 0.1 * _grid(make(data[::-1].copy()))
        scalars = {"u": _grid(make(data[..., :1]))}
        tracker = jt.create_tracker(
            "dopri5",
            field=both,
            boundary_condition=WALLS,
            scalars=scalars,
        )
        return tracker.track_particles(SEEDS, (5.0, 9.5), 40, save_times=[5.0, 6.125, 9.5])

    whole = tracks(lambda d: d)
    streamed = tracks(lambda d: Stream(d.__getitem__, window=5))
    assert np.array_equal(whole.positions, streamed.positions)
    assert np.array_equal(whole.scalars["u"], streamed.scalars["u"])


def test_windows_move_without_compiling_and_slices_are_read_by_another_thread(no_recompile):
    data, threads = _values(NODES), set()

    def read(i):
        threads.add(threading.current_thread().name)
        return data[i]

    field = _grid(Stream(read, window=4))
    threads.clear()
    _track(field, (5.0, 9.5))
    assert threading.main_thread().name not in threads
    assert threads
    with no_recompile():
        _track(field, (5.0, 9.5))


def test_a_streamed_run_is_resumed_bit_for_bit(tmp_path):
    field = _grid(Stream(_values(NODES).__getitem__, window=4))
    whole = _track(field, (5.0, 9.5), save_every=7)

    class Interrupt:
        def start(self, done, length):
            self.resumed = done

        def update(self, done):
            if 20 <= done < 60 and not self.resumed:
                raise KeyboardInterrupt

        def stop(self):
            pass

    folder = wl.Checkpoint(tmp_path / "run", chunks=1)
    with pytest.raises(KeyboardInterrupt):
        _track(field, (5.0, 9.5), save_every=7, checkpoint=folder, progress=Interrupt())
    meter = Interrupt()
    again = _track(field, (5.0, 9.5), save_every=7, checkpoint=folder, resume=True, progress=meter)
    assert 0 < meter.resumed < 60
    assert np.array_equal(whole.positions, again.positions)


def test_errors_of_the_reader_name_the_slice():
    data = _values(NODES)

    def read(i):
        if i == 9:
            raise OSError("truncated file: flow_0009.vtu")
        return data[i]

    with pytest.raises(FieldError, match=r"slice 9 .*truncated file: flow_0009\.vtu"):
        _track(_grid(Stream(read, window=4)), (5.0, 9.5))
    dry = data.copy()
    dry[7, 2, 3] = np.nan
    with pytest.raises(FieldError, match=r"slice 7 .*has NaN at .* the first slice has a value"):
        _track(_grid(Stream(dry.__getitem__, window=4)), (5.0, 9.5))
    with pytest.raises(FieldError, match=r"slice 3 .*shape \[13, 9, 1\]"):
        _grid(Stream(lambda i: data[i] if i != 3 else data[i][..., :1], window=4))


def test_a_window_that_is_too_small_says_what_is_needed():
    field = _grid(Stream(_values(NODES).__getitem__, window=3))
    with pytest.raises(TrackError, match=r"needs 9 slices .*window=3"):
        jt.create_tracker(field=field).track_particles(SEEDS, (5.0, 9.5), 3)
    with pytest.raises(FieldError, match="needs 4 slices at once"):
        _grid(Stream(_values(NODES).__getitem__, window=3), time_method="cubic")
    with pytest.raises(FieldError, match="window=1"):
        Stream(lambda i: i, window=1)


def test_outside_of_the_window_is_nan_and_the_data_cannot_be_had():
    data = _values(NODES)
    field = _grid(Stream(data.__getitem__, window=4))
    place = [[1.0, 0.25]]
    assert np.array_equal(field.sample(place, TIMES[1]), _grid(data).sample(place, TIMES[1]))
    assert np.isnan(field.sample(place, TIMES[10])).all()
    with pytest.raises(FieldError, match="not in memory"):
        _ = field.data
