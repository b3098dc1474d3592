"""The end of a run is always kept."""

from __future__ import annotations

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxtrace as jt
import worldloom as wl
from jaxtrace.fields import Stream


def spiral(x, t):
    return jnp.stack([-x[1] + 0.1 * t, x[0]])


def first_x(particles):
    return particles.x[0]


FIELD = jt.AnalyticField(spiral, dim=2)
SEEDS = np.array([[1.0, 0.0], [0.0, 0.5], [0.3, 0.3]])
HEAT = jt.AnalyticField(lambda x, t: x[0] + t, dim=2)


def follow(steps, every, **options):
    more = {k: options.pop(k) for k in ("batch_size", "device_count", "field") if k in options}
    tracker = jt.create_tracker(
        **{"field": FIELD, "scalars": {"heat": HEAT}, "record_velocities": True} | more
    )
    return tracker.track_particles(SEEDS, (0.0, 0.1 * steps), steps, save_every=every, **options)


def check(tracks, whole, every):
    kept = np.unique(np.append(np.arange(0, whole.T, every), whole.T - 1))
    assert np.allclose(tracks.times, whole.times[kept])
    for name in ("positions", "velocities", "status", "ages"):
        found, wanted = np.asarray(getattr(tracks, name)), getattr(whole, name)[kept]
        assert np.allclose(found, wanted, rtol=0, atol=1e-5), name
    heat = np.asarray(tracks.scalars["heat"])
    assert np.allclose(heat, whole.scalars["heat"][kept], rtol=0, atol=1e-5)
    divides = (whole.T - 1) % every == 0
    assert bool(tracks.report.notes) == (not divides)


@settings(max_examples=6)
@given(
    steps=st.integers(1, 23),
    every=st.integers(1, 30),
    kind=st.sampled_from(["memory", "npy", "zarr", "batches", "one device", "checkpoint"]),
)
def test_the_last_step_is_kept_on_every_path(steps, every, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    options = {
        "npy": {"sink": wl.NpySink(folder / "a")},
        "zarr": {"sink": wl.ZarrSink(folder / "a.zarr")},
        "batches": {"batch_size": 2},
        "one device": {"device_count": 1},
        "checkpoint": {"checkpoint": folder / "c"},
    }.get(kind, {})
    check(follow(steps, every, **options), follow(steps, 1), every)


@pytest.mark.parametrize("where", ["npy", "zarr"])
def test_what_was_interrupted_ends_with_its_last_step(where, tmp_path):
    class Stop:
        def start(self, done, length):
            self.fresh = done == 0

        def update(self, done):
            if done >= 8 and self.fresh:
                raise KeyboardInterrupt

        def stop(self):
            pass

    def go(**options):
        sink = wl.ZarrSink(tmp_path / "a.zarr") if where == "zarr" else None
        saved = wl.Checkpoint(tmp_path / "run", chunks=1)
        return follow(23, 5, checkpoint=saved, sink=sink, **options)

    with pytest.raises(KeyboardInterrupt):
        go(progress=Stop())
    check(go(resume=True), follow(23, 1), 5)
    check(go(resume=True), follow(23, 1), 5)


def test_statistics_and_streams_have_the_last_step():
    x, times = np.linspace(-3.0, 3.0, 9), np.linspace(0.0, 2.5, 12)
    data = np.random.default_rng(0).normal(size=(12, 9, 9, 2)).astype(np.float32)
    ends = []
    for values in (data, Stream(data.__getitem__, window=6)):
        field = jt.StructuredField(values, (x, x), times)
        tracks = follow(23, 10, field=field, statistics={"x": first_x})
        assert np.allclose(tracks.times, [0.0, 1.0, 2.0, 2.3])
        assert np.array_equal(tracks.statistics["x"], np.asarray(tracks.positions)[..., 0])
        ends.append(np.asarray(tracks.positions))
    assert np.array_equal(*ends)


def test_the_engine_keeps_the_state_after_the_last_step():
    def step(x, t):
        return x + 1, None

    def same(x):
        return x

    for length, wanted in ((7, [0, 3, 6, 7]), (6, [0, 3, 6]), (0, [0])):
        save = wl.Every(3, of=same, initial=True, last=True)
        records = wl.run(step, jnp.int32(0), length=length, save=save).records
        assert np.asarray(records).tolist() == wanted
        if length:
            assert wl.unroll(step, jnp.int32(0), length=length, save=save)[1].tolist() == wanted
    with pytest.raises(ValueError, match=r"Every\(last=True\) needs `of`"):
        wl.Every(3, last=True)
