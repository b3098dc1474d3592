from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from worldloom import store


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Makes a new array each time, and counts."""

    def __init__(self):
        self.calls = 0

    def __call__(self) -> np.ndarray:
        self.calls += 1
        return np.full(3, self.calls)


def test_it_loads_once_and_only_when_asked():
    source = Source()
    loader = store.LazyLoader(source)
    assert not loader.loaded
    assert source.calls == 0
    assert loader.get() is loader.get()
    assert loader.loaded
    assert source.calls == 1
    loader.drop()
    assert not loader.loaded
    assert loader.get().tolist() == [2, 2, 2]


def test_it_drops_what_nobody_uses():
    clock, source = Clock(), Source()
    loader = store.LazyLoader(source, max_idle_time=10.0, clock=clock)
    loader.get()
    clock.now += 9
    loader.get()  # use counts
    clock.now += 9
    assert loader.loaded  # asking does not
    assert not loader.sweep()
    clock.now += 2
    assert loader.sweep()
    assert not loader.sweep()
    assert not loader.loaded
    loader.get()
    clock.now += 11
    assert not loader.loaded
    loader.get()
    clock.now += 11
    assert loader.get().tolist() == [4, 4, 4]
    assert source.calls == 4


def test_what_is_dropped_is_freed():
    loader = store.LazyLoader(Source())
    reference = weakref.ref(loader.get())
    assert reference() is not None
    loader.drop()
    gc.collect()
    assert reference() is None


def test_a_value_may_be_none():
    calls: list[int] = []
    loader = store.LazyLoader(lambda: calls.append(1))
    assert loader.get() is None
    assert loader.get() is None
    assert loader.loaded
    assert len(calls) == 1


def test_without_a_limit_it_never_drops():
    clock = Clock()
    loader = store.LazyLoader(Source(), clock=clock)
    loader.get()
    clock.now += 1e9
    assert loader.loaded


def test_a_failed_load_is_tried_again():
    attempts = iter([ValueError("no"), 5])

    def load() -> int:
        result = next(attempts)
        if isinstance(result, Exception):
            raise result
        return result

    loader = store.LazyLoader(load)
    with pytest.raises(ValueError, match="no"):
        loader.get()
    assert not loader.loaded
    assert loader.get() == 5


def test_many_threads_load_once():
    source, start = Source(), threading.Event()

    def slow() -> np.ndarray:
        start.wait(10)
        return source()

    loader = store.LazyLoader(slow)
    with ThreadPoolExecutor(8) as pool:
        results = [pool.submit(loader.get) for _ in range(8)]
        assert not loader.loaded  # does not wait for the load
        start.set()
        assert len({id(result.result()) for result in results}) == 1
    assert source.calls == 1


def test_the_idle_time_must_be_positive():
    for bad in (0.0, -1.0, float("nan")):
        with pytest.raises(store.ArgumentError, match="max_idle_time"):
            store.LazyLoader(Source(), max_idle_time=bad)
