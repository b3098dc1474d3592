"""Whole arrays from the parts that one or several files hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from worldloom._memory import free_memory
from worldloom.store._errors import ArgumentError, Flaw, TooLargeError
from worldloom.store._format import Reader
from worldloom.store._frames import BLOCK, BLOCKS_AT_ONCE, LARGEST_FRAME
from worldloom.store._leaves import DTYPES, Leaf
from worldloom.store._manifest import Part


def read_leaves(
    readers: Sequence[Reader], *, max_bytes: int | None, copied: bool
) -> dict[int, np.ndarray]:
    """The elements of every leaf that has some, by leaf number.

    All readers must have the same leaves. Sizes and tilings are checked before anything is
    allocated; then each part is decompressed straight into its place where that is one run of
    memory, and copied there where it is not. `copied` says that the caller will copy the arrays,
    one after the other, and let go of each.
    """
    leaves = readers[0].manifest.leaves
    _refuse_huge(readers, max_bytes, copied)
    parts: dict[int, list[Part]] = {i: [] for i, leaf in enumerate(leaves) if leaf.has_data}
    for part in itertools.chain.from_iterable(reader.manifest.parts for reader in readers):
        parts[part.leaf].append(part)
    with readers[0].naming_flaws():
        for number, found in parts.items():
            _check_tiling(leaves[number], found)
        arrays = {number: _allocate(leaves[number]) for number in parts}
    try:
        for reader in readers:
            _read_parts(reader, arrays)
    except MemoryError as error:
        raise TooLargeError(f"{str(readers[0].path)!r} does not fit into memory.") from error
    with readers[0].naming_flaws():
        for number, array in arrays.items():
            if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
                raise Flaw(f"leaf {leaves[number].path} has a bool that is neither 0 nor 1")
    return arrays


def _read_parts(reader: Reader, arrays: dict[int, np.ndarray]) -> None:
    boxes: dict[int, np.ndarray] = {}
    copies: list[tuple[np.ndarray, np.ndarray]] = []
    for number, part in enumerate(reader.manifest.parts):
        index = (slice(a, a + n) for a, n in zip(part.start, part.shape, strict=True))
        place = arrays[part.leaf][(*index, ...)]
        boxes[number] = place if place.flags.c_contiguous else np.empty_like(place, order="C")
        if boxes[number] is not place:
            copies.append((place, boxes[number]))
    reader.read(boxes)
    for place, box in copies:
        place[...] = box


def _refuse_huge(readers: Sequence[Reader], max_bytes: int | None, copied: bool) -> None:
    """Before anything is allocated: by the caller's limit, or by what there is to allocate."""
    path, leaves = repr(str(readers[0].path)), readers[0].manifest.leaves
    need = sum(leaf.nbytes for leaf in leaves)
    if max_bytes is not None:
        if max_bytes < 0:
            raise ArgumentError(f"max_bytes is {max_bytes}; it must not be negative.")
        if need > max_bytes:
            raise TooLargeError(
                f"{path} holds {need} bytes of arrays; the limit is {max_bytes}. "
                "If you trust the file, pass a larger `max_bytes`."
            )
        return
    # Beside the arrays there are blocks on their way, and copies.
    most = need + min(need, BLOCKS_AT_ONCE * (BLOCK + LARGEST_FRAME))
    if copied:
        most += max((leaf.nbytes for leaf in leaves), default=0)
    most += max(_scattered_bytes(reader) for reader in readers)
    if most > (free := free_memory()):
        raise TooLargeError(
            f"{path} holds {need} bytes of arrays, and to load them takes up to {most}; this "
            f"process can have {free} bytes. Give it more memory."
        )


def _scattered_bytes(reader: Reader) -> int:
    """Bytes of the parts that are not one run of memory in their leaf."""
    leaves = reader.manifest.leaves
    return sum(
        math.prod(part.shape) * DTYPES[leaves[part.leaf].dtype].itemsize
        for part in reader.manifest.parts
        if part.shape[1:] != leaves[part.leaf].shape[1:]
    )


def _allocate(leaf: Leaf) -> np.ndarray:
    try:
        return np.empty(leaf.shape, DTYPES[leaf.dtype])
    except (ValueError, MemoryError) as error:
        raise TooLargeError(
            f"Leaf {leaf.path} of shape {leaf.shape} and dtype {leaf.dtype} does not fit: {error}."
        ) from error


def _check_tiling(leaf: Leaf, parts: Sequence[Part]) -> None:
    """Do the parts cover the leaf, each element exactly once?

    Shardings cut every axis at the same places in all parts. So the parts must be all the
    cells of such a grid: along each axis the intervals join up from 0 to the end, no two parts
    begin at the same place, and there are as many parts as cells.
    """
    if math.prod(leaf.shape) == 0:
        return  # has no elements; a part that claims some lies outside and was refused
    cells = 1
    for axis, whole in enumerate(leaf.shape):
        intervals = sorted({(part.start[axis], part.shape[axis]) for part in parts})
        joined = all(a + n == b for (a, n), (b, _) in itertools.pairwise(intervals))
        if not intervals or intervals[0][0] != 0 or sum(intervals[-1]) != whole or not joined:
            raise Flaw(f"leaf {leaf.path} is incomplete along axis {axis}")
        cells *= len(intervals)
    if len(parts) != cells or len({part.start for part in parts}) != cells:
        raise Flaw(f"leaf {leaf.path} has {len(parts)} parts where it needs {cells}")
