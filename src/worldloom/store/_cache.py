"""A cache that forgets what was not used for longest."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from worldloom.store._errors import ArgumentError


@dataclass(frozen=True)
class CacheStats:
    """What a cache holds now (`items`, `bytes`) and has done since it was made.

    `refusals` counts items that were larger than the whole cache.
    """

    items: int
    bytes: int
    hits: int
    misses: int
    evictions: int
    refusals: int


class LRUCache:
    """Values by key, at most `max_bytes` in total; the least recently used one goes first.

    The limit holds at every moment. An item that is larger than the whole limit is not kept
    and pushes nothing out, but an older item under its key is dropped, as it is out of date.
    Safe to use from several threads.

    The size of a value is the sum of `nbytes` over the arrays of the pytree plus
    `sys.getsizeof` of its other leaves, unless `put` is told. Containers count nothing.

    ```python
    import numpy as np
    from worldloom import store

    cache = store.LRUCache(max_bytes=1000)
    cache.put("a", np.zeros(600, np.uint8))
    cache.put("b", np.zeros(600, np.uint8))
    assert "a" not in cache and cache.stats().evictions == 1
    ```
    """

    def __init__(self, *, max_bytes: int):
        if max_bytes < 0:
            raise ArgumentError(f"max_bytes is {max_bytes}; it must not be negative.")
        self.max_bytes = max_bytes
        self._items: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._bytes = self._hits = self._misses = self._evictions = self._refusals = 0

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value under `key`, which is now the most recently used; else `default`."""
        with self._lock:
            if key not in self._items:
                self._misses += 1
                return default
            self._hits += 1
            self._items.move_to_end(key)
            return self._items[key][0]

    def put(self, key: Hashable, value: Any, *, nbytes: int | None = None) -> bool:
        """Keep `value` under `key`; is it kept? Not if it is larger than the whole cache."""
        size = _size(value) if nbytes is None else nbytes
        if size < 0:
            raise ArgumentError(f"nbytes is {size}; it must not be negative.")
        with self._lock:
            self._remove(key)
            if size > self.max_bytes:
                self._refusals += 1
                return False
            while self._bytes + size > self.max_bytes:
                self._remove(next(iter(self._items)))
                self._evictions += 1
            self._items[key] = value, size
            self._bytes += size
            return True

    def drop(self, key: Hashable) -> None:
        """Forget what is under `key`, if anything is."""
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        """Forget everything; the counts of `stats` stay."""
        with self._lock:
            self._items.clear()
            self._bytes = 0

    def stats(self) -> CacheStats:
        """What the cache holds and how it did so far."""
        with self._lock:
            return CacheStats(
                items=len(self._items),
                bytes=self._bytes,
                hits=self._hits,
                misses=self._misses,
                evictions=self._evictions,
                refusals=self._refusals,
            )

    @property
    def bytes(self) -> int:
        """Bytes of all values; never more than `max_bytes`."""
        with self._lock:
            return self._bytes

    def __len__(self) -> int:
        with self._lock:
            return len(self._items)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._items

    def _remove(self, key: Hashable) -> None:
        if key in self._items:
            self._bytes -= self._items.pop(key)[1]


def _size(value: Any) -> int:
    return sum(
        leaf.nbytes
        if isinstance(leaf, jax.Array | np.ndarray | np.generic)
        else sys.getsizeof(leaf)
        for leaf in jax.tree.leaves(value)
    )
