"""Two at once in one folder: the second says so at once, and touches no byte."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from faults.test_run_identity import bytes_below

import worldloom as wl
from worldloom import store

HOLDER = """
    import os, sys, time
    import jax.numpy as jnp
    import worldloom as wl

    def step(x, t):
        return x + 1, x

    class Wait:
        def start(self, done, length): print("started", flush=True)
        def update(self, done): {action}
        def stop(self): pass

    wl.run(step, jnp.zeros(3), length=40, save=wl.Every(), chunk_steps=10, progress=Wait(),
           sink={sink}, checkpoint={checkpoint}, resume={checkpoint} is not None)
    print("ended", flush=True)
"""


def step(x, t):
    return x + 1, x


def holder(folder, action="time.sleep(0.5)", *, sink=None, checkpoint=True):
    code = textwrap.dedent(HOLDER).format(
        action=action,
        sink=sink or "None",
        checkpoint=f"wl.Checkpoint({str(folder)!r}, chunks=1)" if checkpoint else "None",
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


@contextlib.contextmanager
def killed(process):
    try:
        yield
    finally:
        process.kill()


def second(folder, **options):
    saved = wl.Checkpoint(folder, chunks=1)
    return wl.run(
        step, jnp.zeros(3), length=40, save=wl.Every(), resume=True, checkpoint=saved, **options
    )


def test_the_second_says_so_within_a_second_and_the_first_goes_on(tmp_path):
    folder = tmp_path / "run"
    second(tmp_path / "warm")
    with holder(folder, "time.sleep(600)") as first, killed(first):
        assert first.stdout.readline() == "started\n"
        time.sleep(0.3)
        before = bytes_below(tmp_path)
        began = time.perf_counter()
        with pytest.raises(store.InUseError) as caught:
            second(folder)
        assert time.perf_counter() - began < 1.0
        assert bytes_below(tmp_path) == before
    message = str(caught.value)
    assert str(folder) in message
    assert f"process {first.pid} on " in message
    assert "since 20" in message
    left = [path for path in tmp_path.iterdir() if path.name.endswith(".lock")]
    assert left, "the killed process should have left its lock file"
    result = second(folder)
    assert result.steps == 40
    assert (result.records[:, 0] == np.arange(40)).all()
    assert not any(path.name.endswith(".lock") for path in tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["NpySink", "ZarrSink"])
def test_two_runs_with_one_place_for_records(kind, tmp_path):
    place = tmp_path / "records"
    sink = f"wl.{kind}({str(place)!r})"
    with holder(None, "time.sleep(600)", sink=sink, checkpoint=False) as first, killed(first):
        assert first.stdout.readline() == "started\n"
        time.sleep(0.3)
        before = bytes_below(tmp_path)
        with pytest.raises(store.InUseError, match=f"process {first.pid}"):
            wl.run(step, jnp.zeros(3), length=4, save=wl.Every(), sink=getattr(wl, kind)(place))
        assert bytes_below(tmp_path) == before


def test_two_runs_in_one_process(tmp_path):
    class Second:
        error = None

        def start(self, done, length):
            try:
                second(tmp_path / "run")
            except store.InUseError as error:
                self.error = error

        def update(self, done): ...
        def stop(self): ...

    meter = Second()
    second(tmp_path / "run", progress=meter)
    assert f"process {os.getpid()}" in str(meter.error)


def test_a_run_that_failed_lets_go(tmp_path):
    class Fail:
        def start(self, done, length):
            raise RuntimeError("stop here")

        def update(self, done): ...
        def stop(self): ...

    with pytest.raises(RuntimeError, match="stop here"):
        second(tmp_path / "run", progress=Fail())
    assert second(tmp_path / "run").steps == 40


def test_a_lock_file_of_anything_is_no_obstacle(tmp_path):
    for content in ("", "{", "[1]", json.dumps({"process": "x", "host": 1, "since": None})):
        (tmp_path / ".run.lock").write_text(content)
        with store.locked(tmp_path / "run"):
            assert json.loads((tmp_path / ".run.lock").read_text())["process"] == os.getpid()
        assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_locks_a_living_process_is_respected(tmp_path, monkeypatch):
    import errno
    import fcntl

    def none(*_):
        raise OSError(errno.ENOTSUP, "no locks here")

    monkeypatch.setattr(fcntl, "flock", none)
    with store.locked(tmp_path / "run"):
        inner = store.locked(tmp_path / "run")
        with pytest.raises(store.InUseError, match=f"process {os.getpid()}"), inner:
            pass
        text = (tmp_path / ".run.lock").read_text()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = json.loads(text) | {"process": gone.pid}
    (tmp_path / ".run.lock").write_text(json.dumps(left))
    with store.locked(tmp_path / "run"):
        pass
    (tmp_path / ".run.lock").write_text(json.dumps(left | {"host": "elsewhere"}))
    with pytest.raises(store.InUseError, match="on elsewhere"), store.locked(tmp_path / "run"):
        pass
    assert Path(tmp_path / ".run.lock").exists()


def test_a_place_that_cannot_be_locked_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(store.StoreError, match="file"), store.locked(tmp_path / "file" / "run"):
        pass


def test_a_launched_run_is_one_holder(tmp_path):
    """Two launches in one folder: one ends with all its records, the other says who holds it."""
    code = textwrap.dedent(f"""
        import jax.numpy as jnp, time
        import worldloom as wl
        from worldloom import mesh

        class Wait:
            def start(self, done, length): pass
            def update(self, done): time.sleep(0.4)
            def stop(self): pass

        def step(x, t):
            return x + 1, x

        with mesh.joined():
            state = mesh.shard(jnp.zeros(4), mesh.worlds_mesh())
            wl.run(step, state, length=40, save=wl.Every(), chunk_steps=2, progress=Wait(),
                   checkpoint=wl.Checkpoint({str(tmp_path / "run")!r}, chunks=1), resume=True)
    """)
    script = tmp_path / "script.py"
    script.write_text(code)
    command = [sys.executable, "-m", "worldloom.cli", "launch", "-n", "2", "--"]
    command += [sys.executable, str(script)]
    start = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **start) as one, subprocess.Popen(command, **start) as two:
        ends = [(p.communicate(timeout=120), p.returncode) for p in (one, two)]
    codes = sorted(code for _, code in ends)
    assert codes[0] == 0
    assert codes[1] == 1
    said = next(out + err for (out, err), code in ends if code == 1)
    assert "is in use by process" in said
    assert (wl.load_records(tmp_path / "run" / "records")["records"][:, 0] == np.arange(40)).all()
