from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import worlds

import worldloom as wl

SAVE = {"out": wl.Every(), "where": wl.Every(4, of=lambda s: s.position, initial=True)}
LENGTH = 60


def go(**options):
    world = worlds.vortex_world()
    return wl.run(world.step, world.state, length=LENGTH, save=SAVE, **options)


@pytest.fixture(scope="module")
def whole():
    return go()


def assert_same_run(a, b):
    np.testing.assert_array_equal(a.state.position, b.state.position)
    np.testing.assert_array_equal(*(jax.random.key_data(r.state.key) for r in (a, b)))
    for name in SAVE:
        np.testing.assert_array_equal(a.records[name][:], b.records[name][:])
    assert a.steps == b.steps == LENGTH


class StopAt:
    """A progress meter that does something when so many steps are done."""

    def __init__(self, step, action):
        self.step, self.action = step, action

    def start(self, done, length):
        pass

    def update(self, done):
        if done >= self.step and self.action:
            action, self.action = self.action, None
            action()

    def stop(self):
        pass


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("make_sink", [None, wl.NpySink, wl.ZarrSink], ids=["own", "npy", "zarr"])
@pytest.mark.parametrize("at", [1, 17, 42])
def test_ctrl_c_leaves_a_run_that_resumes_bit_for_bit(at, make_sink, whole, tmp_path):
    def options():
        sink = {"sink": make_sink(tmp_path / "records")} if make_sink else {}
        return {"checkpoint": tmp_path / "run", **sink}

    with pytest.raises(
        wl.RunInterrupted, match=r"saved in '.*run': .* call with resume=True"
    ) as caught:
        go(**options(), progress=StopAt(at, ctrl_c), chunk_steps=5)
    partial = caught.value.result
    assert at <= partial.steps < LENGTH
    assert isinstance(caught.value, KeyboardInterrupt)
    np.testing.assert_array_equal(partial.records["out"][:], whole.records["out"][: partial.steps])
    assert_same_run(go(**options(), resume=True), whole)


def test_ctrl_c_without_a_checkpoint_says_so(whole):
    with pytest.raises(wl.RunInterrupted, match="nothing is saved") as caught:
        go(progress=StopAt(10, ctrl_c), chunk_steps=5)
    steps = caught.value.result.steps
    np.testing.assert_array_equal(caught.value.result.records["out"], whole.records["out"][:steps])


def test_a_second_ctrl_c_is_immediate():
    def twice():
        ctrl_c()
        ctrl_c()

    with pytest.raises(KeyboardInterrupt) as caught:
        go(progress=StopAt(10, twice), chunk_steps=5)
    assert not isinstance(caught.value, wl.RunInterrupted)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_resuming_a_finished_run_returns_it_again(whole, tmp_path):
    go(checkpoint=tmp_path)
    assert_same_run(go(checkpoint=tmp_path, resume=True), whole)


def test_resume_without_a_checkpoint_begins_at_the_beginning(whole, tmp_path):
    assert_same_run(go(checkpoint=tmp_path, resume=True), whole)


def test_a_checkpoint_is_not_overwritten_by_accident(tmp_path):
    go(checkpoint=tmp_path)
    with pytest.raises(wl.ResumeError, match="give resume=True to go on with it"):
        go(checkpoint=tmp_path)


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    world = worlds.vortex_world()
    go(checkpoint=tmp_path)
    with pytest.raises(wl.ResumeError, match="length is 59 here and 60 there"):
        wl.run(world.step, world.state, length=59, save=SAVE, checkpoint=tmp_path, resume=True)
    with pytest.raises(wl.ResumeError, match=r"save\['out'\] is Every\(1\) there and absent here"):
        wl.run(world.step, world.state, length=60, checkpoint=tmp_path, resume=True)
    with pytest.raises(wl.ResumeError, match="step is "):
        wl.run(lambda x, t: (x, None), jnp.ones(3), length=60, checkpoint=tmp_path, resume=True)


def test_checkpoints_come_as_often_as_asked(tmp_path, monkeypatch):
    saved = []
    real = wl.store.Snapshots.save

    def spy(self, step, tree, *, meta=None):
        saved.append(step)
        return real(self, step, tree, meta=meta)

    monkeypatch.setattr(wl.store.Snapshots, "save", spy)
    go(checkpoint=wl.Checkpoint(tmp_path / "a", chunks=3), chunk_steps=10)
    assert saved == [0, 30, 60]
    saved.clear()
    go(checkpoint=wl.Checkpoint(tmp_path / "b", seconds=0.0, keep=1), chunk_steps=20)
    assert saved == [0, 20, 40, 60]
    saved.clear()
    go(checkpoint=tmp_path / "c", chunk_steps=10)
    assert saved == [0, 60]


def test_a_checkpoint_wants_one_rhythm(tmp_path):
    with pytest.raises(ValueError, match="`chunks` or `seconds`, not both"):
        wl.Checkpoint(tmp_path, chunks=1, seconds=1.0)


def test_faults_survive_a_resume(tmp_path):
    def go(**options):
        return wl.run(
            lambda x, t: (x * 2, None),
            jnp.arange(4, dtype=jnp.float32),
            length=40,
            checks={"large": lambda x: x > 50},
            on_fault="drop",
            checkpoint=tmp_path,
            chunk_steps=8,
            **options,
        )

    with pytest.raises(wl.RunInterrupted):
        go(progress=StopAt(16, ctrl_c))
    assert [(f.world, f.step) for f in go(resume=True).faults] == [(1, 6), (2, 5), (3, 5)]


CHILD = """
    import os, signal, sys
    sys.path.insert(0, {tests!r})
    import jax
    jax.config.update("jax_num_cpu_devices", 2)
    import worlds
    import worldloom as wl

    calls = 0
    def deadly(function):
        # The process is killed inside its n-th call that makes something durable.
        def call(*args, **kwargs):
            global calls
            calls += 1
            if calls == {calls}:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)
        return call

    for name in ("fsync", "replace", "rename"):
        setattr(os, name, deadly(getattr(os, name)))

    world = worlds.vortex_world()
    save = {{"out": wl.Every(), "where": wl.Every(4, of=lambda s: s.position, initial=True)}}
    wl.run(world.step, world.state, length={length}, save=save, chunk_steps=5,
           checkpoint=wl.Checkpoint({folder!r}, chunks=1))
    print("calls", calls)
"""


def child(folder, calls):
    tests = Path(worlds.__file__).parent
    code = CHILD.format(tests=str(tests), folder=str(folder), calls=calls, length=LENGTH)
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("calls", [2, 9, 17, 30])
def test_a_killed_run_resumes_bit_for_bit(calls, whole, tmp_path):
    """Killed before, in the middle of, and after writing a checkpoint, by SIGKILL."""
    dead = child(tmp_path / "run", calls)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    resumed = go(checkpoint=tmp_path / "run", resume=True)
    assert_same_run(resumed, whole)
    if calls > 20:
        assert wl.store.Snapshots(tmp_path / "run" / "state").latest() == LENGTH


@pytest.mark.slow
def test_killed_at_every_point(whole, tmp_path):
    alive = child(tmp_path / "alive", 0)
    total = int(alive.stdout.split()[-1])
    for calls in range(1, total + 1, 3):
        dead = child(tmp_path / str(calls), calls)
        assert dead.returncode == -signal.SIGKILL, dead.stderr
        assert_same_run(go(checkpoint=tmp_path / str(calls), resume=True), whole)
    assert os.listdir(tmp_path)
