"""Arrays that live in a `.npy` file and are read and written through memory."""

from __future__ import annotations

import ast
import math
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from worldloom.store._errors import (
    ArgumentError,
    DamagedError,
    ForeignFileError,
    UnstorableError,
    VersionError,
)
from worldloom.store._files import atomic_write, disk_errors

_MAGIC = b"\x93NUMPY"
_PREFIX = struct.Struct("<6sBBH")
_ALIGNMENT = 64
_DIGITS = 22  # a newline and the digits of any number of rows
_LENGTH_BYTES = {b"\1\0": 2, b"\2\0": 4}  # by version
_LONGEST = 10_000
_MAX_RANK = 64
_KINDS = "biufcSUmM"


class _Head(NamedTuple):
    """What the header of a `.npy` file says, and where the elements begin."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype
    offset: int


def create_mapped(
    path: str | os.PathLike[str], shape: Sequence[int], dtype: DTypeLike
) -> np.memmap[Any, Any]:
    """Make a `.npy` file of zeros and map it for reading and writing.

    Any NumPy opens it. On Linux, the room on disk is reserved now: a full disk is an error
    here, and not a crash when an element is written later. A file of that name is replaced.

    ```python
    import numpy as np
    from worldloom import store

    rows = store.create_mapped("rows.npy", (1000, 3), np.float32)
    rows[0] = [1, 2, 3]
    rows.flush()
    assert np.load("rows.npy")[0].tolist() == [1, 2, 3]
    ```
    """
    path, dtype = Path(path), np.dtype(dtype)
    shape = tuple(int(extent) for extent in shape)
    if not _possible(shape, dtype):
        raise ArgumentError(f"shape is {shape}; NumPy has no such array.")
    if dtype.kind not in _KINDS:
        raise UnstorableError(
            f"dtype is {dtype}; a .npy file can hold bool, integer, float, complex, string and "
            "time arrays. View others as integers of the same size first."
        )
    with atomic_write(path) as file:
        header = _header(shape, dtype)
        file.write(header)
        file.flush()
        _reserve(file, len(header), math.prod(shape) * dtype.itemsize)
    return open_mapped(path, "r+")


def _reserve(file: BinaryIO, offset: int, nbytes: int) -> None:
    """Make the file `nbytes` of zeros longer than `offset`, in real blocks where that can be had.

    A hole that the disk has no room for is found out by a write through the map, which no
    program survives.
    """
    if nbytes and sys.platform == "linux":
        os.posix_fallocate(file.fileno(), offset, nbytes)
    else:
        file.truncate(offset + nbytes)


def _header(shape: tuple[int, ...], dtype: np.dtype, length: int | None = None) -> bytes:
    """A `.npy` header of `length` bytes; by default with room for any number of rows."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    if length is None:
        length = -(-(_PREFIX.size + len(text) + _DIGITS) // _ALIGNMENT) * _ALIGNMENT
    body = text.encode("ascii").ljust(length - _PREFIX.size - 1) + b"\n"
    return _PREFIX.pack(_MAGIC, 1, 0, len(body)) + body


def open_mapped(
    path: str | os.PathLike[str], mode: Literal["r", "r+", "c"] = "r"
) -> np.memmap[Any, Any]:
    """Map a `.npy` file: `"r"` to read, `"r+"` to write too, `"c"` to write in memory only.

    A file that is truncated, not `.npy`, or holds Python objects is a named error. Bytes behind
    the last element are ignored, as NumPy does.
    """
    if mode not in ("r", "r+", "c"):
        raise ArgumentError(f"mode is {mode!r}; it must be 'r', 'r+' or 'c'.")
    path = Path(path)
    with disk_errors("open", path), path.open("rb" if mode in ("r", "c") else "r+b") as file:
        head = _read_head(path, file)
        return np.memmap(
            file,
            dtype=head.dtype,
            mode=mode,
            offset=head.offset,
            shape=head.shape,
            order="F" if head.fortran_order else "C",
        )


def resize_mapped(path: str | os.PathLike[str], rows: int) -> None:
    """Give the leading axis of a `.npy` file `rows` entries, in place.

    New entries are zero. Header and length are changed in the order that leaves a valid file if
    the process is killed in between. Drop all maps of the file before: touching a row that is
    gone crashes Python.
    """
    path = Path(path)
    with disk_errors("resize", path), path.open("r+b") as file:
        head = _read_head(path, file)
        if not head.shape or rows < 0:
            raise ArgumentError(
                f"rows is {rows}; the array in {str(path)!r} has shape {head.shape}."
            )
        if head.fortran_order and len(head.shape) > 1:
            raise UnstorableError(
                f"{str(path)!r} is in Fortran order: its rows are not contiguous."
            )
        shape = (rows, *head.shape[1:])
        if not _possible(shape, head.dtype):
            raise ArgumentError(f"rows is {rows}; NumPy has no array of shape {shape}.")
        header = _header(shape, head.dtype, head.offset)
        if len(header) != head.offset:
            raise UnstorableError(
                f"The header of {str(path)!r} has no room for {rows} rows. It was not made by "
                "create_mapped; copy the array into one that was."
            )
        old = math.prod(head.shape) * head.dtype.itemsize
        new = math.prod(shape) * head.dtype.itemsize
        if new > old:
            # What lies behind the last entry is not part of the array, and may be anything.
            file.truncate(head.offset + old)
            _reserve(file, head.offset + old, new - old)
            os.fsync(file.fileno())
        file.seek(0)
        file.write(header)
        file.flush()
        os.fsync(file.fileno())
        file.truncate(head.offset + new)
        os.fsync(file.fileno())


def _read_head(path: Path, file: BinaryIO) -> _Head:
    name = repr(str(path))
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)
    if start[:6] != _MAGIC[: len(start)] or not start:
        raise ForeignFileError(f"{name} is not a .npy file.")
    version = start[6:]
    if len(version) == 2 and version not in _LENGTH_BYTES:
        raise VersionError(
            f"{name} has .npy version {tuple(version)}; versions (1, 0) and (2, 0) are read."
        )
    length = int.from_bytes(file.read(_LENGTH_BYTES.get(version, 0)), "little")
    offset = file.tell() + length
    if not 0 < length <= min(_LONGEST, size - file.tell()):
        raise DamagedError(f"{name} is truncated or damaged: its header is not whole.")
    shape, fortran_order, dtype = _parse(name, file.read(length))
    if dtype.kind not in _KINDS:
        raise ForeignFileError(
            f"{name} has dtype {dtype}. Python objects would need pickle, which can run any "
            "program; records are not mapped."
        )
    if dtype.itemsize == 0 or not _possible(shape, dtype):
        raise DamagedError(f"{name} has the impossible shape {shape} or dtype {dtype}.")
    end = offset + math.prod(shape) * dtype.itemsize
    if size < end:
        raise DamagedError(f"{name} is truncated: it has {size} bytes of {end}.")
    return _Head(shape, fortran_order, dtype, offset)


def _possible(shape: tuple[Any, ...], dtype: np.dtype) -> bool:
    """Can NumPy have such an array? It counts extents of zero as one."""
    return (
        len(shape) <= _MAX_RANK
        and all(type(extent) is int and extent >= 0 for extent in shape)
        and math.prod(extent or 1 for extent in shape) * dtype.itemsize < 2**63
    )


def _parse(name: str, text: bytes) -> tuple[tuple[Any, ...], bool, np.dtype]:
    """NumPy's own reader is too lenient: it lets errors of Python's tokenizer out."""
    try:
        match ast.literal_eval(text.decode("latin1")):
            case {"descr": list(), "fortran_order": bool(), "shape": tuple()}:
                raise ForeignFileError(f"{name} holds records, which are not mapped.")
            case {"descr": str(descr), "fortran_order": bool(order), "shape": tuple(shape), **rest}:
                if not rest:
                    return shape, order, np.dtype(descr)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        if isinstance(error, ForeignFileError):
            raise
        raise DamagedError(f"{name} has a damaged .npy header ({error}).") from error
    raise DamagedError(f"{name} has a damaged .npy header.")
