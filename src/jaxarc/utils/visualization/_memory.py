"""Memory of what is kept for looking at: one manager, its limits, lazy loaders."""

from __future__ import annotations

import functools
import gc
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from jaxarc.utils.visualization._settings import MemorySettings
from worldloom import store, watch
from worldloom._errors import WorldloomError

T = TypeVar("T")
MB = 1_000_000
_TUNED = (20_000, 20, 50)  # collect rarely: arrays are freed by counting references


class MemoryLimitError(WorldloomError, ValueError):
    """A limit that no memory can keep."""


class LazyLoader(store.LazyLoader[T]):
    """A value that is loaded when it is first needed; see `worldloom.store.LazyLoader`.

    A manager that it is registered with lets it go when memory is short.

    ```python
    from jaxarc.utils.visualization import LazyLoader

    loader = LazyLoader(lambda: list(range(1000)))
    assert loader.get()[5] == 5
    ```
    """

    _manager: Callable[[], MemoryManager | None] = staticmethod(lambda: None)

    def get(self) -> T:
        """The value, loaded now if it is not there."""
        value = super().get()
        manager = self._manager()
        if manager is not None:
            manager._keep(self, value)
        return value


class MemoryManager:
    """Keeps what is cached and what is loaded within limits; cleans up at the end of `with`.

    It counts what it manages: the arrays in its cache and in its lazy loaders. Beside these the
    report has the whole process and the devices, over which it has no power.

    **Arguments:**

    - `max_total_memory_mb`: for the cache and all loaders together. The value that was not used
      for longest goes first; one that alone is larger is handed out and not kept.
    - `max_cache_mb`: of that, for `cache`; by default a fifth, at most 100.

    ```python
    import numpy as np
    from jaxarc.utils.visualization import LazyLoader, MemoryManager

    with MemoryManager(max_total_memory_mb=100.0) as manager:
        loader = LazyLoader(lambda: np.zeros(1_000_000, np.uint8))
        manager.register_lazy_loader(loader)
        loader.get()
        assert manager.get_memory_report()["monitor_stats"]["current_mb"] == 1.0
    assert not loader.loaded
    ```
    """

    def __init__(
        self, max_total_memory_mb: float | int = 500.0, max_cache_mb: float | int | None = None
    ):
        if not 0 < max_total_memory_mb < float("inf"):
            raise MemoryLimitError(
                f"max_total_memory_mb is {max_total_memory_mb}; expected a positive number"
            )
        if max_cache_mb is None:
            max_cache_mb = min(100.0, max_total_memory_mb / 5)
        if not 0 <= max_cache_mb <= max_total_memory_mb:
            raise MemoryLimitError(
                f"max_cache_mb is {max_cache_mb}; expected 0 to max_total_memory_mb, "
                f"which is {max_total_memory_mb}"
            )
        self.max_total_memory_mb = max_total_memory_mb
        self.cache = store.LRUCache(max_bytes=int(max_cache_mb * MB))
        self._values = store.LRUCache(max_bytes=int((max_total_memory_mb - max_cache_mb) * MB))
        self._loaders: weakref.WeakSet[LazyLoader[Any]] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._peak = 0
        self._thresholds: tuple[int, int, int] | None = None

    @classmethod
    def of(cls, settings: MemorySettings) -> MemoryManager:
        """A manager with the limits that settings ask for."""
        return cls(settings.max_total_mb, settings.max_cache_mb)

    def __enter__(self) -> MemoryManager:
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*_TUNED)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thresholds is not None
        gc.set_threshold(*self._thresholds)
        self.cleanup_memory()

    def register_lazy_loader(self, loader: LazyLoader[Any]) -> None:
        """Count what this loader holds, and let it go when memory is short."""
        if not isinstance(loader, LazyLoader):
            raise TypeError(f"loader is a {type(loader).__name__}; expected a LazyLoader")
        with self._lock:
            self._loaders.add(loader)
            loader._manager = weakref.ref(self)
        weakref.finalize(loader, self._values.drop, id(loader))
        if loader.loaded:
            loader.get()

    def _keep(self, loader: LazyLoader[Any], value: Any) -> None:
        """Note the use of a loader; drop those for which there is no room any more."""
        with self._lock:
            if self._values.get(id(loader)) is not value:
                self._values.put(id(loader), value)
            self._let_go()
            self._peak = max(self._peak, self._managed())

    def _let_go(self) -> None:
        """Make loaders and the books about them agree."""
        loaders = {id(loader): loader for loader in self._loaders}
        for key, loader in loaders.items():
            if key not in self._values:
                loader.drop()
            elif not loader.loaded:
                self._values.drop(key)

    def _managed(self) -> int:
        return self.cache.bytes + self._values.bytes

    def get_memory_report(self) -> dict[str, dict[str, float]]:
        """What is held now, in MB and in counts.

        - `monitor_stats`: `current_mb` and `peak_mb` of what is managed, `limit_mb`, and
          `process_mb` and `device_mb` of everything.
        - `cache_stats`: items, bytes, hits, misses, evictions, refusals.
        - `lazy_loaders`: how many are `registered`, and how many are `loaded`.
        """
        with self._lock:
            self._let_go()
            stats = self.cache.stats()
            self._peak = max(self._peak, self._managed())
            loaders = list(self._loaders)
            return {
                "monitor_stats": {
                    "current_mb": self._managed() / MB,
                    "peak_mb": self._peak / MB,
                    "limit_mb": float(self.max_total_memory_mb),
                    "process_mb": watch.host_bytes() / MB,
                    "device_mb": watch.device_bytes() / MB,
                },
                "cache_stats": {
                    "items": stats.items,
                    "bytes": stats.bytes,
                    "hits": stats.hits,
                    "misses": stats.misses,
                    "evictions": stats.evictions,
                    "refusals": stats.refusals,
                },
                "lazy_loaders": {
                    "registered": len(loaders),
                    "loaded": sum(loader.loaded for loader in loaders),
                },
            }

    def cleanup_memory(self) -> dict[str, float]:
        """Let go of everything now, and say how much that was."""
        with self._lock:
            freed, items = self._managed(), len(self.cache)
            dropped = sum(loader.loaded for loader in self._loaders)
            self.cache.clear()
            self._values.clear()
            self._let_go()
        return {
            "freed_mb": freed / MB,
            "cache_items_dropped": items,
            "loaders_dropped": dropped,
            "objects_collected": gc.collect(),
        }


@functools.cache
def get_memory_manager() -> MemoryManager:
    """The manager of this process: 500 MB, of them 100 for its cache."""
    return MemoryManager()


def create_lazy_visualization_loader(
    path: str | os.PathLike[str],
    loader: Callable[[Path], T],
    max_idle_time: float | int = 300.0,
) -> LazyLoader[T]:
    """`loader(path)`, called at the first `get`, and dropped when it was not used for a time.

    It is registered with the manager of this process.

    **Arguments:**

    - `max_idle_time`: seconds.

    ```python
    from pathlib import Path
    from jaxarc.utils.visualization import create_lazy_visualization_loader

    Path("notes.txt").write_text("hello")
    notes = create_lazy_visualization_loader("notes.txt", Path.read_text)
    assert notes.get() == "hello"
    ```
    """
    made = LazyLoader(lambda: loader(Path(path)), max_idle_time=float(max_idle_time))
    get_memory_manager().register_lazy_loader(made)
    return made
