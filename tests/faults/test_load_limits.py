"""Issue 24, line 1.7: what cannot be had is refused before anything is allocated or built."""

from __future__ import annotations

import contextlib
import hashlib
import json
import resource
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

from worldloom import _memory, store
from worldloom.store import _frames, _join, _manifest

EMPTY = {"tree": ["none"], "leaves": [], "parts": [], "meta": {}, "snapshot": None}


def forge(path: Path, text: bytes, frames: bytes = b"") -> Path:
    """A file whose checksums are right, whatever it says."""
    head = struct.pack("<8sIIQQ", b"\x89LOOM\r\n\x1a", 1, 0, 64 + len(frames), len(text))
    path.write_bytes(head + hashlib.sha256(head + text).digest() + frames + text)
    return path


def bomb(path: Path, nbytes: int) -> Path:
    """A small, sound file with an array of so many zeros, a multiple of a block of them."""
    frame = zstandard.ZstdCompressor(level=1, write_content_size=True).compress(
        bytes(_frames.BLOCK)
    )
    count = nbytes // _frames.BLOCK
    entry = [len(frame), hashlib.sha256(frame).hexdigest()]
    manifest = EMPTY | {
        "tree": ["leaf", 0],
        "leaves": [{"path": "", "kind": "array", "dtype": "uint8", "shape": [nbytes]}],
        "parts": [{"leaf": 0, "start": [0], "shape": [nbytes], "frames": [entry] * count}],
    }
    return forge(path, json.dumps(manifest).encode(), frame * count)


ZEROS = np.zeros(2**20, np.uint8)


def snapshot_of(path: Path) -> Callable[[], object]:
    """The same array in a folder of snapshots."""
    snapshots = store.Snapshots(path.parent / "snapshots")
    snapshots.save(1, ZEROS)
    return lambda: snapshots.load(ZEROS)


DOORS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "load": lambda path: lambda: store.load(path),
    "load like": lambda path: lambda: store.load(path, like=ZEROS),
    "storage": lambda path: lambda: store.CompressedStorage(path.parent).load(path.stem),
    "snapshots": snapshot_of,
}


@pytest.mark.parametrize("door", DOORS)
def test_the_limit_is_what_is_free_now(door: str, tmp_path: Path, monkeypatch):
    path = tmp_path / "tree.loom"
    store.save(path, ZEROS)
    load = DOORS[door](path)
    load()
    monkeypatch.setattr(_join, "free_memory", lambda: 2**20)
    tracemalloc.start()
    with pytest.raises(store.TooLargeError, match=r"1048576 bytes of arrays.*can have 1048576"):
        load()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**19


def test_who_sets_a_limit_has_it(tmp_path: Path, monkeypatch):
    store.save(tmp_path / "tree.loom", np.zeros(1000, np.uint8))
    monkeypatch.setattr(_join, "free_memory", lambda: 0)
    assert store.load(tmp_path / "tree.loom", max_bytes=1000).shape == (1000,)
    with pytest.raises(store.TooLargeError, match="the limit is 999"):
        store.load(tmp_path / "tree.loom", max_bytes=999)


def test_copies_and_blocks_are_counted(tmp_path: Path, monkeypatch):
    path = tmp_path / "tree.loom"
    store.save(path, [np.zeros(1000, np.uint8), np.zeros(500, np.uint8)])
    like = [np.zeros(1000, np.uint8), np.zeros(500, np.uint8)]
    for free, plain, into in ((2999, False, False), (3000, True, False), (4000, True, True)):
        monkeypatch.setattr(_join, "free_memory", lambda free=free: free)
        for fits, load in (
            (plain, lambda: store.load(path)),
            (into, lambda: store.load(path, like=like)),
        ):
            if fits:
                load()
            else:
                with pytest.raises(store.TooLargeError):
                    load()


CHILD = """
import resource, sys
import psutil
from worldloom import store
have = getattr(psutil.Process().memory_info(), sys.argv[3])
resource.setrlimit(getattr(resource, sys.argv[2]), (have + 2**30, have + 2**30))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    store.load(sys.argv[1])
except store.TooLargeError as error:
    print(error)
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")
@pytest.mark.parametrize(("limit", "used"), [("RLIMIT_AS", "vms"), ("RLIMIT_DATA", "data")])
def test_a_limit_of_the_process_counts(limit: str, used: str, tmp_path: Path):
    path = bomb(tmp_path / "bomb.loom", 2**32)
    assert path.stat().st_size < 1e6
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), limit, used],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "4294967296 bytes of arrays" in done.stdout


def test_free_memory_is_the_least_of_all_limits(monkeypatch):
    machine = _memory.free_memory()
    monkeypatch.setattr(_memory, "left_in_container", lambda: [5 * 2**20, machine])
    assert _memory.free_memory() == 5 * 2**20
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1, 1))
    assert _memory.free_memory() == 0


HUGE = {
    "lists in the tree": b'{"tree":["list",[' + b'["none"],' * 2_500_000 + b'["none"]]],',
    "empty lists": b'{"tree":[' + b"[]," * 10_000_000 + b"[]],",
    "empty objects": b'{"tree":[' + b"{}," * 10_000_000 + b"{}],",
    "numbers": b'{"tree":[' + b"1," * 15_000_000 + b"1],",
    "names": b'{"tree":{' + b",".join(b'"%x":0' % i for i in range(2_500_001)) + b"},",
    "deep lists": b'{"tree":' + b"[" * 1_000_000,
    "deep objects": b'{"tree":' + b'{"a":' * 1_000_000,
    "deep and wide": b'{"tree":[' + (b"[" * 90 + b"]" * 90 + b",") * 100_000 + b"0],",
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_or_deep_manifest_is_refused_before_it_is_built(name: str, tmp_path: Path):
    rest = b'"leaves":[],"parts":[],"meta":{},"snapshot":null}'
    path = forge(tmp_path / "tree.loom", HUGE[name] + rest)
    for door in (store.load, store.read_meta, store.inspect):
        tracemalloc.start()
        began = time.process_time()
        with pytest.raises(
            store.DamagedError, match=r"tree\.loom.* (entries, more|not valid JSON)"
        ):
            door(path)
        seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seconds < 1
        assert peak < 3 * path.stat().st_size + 1e6


def test_a_value_nested_too_deeply(tmp_path: Path):
    value: object = 1.0
    for _ in range(450):
        value = {"complex": [value, 1.0]}
    leaf = {"path": "", "kind": "value", "value": value}
    text = json.dumps(EMPTY | {"tree": ["leaf", 0], "leaves": [leaf]}).encode()
    with pytest.raises(store.DamagedError):
        store.load(forge(tmp_path / "tree.loom", text))


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(_manifest, "MAX_ENTRIES", 1000)
    with pytest.raises(store.UnstorableError, match="entries; at most 1000"):
        store.save(tmp_path / "tree.loom", {}, meta={"list": [0] * 1000})
    assert not list(tmp_path.iterdir())
    store.save(tmp_path / "tree.loom", {}, meta={"list": [0] * 900})
    assert len(store.read_meta(tmp_path / "tree.loom")["list"]) == 900


def test_damaged_archives(tmp_path: Path):
    check_archives(tmp_path, range(100))


@pytest.mark.slow
def test_many_damaged_archives(tmp_path: Path):
    check_archives(tmp_path, range(100, 2_100))


def check_archives(folder: Path, seeds: range) -> None:
    """Whatever is changed in a file: a named error that names the file."""
    path = folder / "tree.loom"
    store.save(
        path, {"a": np.arange(300, dtype=np.float32), "b": [1, 2.5, "c", None]}, meta={"n": 1}
    )
    sound = path.read_bytes()
    for seed in seeds:
        random = np.random.default_rng(seed)
        data = bytearray(sound)
        a, b = sorted(random.integers(0, len(data), 2).tolist())
        match seed % 5:
            case 0:
                data[a] ^= 1 << int(random.integers(8))
            case 1:
                data[a : a + 4] = random.bytes(4)
            case 2:
                del data[a:b]
            case 3:
                data[a:a] = data[a:b]
            case 4:
                data[a:b] = bytes(b - a)
        if data == sound:
            continue
        path.write_bytes(data)
        with pytest.raises(store.StoreError, match=r"tree\.loom"):
            store.load(path)
        # A frame may be damaged where no array is asked for.
        for door in (store.read_meta, store.inspect):
            with contextlib.suppress(store.StoreError):
                door(path)
