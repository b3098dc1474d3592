"""Files that are damaged, foreign, or made to do harm: always a named error."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
import zstandard
from hypothesis import given

from worldloom import store

TREE = {
    "cells": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "key": jax.random.key(5),
    "names": ["grid", 2.5, None, True],
    "empty": np.zeros((0, 2)),
    "flag": np.array(True),
}
"""Every kind of leaf that comes back without a template."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "tree.loom"
    store.save(path, TREE, meta={"step": 1})
    return path.read_bytes()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "tree.loom"
    store.save(path, {"x": np.arange(3, dtype=np.uint16), "n": 2})
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tree.loom"


def take_apart(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """Frames and manifest, read as docs/guide/store.md tells a stranger to."""
    magic, version, zero, offset, length = struct.unpack("<8sIIQQ", data[:32])
    assert magic == b"\x89LOOM\r\n\x1a"
    assert (version, zero) == (1, 0)
    assert offset + length == len(data)
    assert hashlib.sha256(data[:32] + data[offset:]).digest() == data[32:64]
    return data[64:offset], json.loads(data[offset:])


def forge(frames: bytes, manifest: Any, *, version: int = 1) -> bytes:
    """A file whose checksums are right, whatever it says."""
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    head = struct.pack("<8sIIQQ", b"\x89LOOM\r\n\x1a", version, 0, 64 + len(frames), len(text))
    return head + hashlib.sha256(head + text).digest() + frames + text


def test_a_stranger_can_read_the_format(path: Path):
    """The documented format and nothing else: header, JSON, zstd, SHA-256."""
    wide = np.arange(3_000_000, dtype=np.float32)
    store.save(path, {"a": np.array([[1, 2], [3, 4]], np.int16), "wide": wide, "n": 3})
    frames, manifest = take_apart(path.read_bytes())
    assert manifest["tree"] == [
        "dict",
        [["a", ["leaf", 0]], ["wide", ["leaf", 1]], ["n", ["leaf", 2]]],
    ]
    assert manifest["leaves"][2] == {"path": "['n']", "kind": "value", "value": 3}
    arrays = []
    for part in manifest["parts"]:
        leaf = manifest["leaves"][part["leaf"]]
        raw = b""
        for size, sha256 in part["frames"]:
            frame, frames = frames[:size], frames[size:]
            assert hashlib.sha256(frame).hexdigest() == sha256
            raw += zstandard.ZstdDecompressor().decompress(frame)
            assert len(raw) % (4 * 1024 * 1024) == 0 or [size, sha256] == part["frames"][-1]
        arrays.append(np.frombuffer(raw, leaf["dtype"]).reshape(part["shape"]))
    assert frames == b""
    assert arrays[0].tolist() == [[1, 2], [3, 4]]
    assert np.array_equal(arrays[1], wide)


def test_a_forged_file_is_sound(sound: bytes, path: Path):
    """Else every test below that forges one would pass for the wrong reason."""
    path.write_bytes(forge(*take_apart(sound)))
    back = store.load(path)
    assert back["names"] == TREE["names"]
    assert np.array_equal(back["cells"], TREE["cells"])


def test_every_flipped_bit_is_found(small: bytes, path: Path):
    path.write_bytes(small)
    assert store.load(path)["x"].tolist() == [0, 1, 2]
    for position in range(len(small)):
        for bit in range(8):
            data = bytearray(small)
            data[position] ^= 1 << bit
            path.write_bytes(data)
            with pytest.raises(store.StoreError):
                store.load(path)


def test_every_truncation_is_found(small: bytes, path: Path):
    for length in range(len(small)):
        path.write_bytes(small[:length])
        with pytest.raises(store.StoreError):
            store.load(path)
        with pytest.raises(store.StoreError):
            store.read_meta(path)


def test_a_longer_file_is_found(sound: bytes, path: Path):
    path.write_bytes(sound + b"\0")
    with pytest.raises(store.DamagedError, match="promises"):
        store.load(path)


@given(data=st.data())
def test_spliced_files_are_found(data, sound: bytes, tmp_path_factory: pytest.TempPathFactory):
    """Blocks moved, doubled, dropped, zeroed: as bad disks and bad copies do."""
    path = tmp_path_factory.getbasetemp() / "spliced.loom"
    a, b, c = sorted(data.draw(st.integers(0, len(sound))) for _ in range(3))
    filling = data.draw(st.sampled_from([sound[:b], sound[b:c][::-1], b"", bytes(c - b)]))
    changed = sound[:a] + filling + sound[c:]
    path.write_bytes(changed)
    if changed == sound:
        store.load(path)
    else:
        with pytest.raises(store.StoreError):
            store.load(path)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", store.ForeignFileError),
        (b"hello", store.ForeignFileError),
        (b"\x93NUMPY" + bytes(100), store.ForeignFileError),
        (b"\x89LOOM\n\x1a" + bytes(100), store.ForeignFileError),
        (b"\x89LOO", store.DamagedError),
        (b"\x89LOOM\r\n\x1a", store.DamagedError),
    ],
)
def test_files_of_others(content: bytes, error: type[store.StoreError], path: Path):
    path.write_bytes(content)
    with pytest.raises(error, match=r"tree\.loom"):
        store.load(path)


def test_a_file_of_the_future(sound: bytes, path: Path):
    path.write_bytes(forge(*take_apart(sound), version=2))
    with pytest.raises(store.VersionError, match=r"version 2.*reads version 1"):
        store.load(path)


def leaf(manifest: dict[str, Any], **changes: Any) -> None:
    manifest["leaves"][0].update(changes)


def part(manifest: dict[str, Any], **changes: Any) -> None:
    manifest["parts"][0].update(changes)


HOSTILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "huge shape": lambda m: leaf(m, shape=[2**62, 4]),
    "shape beyond 64 bits": lambda m: leaf(m, shape=[2**70, 4]),
    "negative extent": lambda m: leaf(m, shape=[-3, -4]),
    "too many axes": lambda m: leaf(m, shape=[1] * 65 + [12]),
    "fractional extent": lambda m: leaf(m, shape=[3.0, 4]),
    "extent true": lambda m: leaf(m, shape=[True, 12]),
    "no elements but a part": lambda m: leaf(m, shape=[0, 4]),
    "empty and beyond NumPy": lambda m: m["leaves"][-2].update(shape=[0, 2**62, 2**62]),
    "object dtype": lambda m: leaf(m, dtype="object"),
    "void dtype": lambda m: leaf(m, dtype="V1"),
    "larger dtype": lambda m: leaf(m, dtype="float64"),
    "two leaves of one path": lambda m: m["leaves"][1].update(path=m["leaves"][0]["path"]),
    "unknown kind": lambda m: leaf(m, kind="pickle"),
    "array called a key": lambda m: leaf(m, kind="key", note="threefry2x32"),
    "key of nobody": lambda m: m["leaves"][1].update(note="os.system"),
    "path that is no text": lambda m: leaf(m, path=3),
    "part outside": lambda m: part(m, start=[1, 0]),
    "negative start": lambda m: part(m, start=[-1, 0]),
    "part of another rank": lambda m: part(m, start=[0], shape=[12]),
    "too small a part": lambda m: part(m, shape=[2, 4]),
    "part of nothing": lambda m: part(m, leaf=99),
    "negative leaf": lambda m: part(m, leaf=-1),
    "part of a plain value": lambda m: part(m, leaf=2),
    "the same part twice": lambda m: m["parts"].append(copy.deepcopy(m["parts"][0])),
    "no part": lambda m: m["parts"].pop(),
    "parts in another order": lambda m: m["parts"].reverse(),
    "no frames": lambda m: part(m, frames=[]),
    "negative frame": lambda m: m["parts"][0]["frames"][0].__setitem__(0, -5),
    "frame beyond the file": lambda m: m["parts"][0]["frames"][0].__setitem__(0, 2**40),
    "checksum of something else": lambda m: m["parts"][0]["frames"][0].__setitem__(1, "0" * 64),
    "leaf used twice": lambda m: m.update(tree=["list", [["leaf", 0], ["leaf", 0]]]),
    "leaf not used": lambda m: m.update(tree=["none"]),
    "unknown node": lambda m: m.update(tree=["exec", "import os"]),
    "key twice": lambda m: m["tree"][1].append(m["tree"][1][0]),
    "list as a key": lambda m: m["tree"][1][0].__setitem__(0, []),
    "unknown value": lambda m: m["leaves"][2].update(value={"float": "1e999"}),
    "meta that is no mapping": lambda m: m.update(meta=[1]),
    "no leaves": lambda m: m.pop("leaves"),
    "strange snapshot": lambda m: m.update(snapshot={"step": -1}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_manifest_that_lies(name: str, sound: bytes, path: Path):
    frames, manifest = take_apart(sound)
    HOSTILE[name](manifest)
    path.write_bytes(forge(frames, manifest))
    tracemalloc.start()
    try:
        with pytest.raises(store.StoreError, match=r"tree\.loom|Leaf"):
            store.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6


def test_a_part_without_frames_never_shows_old_memory(path: Path):
    """Consistent in everything else: only the number of frames gives it away."""
    frames, manifest = take_apart(bomb(b"", 1000))
    manifest["parts"][0]["frames"] = []
    path.write_bytes(forge(frames, manifest))
    with pytest.raises(store.DamagedError, match="1000 bytes in 0 frames"):
        store.load(path)


@pytest.mark.parametrize("name", ["part outside", "part of another rank", "no elements but a part"])
def test_a_part_outside_of_its_leaf_is_called_so(name: str, sound: bytes, path: Path):
    frames, manifest = take_apart(sound)
    HOSTILE[name](manifest)
    path.write_bytes(forge(frames, manifest))
    with pytest.raises(store.DamagedError, match="outside of its shape"):
        store.inspect(path)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"meta": ' + b'{"a":' * 100_000,
        b'{"tree":["none"],"leaves":[],"parts":[],"meta":{"a":NaN},"snapshot":null}',
        b'{"tree":["none"],"leaves":[],"parts":[],"meta":{"a":1,"a":2},"snapshot":null}',
        b'{"tree":["none"],"leaves":[],"parts":[],"meta":{"a":'
        + b"9" * 10_000
        + b'},"snapshot":null}',
    ],
    ids=range(9),
)
def test_a_manifest_that_is_no_manifest(text: bytes, path: Path):
    path.write_bytes(forge(b"", text))
    with pytest.raises(store.DamagedError, match=r"JSON|manifest"):
        store.load(path)


def nested(depth: int) -> Any:
    node: list[Any] = ["none"]
    for _ in range(depth):
        node = ["list", [node]]
    return node


def test_a_tree_too_deep_for_python(path: Path):
    manifest = {"tree": nested(400), "leaves": [], "parts": [], "meta": {}, "snapshot": None}
    path.write_bytes(forge(b"", manifest))
    with pytest.raises(store.DamagedError, match="deep"):
        store.load(path)


def bomb(frame: bytes, nbytes: int) -> bytes:
    """A file with one uint8 array of `nbytes` elements in one frame."""
    entry = [len(frame), hashlib.sha256(frame).hexdigest()]
    manifest = {
        "tree": ["leaf", 0],
        "leaves": [{"path": "", "kind": "array", "dtype": "uint8", "shape": [nbytes]}],
        "parts": [{"leaf": 0, "start": [0], "shape": [nbytes], "frames": [entry]}],
        "meta": {},
        "snapshot": None,
    }
    return forge(frame, manifest)


def frame_of(content: bytes, claimed: int | None = None) -> bytes:
    """A zstd frame; with another content size than it has, or without one."""
    frame = bytearray(zstandard.ZstdCompressor(write_content_size=True).compress(content))
    if claimed is not None:
        assert frame[4] >> 6 == 2  # the content size has four bytes,
        at = 5 if frame[4] & 0x20 else 6  # behind a byte for the window, if there is one
        frame[at : at + 4] = struct.pack("<I", claimed)
    return bytes(frame)


BLOCK = bytes(100_000)


@pytest.mark.parametrize(
    "frame",
    [
        frame_of(BLOCK, claimed=2**32 - 1),
        frame_of(BLOCK, claimed=100_001),
        frame_of(BLOCK, claimed=99_999),
        frame_of(BLOCK + bytes(20_000_000), claimed=100_000),
        frame_of(bytes(50_000_000)),
        frame_of(BLOCK) + frame_of(BLOCK),
        frame_of(BLOCK) + b"x",
        frame_of(BLOCK)[:-1],
        zstandard.ZstdCompressor(write_content_size=False).compress(BLOCK),
        b"not zstd at all",
        b"\x28\xb5\x2f\xfd",
    ],
    ids=range(11),
)
def test_a_frame_that_lies_about_its_size(frame: bytes, path: Path):
    path.write_bytes(bomb(frame, 100_000))
    tracemalloc.start()
    try:
        with pytest.raises(store.DamagedError, match="frame"):
            store.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5e6


def test_an_honest_bomb_stops_at_the_limit(path: Path):
    store.save(path, np.zeros(500_000_000, np.uint8))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(store.TooLargeError, match=r"500000000.*1000000"):
            store.load(path, max_bytes=1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5e6


def test_a_bool_is_zero_or_one(path: Path):
    frame = frame_of(b"\2" * 10)
    frames, manifest = take_apart(bomb(frame, 10))
    manifest["leaves"][0]["dtype"] = "bool"
    path.write_bytes(forge(frames, manifest))
    with pytest.raises(store.DamagedError, match="bool"):
        store.load(path)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from([0, 1, -1, 2**31, 2**63 - 1, 2**63, "leaf", "key", "float64", "complex"]),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children)
    ),
    max_leaves=5,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON document."""
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    here = [(node, key) for key in keys]
    return here + [place for key in keys for place in places(node[key])]


@given(data=st.data())
def test_mutated_manifests_never_crash(data, sound: bytes, tmp_path_factory):
    """With right checksums: a tree or a `StoreError`, with and without a template."""
    path = tmp_path_factory.getbasetemp() / "mutated.loom"
    frames, manifest = take_apart(sound)
    for _ in range(data.draw(st.integers(1, 2))):
        container, key = data.draw(st.sampled_from(places(manifest)))
        container[key] = data.draw(json_values)
    path.write_bytes(forge(frames, manifest))
    for like in (None, TREE):
        with contextlib.suppress(store.StoreError):
            store.load(path, like=like, max_bytes=10_000_000)
    with contextlib.suppress(store.StoreError):
        store.inspect(path)
