from __future__ import annotations

import functools
import logging
import threading

import hypothesis
import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import all_worlds

from worldloom import watch


@pytest.fixture(autouse=True)
def _clean():
    watch.reset_statistics()


class Seen:
    """A callback that remembers what it was given."""

    def __init__(self):
        self.calls = []

    def __call__(self, *args):
        self.calls.append(args)

    def __len__(self):
        return len(self.calls)


def finish(value):
    jax.block_until_ready(value)
    jax.effects_barrier()
    return value


def steps(body, length=100):
    """A compiled scan of `body(x, t) -> x`."""

    @jax.jit
    def program(x):
        return jax.lax.scan(lambda x, t: (body(x, t), None), x, jnp.arange(length))[0]

    return program


# What arrives.


def test_arrays_arrive_as_numpy_and_the_rest_as_it_is():
    seen = Seen()
    sentinel = object()

    @jax.jit
    def program(x):
        tree = {"x": x, "none": None, "title": "grid"}
        watch.callback(seen, tree, 3, sentinel, np.arange(2), jax.random.key(5))
        return x

    finish(program(jnp.arange(3.0)))
    ((tree, three, same, constant, key),) = seen.calls
    assert type(tree["x"]) is np.ndarray
    assert np.array_equal(tree["x"], [0, 1, 2])
    assert (tree["none"], tree["title"], three) == (None, "grid", 3)
    assert type(three) is int
    assert same is sentinel
    assert np.array_equal(constant, [0, 1])
    assert np.array_equal(key, jax.random.key_data(jax.random.key(5)))


def test_what_a_callback_keeps_does_not_change_later():
    seen = Seen()
    finish(steps(lambda x, t: (watch.callback(seen, x), x + 1)[1], 50)(jnp.zeros(1000)))
    assert [call[0][0] for call in seen.calls] == list(range(50))
    assert all((call[0] == i).all() for i, call in enumerate(seen.calls))


def test_outside_of_jit_it_is_a_plain_call():
    seen = Seen()
    watch.callback(seen, jnp.float32(2.0), when=True)
    watch.callback(seen, jnp.float32(3.0), when=False)
    jax.vmap(functools.partial(watch.callback, seen))(jnp.arange(3.0))
    assert [float(x) for (x,) in seen.calls] == [2.0, 0.0, 1.0, 2.0]


# It cannot break the program.


def explode(*_):
    raise RuntimeError("the disk is full")


@pytest.mark.parametrize("world", all_worlds(), ids=lambda world: world.name)
def test_results_are_the_same_bits_whether_it_raises_or_not(world, caplog):
    def run(func):
        @jax.jit
        def program(state, inputs):
            def body(state, x):
                state, out = world.step(state, x)
                watch.callback(func, state, out, name="look")
                return state, out

            return jax.lax.scan(body, state, inputs)

        inputs = jnp.arange(world.length) if world.inputs is None else jnp.asarray(world.inputs)
        return finish(program(world.state, inputs))

    quiet = run(lambda *_: None)
    watch.reset_statistics()
    loud = run(explode)
    assert watch.statistics()["look"]["error_count"] == world.length
    for a, b in zip(jax.tree.leaves(quiet), jax.tree.leaves(loud), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_failures_are_counted_and_logged_once_with_their_traceback(caplog):
    program = steps(lambda x, t: (watch.callback(explode, x, name="boom"), x)[1], 20)
    with caplog.at_level(logging.ERROR):
        finish(program(jnp.zeros(3)))
    (record,) = caplog.records
    assert record.name == "worldloom.watch"
    assert "'boom'" in record.getMessage()
    assert "the disk is full" in caplog.text
    assert "in explode" in caplog.text
    row = watch.statistics()["boom"]
    assert (row["total_calls"], row["error_count"]) == (20, 20)
    watch.reset_statistics()
    with caplog.at_level(logging.ERROR):
        finish(program(jnp.zeros(3)))
    assert len(caplog.records) == 2


def test_one_bad_world_does_not_silence_the_others():
    seen = []

    def func(x):
        if x == 1:
            raise ValueError("bad world")
        seen.append(float(x))

    finish(jax.jit(jax.vmap(functools.partial(watch.callback, func)))(jnp.arange(4.0)))
    assert seen == [0.0, 2.0, 3.0]


def test_a_callback_may_use_jax():
    results = []

    def func(x):
        results.append(float(jnp.linalg.norm(jnp.asarray(x) @ jnp.ones((3, 3)))))

    def body(x, t):
        watch.callback(func, x, batched=True)
        return x + 1

    program = steps(lambda x, t: jax.vmap(body, in_axes=(0, None))(x, t), 10)
    finish(program(jnp.ones((4, 3))))
    assert len(results) == 10
    assert watch.statistics()["func"]["error_count"] == 0


# When it is called.


def test_the_device_decides():
    seen = Seen()
    program = steps(lambda x, t: (watch.callback(seen, t, step=t, every=30), x)[1])
    finish(program(jnp.zeros(3)))
    assert [int(t) for (t,) in seen.calls] == [0, 30, 60, 90]
    row = watch.statistics()["Seen"]
    assert (row["total_calls"], row["skipped"]) == (4, 0)


def test_a_traced_period_never_recompiles():
    seen = Seen()
    traces = []

    @jax.jit
    def program(x, every):
        traces.append(None)

        def body(x, t):
            watch.callback(seen, x, step=t, every=every)
            return x + 1, None

        return jax.lax.scan(body, x, jnp.arange(100))[0]

    for every, calls in ((1, 100), (7, 15), (100, 1), (1000, 1)):
        seen.calls.clear()
        finish(program(jnp.float32(0), jnp.int32(every)))
        assert len(seen) == calls
    assert len(traces) == 1


@hypothesis.given(hnp.arrays(bool, (3, 4)))
def test_under_vmap_exactly_the_due_worlds_are_called(due):
    SEEN.calls.clear()
    finish(DUE_WORLDS(jnp.asarray(due), jnp.arange(12).reshape(3, 4)))
    assert sorted(int(i) for (i,) in SEEN.calls) == list(np.flatnonzero(due))


SEEN = Seen()
DUE_WORLDS = jax.jit(jax.vmap(jax.vmap(lambda due, i: (watch.callback(SEEN, i, when=due), i)[1])))


def test_under_vmap_a_call_that_is_not_due_never_reaches_the_host(monkeypatch):
    reached = []
    from worldloom.watch import _callback

    original = _callback._Site.__call__
    monkeypatch.setattr(
        _callback._Site, "__call__", lambda *args: (reached.append(None), original(*args))[1]
    )
    seen = Seen()

    @jax.vmap
    def each(x, i):
        watch.callback(seen, x, when=i == 7)
        return x

    program = steps(lambda x, t: each(x, jnp.full(5, t)), 50)
    finish(program(jnp.zeros(5)))
    assert len(reached) == 1
    assert len(seen) == 5


def test_batched_is_one_call_with_the_axes_of_all_worlds():
    seen = Seen()
    shared = jnp.arange(3.0)

    def one(x, i):
        watch.callback(seen, x, i, shared, "title", when=i == 2, batched=True)
        return x

    finish(jax.jit(jax.vmap(jax.vmap(one)))(jnp.ones((2, 4, 5)), jnp.arange(8).reshape(2, 4)))
    ((x, i, repeated, title),) = seen.calls
    assert x.shape == (2, 4, 5)
    assert np.array_equal(i, np.arange(8).reshape(2, 4))
    assert repeated.shape == (2, 4, 3)
    assert np.array_equal(repeated[1, 3], shared)
    assert title == "title"


def test_axes_of_a_vmap_that_is_not_the_first_axis():
    seen = Seen()
    x = jnp.arange(6.0).reshape(2, 3)
    finish(jax.jit(jax.vmap(functools.partial(watch.callback, seen), in_axes=1))(x))
    assert np.array_equal(np.stack([x for (x,) in seen.calls]), x.T)


def test_gradients_pass_by():
    seen = Seen()

    def loss(x, look):
        def body(x, t):
            if look:
                watch.callback(seen, x, step=t, every=2)
            return x * 1.1, None

        return jnp.sum(jax.lax.scan(jax.checkpoint(body), x, jnp.arange(4))[0] ** 2)

    grad = jax.jit(jax.grad(loss), static_argnums=1)
    assert np.array_equal(finish(grad(jnp.ones(3), True)), grad(jnp.ones(3), False))
    assert len(seen) >= 2


def test_a_callback_whose_arguments_nobody_else_needs_is_kept():
    seen = Seen()

    def func(x):
        watch.callback(seen, jnp.sin(x))
        return jnp.sum(x)

    finish(jax.jit(func)(jnp.ones(3)))
    finish(jax.jit(jax.grad(func))(jnp.ones(3)))
    finish(jax.jit(jax.hessian(func))(jnp.ones(3)))
    assert len(seen) == 3


def test_two_devices_make_one_call():
    seen = Seen()
    mesh = jax.make_mesh((2,), ("worlds",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.arange(8.0), jax.NamedSharding(mesh, jax.P("worlds")))
    rate = watch.Rate(budget_ms=1000.0)
    look = functools.partial(watch.callback, seen, batched=True)
    finish(jax.jit(jax.vmap(look))(x))
    finish(jax.jit(jax.vmap(functools.partial(look, rate=rate)))(x))
    assert len(seen) == 2
    for (got,) in seen.calls:
        assert np.array_equal(got, np.arange(8))


# Names and numbers.


def test_statistics():
    import time

    def slow(x):
        time.sleep(0.002)

    finish(steps(lambda x, t: (watch.callback(slow, x), x)[1], 5)(jnp.zeros(2)))
    row = watch.statistics()["slow"]
    assert row["total_calls"] == 5
    assert row["error_count"] == 0
    assert 2 <= row["min_time_ms"] <= row["avg_time_ms"] <= row["max_time_ms"]
    assert row["total_time_ms"] == pytest.approx(5 * row["avg_time_ms"])
    watch.reset_statistics()
    assert watch.statistics() == {}


def test_names():
    watch.callback(functools.partial(explode, 1), jnp.ones(1), when=False)
    watch.callback(functools.partial(functools.partial(max, 1), 2), jnp.float32(1))
    watch.callback(Seen(), jnp.ones(1))
    watch.callback(Seen(), jnp.ones(1), name="mine")
    watch.callback(Seen().__call__, jnp.ones(1))
    watch.callback(lambda x: None, jnp.ones(1))
    names = list(watch.statistics())
    assert names[:-1] == ["max", "Seen", "mine", "Seen.__call__"]
    assert names[-1].startswith("<lambda> at test_callback.py:")


def test_statistics_are_safe_to_use_from_many_threads():
    def work():
        for _ in range(200):
            watch.callback(lambda x: None, x, name="shared")

    x = jnp.ones(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watch.statistics()["shared"]["total_calls"] == 800


def test_the_table_has_a_row_for_each_callback(capsys):
    watch.callback(lambda x: None, jnp.ones(1), name="first look")
    watch.callback(explode, jnp.ones(1), name="second look")
    watch.print_statistics()
    printed = capsys.readouterr().out
    assert "first look" in printed
    assert "second look" in printed


def test_wrong_use_is_named():
    x = jnp.ones(1)
    for options in ({"step": 3}, {"every": 3}):
        with pytest.raises(watch.CallbackError, match="step and every belong together"):
            watch.callback(explode, x, **options)
    with pytest.raises(watch.CallbackError, match="every is 0"):
        watch.callback(explode, x, step=3, every=0)
