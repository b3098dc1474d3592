from __future__ import annotations

import threading
from collections import OrderedDict

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

from worldloom import store

steps = st.lists(
    st.tuples(st.sampled_from(["get", "put", "drop"]), st.integers(0, 5), st.integers(0, 12)),
    max_size=60,
)


@given(limit=st.integers(0, 20), steps=steps)
def test_it_does_what_a_plain_model_does(limit: int, steps):
    cache = store.LRUCache(max_bytes=limit)
    model: OrderedDict[int, int] = OrderedDict()
    hits = misses = evictions = refusals = 0
    for action, key, size in steps:
        if action == "get":
            assert cache.get(key, "none") == model.get(key, "none")
            hits, misses = hits + (key in model), misses + (key not in model)
            if key in model:
                model.move_to_end(key)
        elif action == "drop":
            cache.drop(key)
            model.pop(key, None)
        else:
            model.pop(key, None)
            assert cache.put(key, size, nbytes=size) == (size <= limit)
            refusals += size > limit
            if size <= limit:
                while sum(model.values()) + size > limit:
                    model.popitem(last=False)
                    evictions += 1
                model[key] = size
        assert cache.bytes == sum(model.values()) <= limit
        assert len(cache) == len(model)
        assert all((key in cache) == (key in model) for key in range(6))
    expected = store.CacheStats(len(model), sum(model.values()), hits, misses, evictions, refusals)
    assert cache.stats() == expected


def test_what_was_used_last_stays():
    cache = store.LRUCache(max_bytes=2)
    cache.put("a", 1, nbytes=1)
    cache.put("b", 2, nbytes=1)
    assert cache.get("a") == 1
    cache.put("c", 3, nbytes=1)
    assert "a" in cache
    assert "b" not in cache


def test_the_size_of_a_value_is_that_of_its_arrays():
    cache = store.LRUCache(max_bytes=10_000)
    cache.put("a", {"x": np.zeros(100), "y": [jnp.zeros(10), np.float32(1)]})
    assert cache.bytes == 800 + 40 + 4
    cache.put("text", "x" * 1000)
    assert 844 + 1000 < cache.bytes < 844 + 1100


def test_clear_forgets_the_values_and_keeps_the_counts():
    cache = store.LRUCache(max_bytes=10)
    cache.put("a", 1, nbytes=10)
    cache.put("b", 1, nbytes=10)
    cache.clear()
    assert len(cache) == cache.bytes == 0
    assert cache.stats().evictions == 1
    assert cache.put("c", 1, nbytes=10)


def test_an_item_too_large_pushes_nothing_out_but_replaces_its_own():
    cache = store.LRUCache(max_bytes=10)
    cache.put("a", "old", nbytes=4)
    cache.put("b", "stays", nbytes=4)
    assert not cache.put("a", "new", nbytes=11)
    assert "a" not in cache
    assert cache.get("b") == "stays"
    assert cache.stats().refusals == 1


def test_sizes_must_not_be_negative():
    with pytest.raises(store.ArgumentError, match="max_bytes is -1"):
        store.LRUCache(max_bytes=-1)
    with pytest.raises(store.ArgumentError, match="nbytes is -1"):
        store.LRUCache(max_bytes=1).put("a", 1, nbytes=-1)


def test_the_limit_holds_with_many_threads():
    cache = store.LRUCache(max_bytes=1000)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for key, size in rng.integers(0, 300, (2000, 2)).tolist():
            cache.put(key, size, nbytes=size)
            if (found := cache.get(key)) is not None and not 0 <= found < 300:
                wrong.append(found)
            if (total := cache.bytes) > 1000:
                wrong.append(total)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    stats = cache.stats()
    assert stats.hits + stats.misses == 8000
    assert sum(cache.get(key, 0) for key in range(300)) == cache.bytes
