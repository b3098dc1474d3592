"""Limits are kept, values are loaded once, and nothing stays when the manager goes."""

from __future__ import annotations

import contextlib
import gc
from pathlib import Path

import numpy as np
import pytest

from jaxarc.utils import visualization as viz
from worldloom import store


def loader_of(size: int, log: list | None = None) -> viz.LazyLoader:
    def load():
        if log is not None:
            log.append(size)
        return {"data": np.zeros(size, np.uint8)}

    return viz.LazyLoader(load)


def current(manager: viz.MemoryManager) -> float:
    return manager.get_memory_report()["monitor_stats"]["current_mb"]


def test_a_loader_loads_once_and_goes_with_its_manager():
    log: list = []
    with viz.MemoryManager(max_total_memory_mb=100.0) as manager:
        loader = loader_of(4_000_000, log)
        manager.register_lazy_loader(loader)
        assert current(manager) == 0
        assert loader.get() is loader.get()
        assert log == [4_000_000]
        assert current(manager) == 4.0
    assert not loader.loaded
    assert current(manager) == 0
    assert manager.get_memory_report()["monitor_stats"]["peak_mb"] == 4.0


def test_the_limit_is_kept_and_the_oldest_goes_first():
    manager = viz.MemoryManager(max_total_memory_mb=3.0, max_cache_mb=0.0)
    first, second, third = (loader_of(1_200_000) for _ in range(3))
    for loader in (first, second, third):
        manager.register_lazy_loader(loader)
    first.get()
    second.get()
    first.get()  # used again, so that the second is the oldest
    third.get()
    assert (first.loaded, second.loaded, third.loaded) == (True, False, True)
    assert current(manager) == pytest.approx(2.4)
    assert second.get()["data"].nbytes == 1_200_000  # loaded anew
    assert current(manager) <= 3.0


def test_a_value_larger_than_the_limit_is_handed_out_and_not_kept():
    manager = viz.MemoryManager(max_total_memory_mb=1.0)
    large = loader_of(5_000_000)
    manager.register_lazy_loader(large)
    assert large.get()["data"].nbytes == 5_000_000
    assert not large.loaded
    assert current(manager) == 0


def test_a_loader_that_nobody_holds_is_forgotten():
    manager = viz.MemoryManager(max_total_memory_mb=10.0)
    loader = loader_of(1_000_000)
    manager.register_lazy_loader(loader)
    loader.get()
    del loader
    gc.collect()
    assert current(manager) == 0
    assert manager.get_memory_report()["lazy_loaders"]["registered"] == 0


def test_cleanup_says_what_it_freed():
    manager = viz.MemoryManager(max_total_memory_mb=10.0)
    manager.cache.put("picture", np.zeros(500_000, np.uint8))
    loader = loader_of(1_000_000)
    loader.get()
    manager.register_lazy_loader(loader)  # what it holds already counts too
    done = manager.cleanup_memory()
    assert (done["freed_mb"], done["cache_items_dropped"], done["loaders_dropped"]) == (1.5, 1, 1)
    assert current(manager) == 0


def test_the_cache_evicts_what_was_not_used():
    manager = viz.MemoryManager(max_total_memory_mb=5.0, max_cache_mb=1.0)
    for k in range(5):
        manager.cache.put(k, np.zeros(400_000, np.uint8))
    assert [k for k in range(5) if k in manager.cache] == [3, 4]
    assert manager.get_memory_report()["cache_stats"]["evictions"] == 3


def test_collection_is_tuned_inside_and_as_before_outside():
    before = gc.get_threshold()
    with contextlib.suppress(KeyError), viz.MemoryManager():
        inside = gc.get_threshold()
        raise KeyError
    assert gc.get_threshold() == before != inside


def test_impossible_limits_are_named():
    with pytest.raises(viz.MemoryLimitError, match="max_total_memory_mb is -1"):
        viz.MemoryManager(max_total_memory_mb=-1)
    with pytest.raises(viz.MemoryLimitError, match="max_cache_mb is 9"):
        viz.MemoryManager(max_total_memory_mb=5, max_cache_mb=9)
    with pytest.raises(TypeError, match="LazyLoader"):
        viz.MemoryManager().register_lazy_loader(store.LazyLoader(list))  # pyright: ignore


def test_the_manager_of_the_process():
    manager = viz.get_memory_manager()
    assert manager is viz.get_memory_manager()
    assert manager.get_memory_report()["monitor_stats"]["limit_mb"] == 500.0
    assert manager.cache.max_bytes == 100_000_000


def test_a_file_is_loaded_when_it_is_needed(tmp_path: Path):
    path = tmp_path / "grids"
    loader = viz.create_lazy_visualization_loader(path, Path.read_bytes, max_idle_time=300.0)
    with pytest.raises(FileNotFoundError):
        loader.get()
    path.write_bytes(b"abc")
    assert loader.get() == b"abc"
    assert loader in viz.get_memory_manager()._loaders


def test_doors_lead_to_the_engine():
    assert viz.CompressedStorage is store.CompressedStorage
    assert viz.optimize_array_memory is store.smallest_dtype
    assert issubclass(viz.LazyLoader, store.LazyLoader)
