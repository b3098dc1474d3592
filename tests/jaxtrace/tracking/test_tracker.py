from __future__ import annotations

import dataclasses

import flows
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtrace as jt
import worldloom as wl
from jaxtrace import Status
from jaxtrace.seeding import SeedError, SlotOverflowError
from jaxtrace.tracking import TrackError
from jaxtrace.tracking.boundary import reflective_boundary

SEEDS = np.random.default_rng(0).uniform(-0.9, 0.9, (7, 2))


def drift(x, t):
    return jnp.array([1.0, 0.0])


def mean_x(particles):
    return particles.x[0].mean()


@pytest.fixture(scope="module")
def tracker():
    return flows.rotating_tracker(record_velocities=True)


@pytest.fixture(scope="module")
def tracks(tracker):
    return tracker.track_particles(SEEDS, (0.0, 2.0), 40)


def test_a_trajectory_says_what_it_holds(tracks):
    assert (tracks.N, tracks.T, tracks.dim, tracks.duration) == (7, 41, 2, 2.0)
    assert tracks.positions.shape == (41, 7, 2)
    assert np.allclose(tracks.positions[0], SEEDS, atol=1e-6)
    turned = np.stack([-tracks.positions[..., 1], tracks.positions[..., 0]], -1)
    assert np.allclose(tracks.velocities, turned, atol=1e-5)
    radius = np.linalg.norm(SEEDS, axis=1)
    assert np.allclose(tracks.path_length(), 2 * radius, rtol=1e-3)
    assert np.allclose(tracks.speed(), np.broadcast_to(radius, (41, 7)), atol=1e-4)
    assert np.allclose(tracks.displacement(), tracks.positions[-1] - tracks.positions[0])
    assert tracks.counts() == {Status.ALIVE: 7}
    assert np.allclose(tracks.ages[:, 0], tracks.times)
    report = tracks.report
    assert report.run_seconds > 0
    assert report.device == "2 x cpu"
    assert report.memory_bytes >= tracks.positions.nbytes


def test_slicing_and_subsampling(tracks):
    part = tracks[10:20, :3]
    assert (part.T, part.N) == (10, 3)
    assert np.array_equal(part.positions, tracks.positions[10:20, :3])
    assert tracks[5].T == 1
    few = tracks.subsample(every=10, particles=2)
    assert few.times.tolist() == tracks.times[::10].tolist()
    assert np.array_equal(few.positions, tracks.positions[::10][:, [0, 6]])
    box = tracks.bounds()
    assert (tracks.positions >= box[0]).all()
    assert (tracks.positions.max((0, 1)) == box[1]).all()


def test_a_second_call_compiles_nothing_whatever_the_values(tracker, tracks, no_recompile):
    with no_recompile():
        again = tracker.track_particles(SEEDS[::-1], (1.0, 5.0), 40)
    assert np.allclose(again.positions[0], SEEDS[::-1], atol=1e-6)


def test_the_field_is_no_constant_of_the_program():
    x = np.linspace(0, 1, 40)
    data = np.random.default_rng(0).random((3, 40, 40, 2)).astype(np.float32)
    field = jt.StructuredField(data, (x, x), [0.0, 1.0, 2.0])
    tracker = jt.create_tracker("rk4", field=field)
    from jaxtrace.tracking._schedule import Schedule
    from jaxtrace.tracking._tracker import step_once

    step = tracker._step(Schedule(0.0, 0.1, 10), 1)
    particles, spread = tracker._place(step, np.full((4, 2), 0.5), np.zeros(4, np.int32), 0, 4)
    text = jax.jit(lambda s, p: s(p, jnp.int32(0))[0]).lower(spread, particles).as_text()
    assert len(text) < 200_000  # 4800 floats would be 40,000 hexadecimal digits in one line
    assert max(map(len, text.splitlines())) < 10_000
    assert tracker._compiled_step is step_once
    assert tracker._compiled_simulate is not None


def test_results_depend_neither_on_batch_nor_on_devices():
    walls = reflective_boundary([[-1, -1], [1, 1]])
    options = {"diffusivity": 0.01, "boundary_condition": walls, "key": 0}
    run = lambda **more: flows.rotating_tracker(**options | more).track_particles(  # noqa: E731
        SEEDS, (0.0, 1.0), 20
    )
    whole = run()
    for other in (run(device_count=1), run(batch_size=3), run(batch_size=3, device_count=1)):
        assert np.array_equal(other.positions, whole.positions)
    assert not np.allclose(run(key=1).positions, whole.positions)


def test_backwards_in_time_leads_back(tracks):
    back = flows.rotating_tracker().track_particles(tracks.positions[-1], (2.0, 0.0), 40)
    assert np.allclose(back.positions[-1], SEEDS, atol=1e-5)
    assert back.times[-1] == 0.0


def test_what_is_kept(tracker, tracks):
    some = tracker.track_particles(SEEDS, (0.0, 2.0), 40, save_every=8)
    assert np.array_equal(some.positions, tracks.positions[::8])
    assert np.allclose(some.times, tracks.times[::8])
    chosen = tracker.track_particles(SEEDS, (0.0, 2.0), 40, save_times=[0.0, 0.25, 1.9])
    assert np.array_equal(chosen.positions, tracks.positions[[0, 5, 38]])
    with pytest.raises(TrackError, match=r"save_times\[1\] = 0.26 .* nearest are 0.25 and 0.3"):
        tracker.track_particles(SEEDS, (0.0, 2.0), 40, save_times=[0.25, 0.26])
    numbers = tracker.track_particles(
        SEEDS[:6], (0.0, 2.0), 40, save_positions=False, statistics={"mean": mean_x}
    )
    assert numbers.positions.shape == (2, 6, 2)
    assert np.allclose(numbers.positions[-1], tracks.positions[-1, :6])
    assert np.allclose(numbers.statistics["mean"], tracks.positions[:, :6, 0].mean(1), atol=1e-6)


def test_scalars_are_sampled_along_the_way():
    heat = jt.AnalyticField(lambda x, t: x[0] + 10 * t, dim=2)
    tracker = flows.rotating_tracker(scalars={"heat": heat})
    tracks = tracker.track_particles(SEEDS, (0.0, 2.0), 40, save_every=4)
    wanted = tracks.positions[..., 0] + 10 * tracks.times[:, None]
    assert np.allclose(tracks.scalars["heat"], wanted, atol=1e-4)


def test_records_stream_to_zarr(tmp_path, tracker, tracks):
    pytest.importorskip("zarr")
    streamed = tracker.track_particles(
        SEEDS, (0.0, 2.0), 40, sink=wl.ZarrSink(tmp_path / "tracks.zarr")
    )
    assert np.array_equal(np.asarray(streamed.positions), tracks.positions)


def test_of_records_on_disk_only_those_selected_are_read(tmp_path, tracker, tracks):
    pytest.importorskip("zarr")
    # As many as the devices share evenly: otherwise those that fill up are cut, in memory.
    streamed = tracker.track_particles(
        SEEDS[:6], (0.0, 2.0), 40, sink=wl.ZarrSink(tmp_path / "tracks.zarr")
    )

    class OnDisk:
        shape, dtype = streamed.positions.shape, streamed.positions.dtype
        oindex = streamed.positions.oindex

        def __array__(self, *_, **__):
            raise AssertionError("everything was read")

    streamed = dataclasses.replace(streamed, positions=OnDisk())
    third = np.arange(6) % 3 == 0
    for rows, columns in ((np.s_[10:20], np.s_[:3]), (-1, 2), (np.s_[::-4], [4, -2]), (3, third)):
        part = streamed[rows, columns]
        wanted = tracks.positions[:, :6][np.atleast_1d(np.arange(tracks.T)[rows])]
        wanted = wanted[:, np.atleast_1d(np.arange(6)[columns])]
        assert np.array_equal(part.positions, wanted)
        assert part.status.shape == wanted.shape[:2]
    assert streamed[-1].times.tolist() == [tracks.times[-1]]


def test_a_resumed_run_is_bit_for_bit_the_same(tmp_path):
    tracker = flows.rotating_tracker(diffusivity=0.01)
    whole = tracker.track_particles(SEEDS, (0.0, 1.0), 20)

    class Stop:
        def start(self, done, length):
            pass

        def update(self, done):
            if done >= 8:
                raise KeyboardInterrupt

        def stop(self):
            pass

    options = {"checkpoint": wl.Checkpoint(tmp_path / "run", chunks=1)}
    with pytest.raises(KeyboardInterrupt):
        tracker.track_particles(SEEDS, (0.0, 1.0), 20, progress=Stop(), **options)
    again = tracker.track_particles(SEEDS, (0.0, 1.0), 20, resume=True, **options)
    assert np.array_equal(np.asarray(again.positions), whole.positions)


def test_three_that_contradict_follow_steps_and_length():
    field = jt.AnalyticField(drift, dim=2)
    tracker = jt.create_tracker("rk4", field=field)
    with pytest.warns(jt.TraceWarning, match="15 steps of 0.5 end at 7.5, not at 4"):
        tracks = tracker.track_particles([[0.0, 0.0]], (0.0, 4.0), 15, 0.5)
    assert np.allclose(tracks.positions[-1], [[7.5, 0.0]])
    assert tracks.times[-1] == 7.5
    with pytest.warns(jt.TraceWarning, match="not a multiple of dt=0.3"):
        assert tracker.track_particles([[0.0, 0.0]], (0.0, 1.0), dt=0.3).times[-1] == 1.0
    with pytest.raises(TrackError, match="give two"):
        tracker.track_particles([[0.0, 0.0]], n_timesteps=3)


def test_running_beyond_the_data_warns():
    x = np.linspace(0, 10, 3)
    data = np.zeros((2, 3, 3, 2))
    data[1, ..., 0] = 1.0
    field = jt.StructuredField(data, (x, x), [0.0, 1.0])
    tracker = jt.create_tracker("rk4", field=field)
    with pytest.warns(jt.TraceWarning, match="data from 0 to 1"):
        tracks = tracker.track_particles([[1.0, 1.0]], (0.0, 3.0), 30)
    assert np.allclose(tracks.positions[-1], [[3.5, 1.0]], atol=1e-4)


def test_release_deletion_and_ages():
    field = jt.AnalyticField(drift, dim=2)
    tracker = jt.create_tracker("euler", field=field, max_age=0.5)
    tracks = tracker.track_particles(
        np.zeros((3, 2)), (0.0, 1.0), 10, release_times=[0.0, 0.25, 0.8]
    )
    x = np.asarray(tracks.positions)[..., 0]
    assert np.allclose(x[-1], [0.5, 0.5, 0.2], atol=1e-6)
    assert np.allclose(x[3], [0.3, 0.0, 0.0], atol=1e-6)  # 0.25 is released at 0.3
    assert np.allclose(tracks.ages[-1], [0.5, 0.5, 0.2], atol=1e-6)
    assert tracks.status[-1].tolist() == [Status.DELETED, Status.DELETED, Status.ALIVE]
    assert tracks.status[4].tolist() == [Status.ALIVE, Status.ALIVE, Status.WAITING]
    assert tracks.status[5].tolist() == [Status.DELETED, Status.ALIVE, Status.WAITING]
    assert tracks.status[0].tolist() == [Status.ALIVE, Status.WAITING, Status.WAITING]
    with pytest.warns(jt.TraceWarning, match="1 of 2 particles are never released"):
        tracker.track_particles(np.zeros((2, 2)), (0.0, 1.0), 10, release_times=[0.0, 5.0])


def test_a_rule_deletes():
    field = jt.AnalyticField(drift, dim=2)
    tracker = jt.create_tracker("rk4", field=field, delete_when=lambda p: p.x[0] > 0.45)
    tracks = tracker.track_particles(np.zeros((2, 2)), (0.0, 1.0), 10)
    assert tracks.counts() == {Status.DELETED: 2}
    assert np.allclose(tracks.positions[-1, :, 0], 0.5)


def test_who_leaves_the_field_ends_there_and_others_go_on():
    x = np.linspace(0, 1, 5)
    field = jt.StructuredField(np.ones((1, 5, 5, 2)), (x, x))
    tracker = jt.create_tracker("rk4", field=field)
    tracks = tracker.track_particles([[0.9, 0.5], [0.1, 0.1]], (0.0, 0.5), 10)
    assert tracks.status[-1].tolist() == [Status.EXITED, Status.ALIVE]
    assert np.allclose(tracks.positions[-1], [[1.05, 0.65], [0.6, 0.6]], atol=1e-5)
    assert Status.EXITED.message == "left the domain"


def test_nan_velocity_is_a_status():
    field = jt.AnalyticField(lambda x, t: jnp.where(x[0] > 0.5, jnp.nan, 1.0) * jnp.ones(2), dim=2)
    tracks = jt.create_tracker("rk4", field=field).track_particles(
        [[0.2, 0.0], [-5.0, 0.0]], (0.0, 1.0), 10
    )
    assert tracks.status[-1].tolist() == [Status.NAN_VELOCITY, Status.ALIVE]
    assert np.isfinite(tracks.positions).all()


def test_seeds_that_cannot_start_are_named():
    x = np.linspace(0, 1, 5)
    tracker = jt.create_tracker("rk4", field=jt.StructuredField(np.ones((1, 5, 5, 2)), (x, x)))
    go = lambda seeds, **more: tracker.track_particles(seeds, (0.0, 0.1), 2, **more)  # noqa: E731
    with pytest.raises(SeedError, match="1 of 2 seeds are not finite; the first is seed 1"):
        go([[0.5, 0.5], [np.nan, 0.5]])
    with pytest.raises(SeedError, match="is empty"):
        go(np.zeros((0, 2)))
    with pytest.raises(SeedError, match=r"expected \[N, 2\]"):
        go(np.zeros((4, 3)))
    with pytest.raises(SlotOverflowError, match="4 are needed") as caught:
        go(np.zeros((4, 2)), slots=3)
    assert caught.value.needed == 4
    with pytest.warns(jt.TraceWarning, match=r"1 of 2 seeds do not start; the first is seed 1"):
        tracks = go([[0.5, 0.5], [5.0, 0.5]])
    assert tracks.status[:, 1].tolist() == [Status.EXITED] * 3


def test_a_run_that_needs_too_much_memory_is_refused(tracker):
    jt.configure(memory_limit_gb=1e-6)
    with pytest.raises(jt.TraceError, match="save_every"):
        tracker.track_particles(SEEDS, (0.0, 2.0), 40)


def test_progress_and_uncompiled_runs():
    seen = []
    tracks = flows.rotating_tracker(progress_callback=seen.append).track_particles(
        SEEDS, (0.0, 0.1), 2
    )
    assert seen[-1] == 1.0
    slow = flows.rotating_tracker(use_jax_jit=False, device_count=1).track_particles(
        SEEDS, (0.0, 0.1), 2
    )
    assert np.allclose(slow.positions, tracks.positions, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"integrator_name": "rk5"}, "expected one of"),
        ({"field": None}, "expected one of jaxtrace.fields"),
        ({"field": jt.AnalyticField(lambda x, t: x[0], dim=2)}, "1 components in 2 dimensions"),
        ({"boundary_condition": lambda x: x}, "jaxtrace.tracking.boundary"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"use_scan_jit": False}, "one path"),
        ({"diffusivity": -1.0}, "from 0 up"),
    ],
)
def test_bad_trackers_are_named(change, message):
    good = {"field": jt.AnalyticField(flows.rotation, dim=2)}
    with pytest.raises((TrackError, jt.TraceError), match=message):
        jt.create_tracker(**(good | change))
