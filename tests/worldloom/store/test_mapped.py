from __future__ import annotations

import contextlib
import math
from pathlib import Path

import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

from worldloom import store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.npy"


def test_it_is_a_npy_file_that_numpy_reads(path: Path):
    mapped = store.create_mapped(path, (4, 3), np.float32)
    assert not mapped.any()
    mapped[1] = [1, 2, 3]
    mapped.flush()
    assert np.load(path)[1].tolist() == [1, 2, 3]
    assert np.load(path).dtype == np.float32
    again = store.open_mapped(path, "r+")
    again[3, 0] = 7
    again.flush()
    assert store.open_mapped(path)[3, 0] == 7


def test_modes(path: Path):
    store.create_mapped(path, (2,), np.int8)
    with pytest.raises(ValueError, match="read-only"):
        store.open_mapped(path)[0] = 1
    private = store.open_mapped(path, "c")
    private[0] = 1
    assert private[0] == 1
    assert store.open_mapped(path)[0] == 0


def test_an_old_file_is_replaced_whole(path: Path):
    old = store.create_mapped(path, (2,), np.int8)
    old[:] = 5
    store.create_mapped(path, (3,), np.int16)
    assert old.tolist() == [5, 5]
    assert store.open_mapped(path).tolist() == [0, 0, 0]


def test_the_room_on_disk_is_taken_at_once(path: Path):
    store.create_mapped(path, (1_000_000,), np.uint8)
    assert path.stat().st_blocks * 512 >= 1_000_000


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["?", "i1", "<f8", ">f4", "c8", "M8[s]", "S3"])
def test_any_shape_and_dtype(shape: tuple[int, ...], dtype: str, path: Path):
    mapped = store.create_mapped(path, shape, dtype)
    assert mapped.shape == shape
    assert mapped.dtype == np.dtype(dtype)
    back = np.load(path)
    assert back.shape == shape
    assert back.dtype == np.dtype(dtype)


@given(
    before=st.integers(0, 1500),
    after=st.integers(0, 1500),
    width=st.lists(st.integers(0, 3), max_size=2),
)
def test_resizing_keeps_the_rows(before, after, width, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "resized.npy"
    mapped = store.create_mapped(path, (before, *width), np.int32)
    mapped[...] = np.arange(1, mapped.size + 1).reshape(mapped.shape)
    expected = np.zeros((after, *width), np.int32)
    expected[:before] = mapped[:after]
    mapped.flush()
    del mapped
    store.resize_mapped(path, after)
    assert np.array_equal(np.load(path), expected)
    assert path.stat().st_size == 128 + 4 * after * math.prod(width)


def test_rows_cut_and_grown_again_are_zero(path: Path):
    """What a killed writer left behind the last row must not come back as data."""
    store.create_mapped(path, (10,), np.int8)[:] = 9
    data = path.read_bytes()
    store.resize_mapped(path, 4)
    path.write_bytes(path.read_bytes() + data[-6:])
    assert store.open_mapped(path).tolist() == [9] * 4
    store.resize_mapped(path, 10)
    assert store.open_mapped(path).tolist() == [9] * 4 + [0] * 6


def test_a_file_of_numpy_can_be_resized(path: Path):
    np.save(path, np.arange(12).reshape(6, 2))
    store.resize_mapped(path, 2)
    assert np.load(path).tolist() == [[0, 1], [2, 3]]


def test_what_cannot_be_resized(path: Path):
    np.save(path, np.asfortranarray(np.ones((3, 2))))
    with pytest.raises(store.UnstorableError, match="Fortran"):
        store.resize_mapped(path, 1)
    np.save(path, np.array(1.0))
    with pytest.raises(store.ArgumentError, match=r"rows is 1.*shape \(\)"):
        store.resize_mapped(path, 1)
    np.save(path, np.ones(3))
    with pytest.raises(store.ArgumentError, match="rows is -1"):
        store.resize_mapped(path, -1)
    assert np.load(path).tolist() == [1, 1, 1]
    path.write_bytes(header("{'descr':'<f8','fortran_order':False,'shape':(3,)}", 51) + bytes(24))
    assert np.load(path).tolist() == [0, 0, 0]
    with pytest.raises(store.UnstorableError, match="no room for 2 rows"):
        store.resize_mapped(path, 2)
    assert np.load(path).tolist() == [0, 0, 0]


def test_the_header_has_room_for_any_number_of_rows(path: Path):
    store.create_mapped(path, (0, 0), np.int8)
    for rows in (10**12, 2**62, 3):
        store.resize_mapped(path, rows)
        assert np.load(path).shape == (rows, 0)


def test_fortran_order_is_understood(path: Path):
    array = np.asfortranarray(np.arange(6).reshape(2, 3))
    np.save(path, array)
    assert np.array_equal(store.open_mapped(path), array)


def test_bad_arguments(path: Path):
    with pytest.raises(store.UnstorableError, match="dtype is object"):
        store.create_mapped(path, (2,), object)
    with pytest.raises(store.UnstorableError, match="dtype is bfloat16"):
        store.create_mapped(path, (2,), ml_dtypes.bfloat16)
    with pytest.raises(store.ArgumentError, match=r"shape is \(-1,\)"):
        store.create_mapped(path, (-1,), np.int8)
    with pytest.raises(store.ArgumentError, match="no such array"):
        store.create_mapped(path, (2**62, 0), np.float64)
    assert not path.exists()
    with pytest.raises(store.MissingError):
        store.open_mapped(path)


def test_every_truncation_is_named(path: Path):
    np.save(path, np.arange(5, dtype=np.int16))
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(store.StoreError, match=r"rows\.npy"):
            store.open_mapped(path)


def header(text: str, length: int = 118) -> bytes:
    body = text.encode().ljust(length - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", store.ForeignFileError),
        (b"\x89LOOM\r\n\x1a" + bytes(200), store.ForeignFileError),
        (b"\x93NUMPY\x09\x00" + bytes(200), store.VersionError),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"), store.ForeignFileError),
        (
            header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
            store.ForeignFileError,
        ),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (-2,)}"), store.DamagedError),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (2**9,)}"), store.DamagedError),
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
            store.DamagedError,
        ),
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 0)}"),
            store.DamagedError,
        ),
        (
            header(f"{{'descr':'<f8','fortran_order':False,'shape':{(1,) * 65}}}", 400),
            store.DamagedError,
        ),
        (header("{'descr': '<U0', 'fortran_order': False, 'shape': (2,)}"), store.DamagedError),
        (header("{'descr': 'zz', 'fortran_order': False, 'shape': (2,)}"), store.DamagedError),
        (header("__import__('os').system('true')"), store.DamagedError),
        (header("(" * 100), store.DamagedError),
    ],
    ids=range(14),
)
def test_files_that_are_not_ours(content: bytes, error: type[store.StoreError], path: Path):
    path.write_bytes(content + bytes(16))
    if not content:
        path.write_bytes(b"")
    with pytest.raises(error, match=r"rows\.npy"):
        store.open_mapped(path)


@given(data=st.data())
def test_damaged_headers_never_crash(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    np.save(path, np.arange(50))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 127))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(store.StoreError):
        np.asarray(store.open_mapped(path)).tobytes()
