"""Which elements of which leaf this process has to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax

from worldloom import _processes
from worldloom.store._format import Box
from worldloom.store._leaves import elements, is_array


def is_spread(leaf: Any) -> bool:
    """Is it an array whose shards lie in more than one process?"""
    return isinstance(leaf, jax.Array) and not leaf.is_fully_addressable


def my_boxes(leaves: Sequence[Any]) -> Iterator[Box]:
    """The boxes of this process: together, all processes yield every element once.

    Of a spread array, a process writes the shards it holds, copies left out. Everything else
    is written whole by process 0.
    """
    for number, leaf in enumerate(leaves):
        if is_spread(leaf):
            for shard in leaf.addressable_shards:
                if shard.replica_id == 0:
                    yield _box(number, shard.index, elements(shard.data))
        elif is_array(leaf) and _processes.index() == 0:
            yield _box(number, (), elements(leaf))


def _box(number: int, index: tuple[slice, ...], data: Any) -> Box:
    """`index` may be shorter than the rank: keys have axes of their own behind it."""
    start = tuple(axis.start or 0 for axis in index)[: data.ndim]
    return Box(number, start + (0,) * (data.ndim - len(start)), data)
