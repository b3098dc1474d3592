"""Writers that are killed, and disks that are full: the old content or the new, always whole."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from worldloom import store

# One process that imports once and forks a writer for every point at which to kill. The forks
# hold NumPy arrays only and are told that there is one process: JAX's threads never start.
HEAD = """
import itertools, os, random, shutil, signal, sys, time
from pathlib import Path
import jax, numpy as np
from worldloom import store

jax.process_index, jax.process_count = lambda: 0, lambda: 1
folder = Path(sys.argv[1])

def loud(function):
    def call(*args, **kwargs):
        sys.audit("kill.before")
        result = function(*args, **kwargs)
        sys.audit("kill.after")
        return result
    return call

def killed_at(point, action):
    "Run the action in a fork that dies at its audit event number `point`. Did it die?"
    pid = os.fork()
    if pid == 0:
        events = itertools.count()
        def hook(name, args):
            if next(events) == point:
                os.kill(os.getpid(), signal.SIGKILL)
        for name in ("fsync", "replace", "rename", "rmdir", "unlink", "mkdir"):
            setattr(os, name, loud(getattr(os, name)))
        sys.addaudithook(hook)
        action()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return os.WIFSIGNALED(status)

def value(step):
    return {"a": np.full(1000, step), "b": [np.full((3, 5), step / 2)]}

def step_of(tree):
    step = int(tree["a"][0])
    assert (tree["a"] == step).all() and (tree["b"][0] == step / 2).all()
    return step
"""

ARCHIVE = """
path = folder / "tree.loom"
store.save(path, value(1))
old = path.read_bytes()
found = []
for point in itertools.count():
    path.write_bytes(old)
    died = killed_at(point, lambda: store.save(path, value(2), meta={"step": 2}))
    found.append(step_of(store.load(path)))
    if not died:
        break
print("points", point, "old", found.count(1), "new", found.count(2))
assert found == sorted(found) and found.count(1) > 5 and found.count(2) > 1
store.save(path, value(3))
assert [entry.name for entry in folder.iterdir()] == ["tree.loom"], list(folder.iterdir())
"""

RANDOM = """
path = folder / "tree.loom"
def write_for_ever():
    for step in itertools.count(1):
        store.save(path, {"x": np.full(2_000_000, step)}, meta={"step": step}, level=1)
store.save(path, {"x": np.zeros(2_000_000, int)}, meta={"step": 0})
random.seed(0)
steps = []
patience = 0.02  # raised until some writer gets done before it is killed
while len(steps) < 12 or (max(steps) == 0 and patience < 60):
    pid = os.fork()
    if pid == 0:
        write_for_ever()
    time.sleep(random.uniform(0, patience))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    x, meta = store.load(path)["x"], store.read_meta(path)
    assert (x == meta["step"]).all()
    steps.append(meta["step"])
    patience *= 1.0 if meta["step"] else 2.0
print("steps", steps)
assert max(steps) > 0
"""

SNAPSHOTS = """
template = value(0)
base, work = folder / "base", folder / "work"
keep = int(sys.argv[2])
snapshots = store.Snapshots(base, keep=keep)
snapshots.save(1, value(1))
snapshots.save(2, value(2))
snapshots = store.Snapshots(work, keep=keep)
for target in (2, 3):  # the same step once more, and the next one
    found = []
    for point in itertools.count():
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(base, work)
        died = killed_at(point, lambda: snapshots.save(target, value(10 + target)))
        tree, meta = snapshots.load(template)
        found.append(step_of(tree))
        assert snapshots.latest() == (2 if found[-1] == 2 else target)
        for step in snapshots.steps():  # the older ones too: none is half deleted
            step_of(snapshots.load(template, step=step)[0])
        assert died or snapshots.steps() == [1, 2, 3][target - keep : target]
        if point % 5 == 0 or not died:
            snapshots.save(4, value(4))
            assert step_of(snapshots.load(template)[0]) == 4
            assert len(list(work.iterdir())) == keep == len(snapshots.steps())
        if not died:
            break
    print("target", target, "points", point, "old", found.count(2), "new", found.count(10 + target))
    assert set(found) == {2, 10 + target}
    assert found.count(2) > 10 and found.count(10 + target) > 1
"""


def run(script: str, *arguments: object) -> str:
    result = subprocess.run(
        [sys.executable, "-c", HEAD + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_a_writer_killed_at_any_point_leaves_the_old_file_or_the_new(tmp_path: Path):
    run(ARCHIVE, tmp_path)


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path):
    run(RANDOM, tmp_path)


@pytest.mark.parametrize("keep", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_snapshots_survive_a_kill_at_any_point(keep: int, tmp_path: Path):
    run(SNAPSHOTS, tmp_path, keep)


@pytest.fixture
def short_files() -> Iterator[None]:
    """No file may grow beyond a megabyte: a real write that really fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip(
            "only root can mount a small disk: `sudo make test`; `short_files` tests the same paths"
        )
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


NOISE = np.random.default_rng(0).bytes(5_000_000)
TOO_LONG = np.frombuffer(NOISE, np.uint8)


def check_failed_writes(folder: Path) -> None:
    path = folder / "tree.loom"
    store.save(path, "old")
    with pytest.raises(store.DiskError, match=r"Could not write: .*tree\.loom") as caught:
        store.save(path, TOO_LONG)
    assert caught.value.errno
    assert caught.value.filename == str(path)
    assert store.load(path) == "old"

    snapshots = store.Snapshots(folder / "snapshots")
    snapshots.save(1, {"x": np.arange(3)})
    with pytest.raises(store.DiskError):
        snapshots.save(2, {"x": TOO_LONG})
    assert snapshots.steps() == [1]
    assert len(list(snapshots.folder.iterdir())) == 1
    assert snapshots.load({"x": np.zeros(3, int)})[0]["x"].tolist() == [0, 1, 2]

    with pytest.raises(store.DiskError):
        store.create_mapped(folder / "rows.npy", (5_000_000,), np.uint8)
    small = store.create_mapped(folder / "small.npy", (10,), np.uint8)
    small[:] = 3
    del small
    with pytest.raises(store.DiskError):
        store.resize_mapped(folder / "small.npy", 5_000_000)
    assert store.open_mapped(folder / "small.npy").tolist() == [3] * 10
    names = sorted(entry.name for entry in folder.iterdir())
    assert names == ["small.npy", "snapshots", "tree.loom"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, short_files: None):
    check_failed_writes(tmp_path)


def test_a_full_disk_leaves_the_old_file(small_disk: Path):
    check_failed_writes(small_disk)


def test_a_leftover_of_a_killed_writer_is_used_again(tmp_path: Path):
    path = tmp_path / "tree.loom"
    (tmp_path / ".tree.loom.0.unfinished").write_bytes(b"half a file" * 1000)
    store.save(path, [1, 2])
    assert store.load(path) == [1, 2]
    assert [entry.name for entry in tmp_path.iterdir()] == ["tree.loom"]


def test_many_writers_of_one_file(tmp_path: Path):
    """The file is always one of theirs, and none of them disturbs another."""
    from concurrent.futures import ThreadPoolExecutor

    path = tmp_path / "tree.loom"
    store.save(path, np.full(100_000, -1))

    def write_and_read(writer: int) -> None:
        for _ in range(10):
            store.save(path, np.full(100_000, writer), level=1)
            assert len(set(store.load(path).tolist())) == 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write_and_read, range(4)))
    assert [entry.name for entry in tmp_path.iterdir()] == ["tree.loom"]
