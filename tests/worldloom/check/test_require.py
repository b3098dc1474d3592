from __future__ import annotations

import contextlib
import gc
import logging

import equinox as eqx
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import vortex_world

from worldloom import check
from worldloom.check import _report

WORLDS = 6
XLA_ERRORS = (jax.errors.JaxRuntimeError, ValueError)


@pytest.fixture(autouse=True)
def _raise_mode():
    _report._logged.clear()
    with check.using("raise"):
        yield


def positive(x):
    return check.require(x > 0, x, "must be positive")


@jax.jit
def positive_each(x):
    return jax.vmap(positive)(x)


@jax.jit
def positive_array(x):
    return positive(x)


@jax.jit
def positive_nested(x):
    return jax.vmap(jax.vmap(positive))(x)


BAD = jnp.array([1.0, -2.0, 3.0, -4.0])


# Exactly the failing worlds.


def bits(x):
    return np.asarray(x).view(np.uint32)


@hypothesis.given(
    hnp.arrays(np.float32, WORLDS, elements=st.floats(width=32)),
    hnp.arrays(bool, WORLDS),
)
@pytest.mark.parametrize("shape", [(WORLDS,), (2, 3)])
@pytest.mark.parametrize("how", ["vmap", "array"])
def test_exactly_the_failing_worlds_turn_nan(shape, how, values, good):
    program = PROGRAMS[how, len(shape)]
    values, good = values.reshape(shape), good.reshape(shape)
    with check.using("off"):
        expected = program(good, values)
    with check.using("nan"):
        actual = program(good, values)
    assert np.array_equal(np.isnan(actual[0])[~good], np.ones((~good).sum(), bool))
    assert np.isnan(actual[1][~good]).all()
    for got, want in zip(actual, expected, strict=True):
        assert np.array_equal(bits(got)[good], bits(want)[good])


def _guarded(good, x):
    value = {"position": x, "pair": jnp.stack([x, x], axis=-1)}
    value = check.require(good, value, "must be good")
    return value["position"] * 2, value["pair"]


PROGRAMS = {
    ("vmap", 1): jax.jit(jax.vmap(_guarded)),
    ("vmap", 2): jax.jit(jax.vmap(jax.vmap(_guarded))),
    ("array", 1): jax.jit(_guarded),
    ("array", 2): jax.jit(_guarded),
}


# The same everywhere.


@pytest.mark.parametrize(
    "program",
    [positive, jax.vmap(positive), positive_array, positive_each],
    ids=["bare", "bare vmap", "jit", "jit vmap"],
)
def test_the_four_modes(program, monkeypatch):
    opened = []
    monkeypatch.setattr("sys.breakpointhook", lambda: opened.append(True))
    expected = np.array([1.0, np.nan, 3.0, np.nan], np.float32)
    with pytest.raises((check.CheckError, *XLA_ERRORS), match="must be positive"):
        jax.block_until_ready(program(BAD))
    with check.using("off"):
        assert np.array_equal(program(BAD), BAD)
    with check.using("nan"):
        assert np.array_equal(program(BAD), expected, equal_nan=True)
    assert not opened
    with check.using("breakpoint"):
        assert np.array_equal(program(BAD), expected, equal_nan=True)
    assert len(opened) == 1
    assert np.array_equal(program(jnp.abs(BAD)), jnp.abs(BAD))


@pytest.mark.parametrize("program", [positive, jax.vmap(positive)], ids=["plain", "vmap"])
def test_outside_jit_the_error_is_clean(program):
    with pytest.raises(check.CheckError) as caught:
        program(BAD)
    assert caught.value.worlds == ((1,), (3,))
    assert "XLA" not in str(caught.value)


def test_under_jit_our_text_is_in_the_error_and_reraise_frees_it():
    for _ in range(3):  # the first call and later ones take different paths through JAX
        with pytest.raises(XLA_ERRORS, match="must be positive\n  in 2 of 4 worlds: 1, 3") as raw:
            jax.block_until_ready(positive_each(BAD))
        failure = check.failure_in(raw.value)
        assert failure is not None
        assert failure.message == "must be positive"
        with pytest.raises(check.CheckError) as caught, check.reraise():
            jax.block_until_ready(positive_each(BAD))
        assert caught.value.worlds == ((1,), (3,))
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


def test_reraise_leaves_other_errors_alone():
    def broken(x):
        raise ZeroDivisionError("not ours")

    program = jax.jit(lambda x: jax.pure_callback(broken, x, x))
    with pytest.raises(XLA_ERRORS, match="not ours") as raw, check.reraise():
        jax.block_until_ready(program(BAD))
    assert check.failure_in(raw.value) is None
    with pytest.raises(KeyError), check.reraise():
        raise KeyError("host")


def test_jax_does_not_log_our_errors_a_second_time(caplog):
    with pytest.raises(XLA_ERRORS):
        jax.block_until_ready(positive_each(BAD))
    assert not caplog.records


def test_the_message_names_worlds_values_and_the_line():
    with pytest.raises(check.CheckError) as caught, check.reraise():
        jax.block_until_ready(positive_nested(jnp.array([[1.0, 2.0], [-3.0, 4.0]])))
    assert caught.value.worlds == ((1, 0),)
    lines = str(caught.value).splitlines()
    assert lines[0] == "must be positive"
    assert lines[1] == "  in 1 of 4 worlds: (1, 0)"
    assert lines[2] == "  value in world (1, 0) = -3."
    assert "test_require.py" in lines[3]
    assert lines[3].endswith("in positive")


def test_a_long_list_of_worlds_is_cut():
    with pytest.raises(check.CheckError) as caught, check.reraise():
        jax.block_until_ready(positive_each(-jnp.ones(25)))
    assert "in 25 of 25 worlds: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 15 more" in str(caught.value)
    assert caught.value.indices.shape == (25, 1)


def test_a_single_world_has_no_list():
    with pytest.raises(check.CheckError) as caught:
        positive(jnp.float32(-1))
    assert caught.value.worlds == ((),)
    assert "worlds" not in str(caught.value)


def test_a_failure_keeps_no_frames_and_so_no_arrays_alive():
    for _ in range(3):
        with contextlib.suppress(check.CheckError), check.reraise():
            jax.block_until_ready(positive_each(-jnp.ones(7)))
    gc.collect()
    assert not [x for x in gc.get_objects() if isinstance(x, check.CheckError)]


def test_changing_the_mode_compiles_nothing():
    traces = []

    @jax.jit
    def program(x):
        traces.append(None)
        return positive(x)

    for mode in ("nan", "off", "nan", "breakpoint", "off"):
        if mode != "breakpoint":
            with check.using(mode):
                assert np.isnan(program(BAD)).any() == (mode == "nan")
    assert len(traces) == 1
    assert program._cache_size() == 1


def test_one_call_of_the_host_for_a_whole_batch(monkeypatch):
    opened = []
    monkeypatch.setattr("sys.breakpointhook", lambda: opened.append(True))
    with check.using("breakpoint"):
        jax.block_until_ready(positive_nested(-jnp.ones((8, 16))))
        assert len(opened) == 1
        jax.block_until_ready(positive_nested(jnp.ones((8, 16))))
        assert len(opened) == 1


def test_nan_is_logged_once_a_check(caplog):
    with check.using("nan"), caplog.at_level(logging.WARNING, "worldloom.check"):
        for _ in range(3):
            jax.block_until_ready(positive_each(BAD))
    assert [record.name for record in caplog.records] == ["worldloom.check"]
    assert "2 of 4 worlds" in caplog.text


# What passes through.


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint8, jnp.bool_])
def test_a_check_of_integers_is_not_optimised_away(dtype):
    program = jax.jit(lambda x: check.require(x == jnp.zeros_like(x), x, "must be zero"))
    bad = jnp.ones((), dtype)
    with pytest.raises(check.CheckError), check.reraise():
        jax.block_until_ready(program(bad))
    with check.using("nan"):
        assert program(bad) == bad
        assert program(bad).dtype == dtype


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.complex64])
def test_every_inexact_dtype_has_a_nan(dtype):
    with check.using("nan"):
        out = jax.jit(lambda x: check.require(jnp.real(x) > 0, x, "positive"))(jnp.ones(2, dtype))
        assert out.dtype == dtype
        out = jax.jit(lambda x: check.require(jnp.real(x) < 0, x, "negative"))(jnp.ones(2, dtype))
        assert out.dtype == dtype
        assert np.isnan(np.asarray(out).astype(np.complex64)).all()


def test_any_pytree_comes_back_whole():
    class State(eqx.Module):
        x: jax.Array
        count: jax.Array
        key: jax.Array
        name: str
        size: int

    def guard(ok, state):
        return check.require(ok, state, "not ok")

    state = State(jnp.ones(3), jnp.arange(3), jax.random.key(1), "grid", 7)
    with check.using("nan"):
        out = eqx.filter_jit(guard)(jnp.array(False), state)
    assert np.isnan(out.x).all()
    assert np.array_equal(out.count, np.arange(3))
    assert jnp.array_equal(jax.random.key_data(out.key), jax.random.key_data(state.key))
    assert (out.name, out.size) == ("grid", 7)


def test_an_unmapped_value_or_predicate_is_shared_by_all_worlds():
    with check.using("nan"):
        out = jax.jit(jax.vmap(lambda ok: check.require(ok, jnp.ones(2), "own")))(BAD > 0)
        assert np.array_equal(np.isnan(out), [[False] * 2, [True] * 2] * 2)
        program = jax.jit(lambda ok, x: jax.vmap(lambda y: check.require(ok, y, "shared"))(x))
        assert np.isnan(program(jnp.array(False), BAD)).all()
    with pytest.raises(check.CheckError, match="4 of 4 worlds"), check.reraise():
        jax.block_until_ready(program(jnp.array(False), BAD))


# Inside other transformations.


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["bare", "jit"])
def test_the_derivative_is_that_of_the_identity(wrap):
    def loss(x):
        return jnp.sum(jax.vmap(positive)(x) ** 2)

    x = jnp.abs(BAD)
    assert np.array_equal(wrap(jax.grad(loss))(x), 2 * x)
    with check.using("nan"):
        gradient = wrap(jax.grad(loss))(BAD)
    assert np.array_equal(np.isnan(gradient), BAD < 0)
    assert np.array_equal(gradient[BAD > 0], 2 * BAD[BAD > 0])


def test_gradients_through_a_checkpointed_scan():
    def loss(x, check_it):
        def body(x, _):
            x = x * 1.5
            return (positive(x) if check_it else x), None

        return jnp.sum(jax.lax.scan(jax.checkpoint(body), x, length=4)[0] ** 2)

    grad = jax.jit(jax.grad(loss), static_argnums=1)
    x = jnp.abs(BAD)
    assert np.array_equal(grad(x, True), grad(x, False))
    with pytest.raises(check.CheckError), check.reraise():
        jax.block_until_ready(grad(BAD, True))


def test_scan_and_while_stop_at_the_step_that_fails():
    @jax.jit
    def scan(x):
        return jax.lax.scan(lambda x, _: (jax.vmap(positive)(x - 1), None), x, length=5)[0]

    @jax.jit
    def loop(x):
        return jax.lax.fori_loop(0, 5, lambda _, x: positive(x - 1), x)

    with pytest.raises(check.CheckError, match="1 of 2 worlds: 0") as caught, check.reraise():
        jax.block_until_ready(scan(jnp.array([3.0, 9.0])))
    assert caught.value.worlds == ((0,),)
    with pytest.raises(check.CheckError, match=r"value = 0\."), check.reraise():
        jax.block_until_ready(loop(jnp.float32(3.0)))
    with check.using("nan"):
        assert np.array_equal(scan(jnp.array([3.0, 9.0])), [np.nan, 4.0], equal_nan=True)


def test_a_branch_that_is_not_taken_does_not_check():
    @jax.jit
    def program(x):
        return jax.lax.cond(
            x > 0, lambda: x, lambda: check.require(False, x, "only positive is implemented")
        )

    assert program(jnp.float32(2.0)) == 2.0
    with pytest.raises(check.CheckError), check.reraise():
        jax.block_until_ready(program(jnp.float32(-2.0)))


def test_a_batch_over_two_devices():
    mesh = jax.make_mesh((2,), ("worlds",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(BAD, jax.NamedSharding(mesh, jax.P("worlds")))
    with check.using("nan"):
        out = positive_each(x)
    assert np.array_equal(np.isnan(out), BAD < 0)
    with pytest.raises(check.CheckError, match="2 of 4 worlds: 1, 3"), check.reraise():
        jax.block_until_ready(positive_each(x))


def test_a_particle_that_leaves_turns_nan_alone():
    world = vortex_world(worlds=5, length=20)
    radius = 1.6

    @jax.jit
    def run(state):
        def body(state, t):
            state, r = world.step(state, t)
            position = check.require(r < radius, state.position, "a particle left the disc")
            return eqx.tree_at(lambda s: s.position, state, position), r

        return jax.lax.scan(body, state, jnp.arange(world.length))[0]

    start = np.hypot(*np.asarray(world.state.position).T)
    with check.using("nan"):
        end = run(world.state)
    assert np.array_equal(np.isnan(end.position).all(axis=1), start > radius)
    with check.using("off"):
        free = run(world.state)
    inside = start < radius
    assert np.array_equal(end.position[inside], free.position[inside])


# Wrong use.


def test_wrong_use_is_named():
    with pytest.raises(check.CheckUsageError, match=r"pred has shape \(2,\).*value\['x'\].*\(3,\)"):
        check.require(jnp.array([True, False]), {"x": jnp.ones(3)}, "shape")
    with pytest.raises(check.CheckUsageError, match="holds no array"):
        jax.jit(lambda x: check.require(x > 0, 3.0, "nothing to hang on"))(BAD)
    with pytest.raises(check.CheckUsageError, match="dtype float32"):
        check._require._as_boolean(jnp.float32(1.0))


def test_integers_may_have_another_shape_than_the_predicate():
    value = {"x": jnp.ones(4), "count": jnp.int32(3)}
    with check.using("nan"):
        out = jax.jit(lambda ok: check.require(ok, value, "some"))(BAD > 0)
    assert np.array_equal(np.isnan(out["x"]), BAD < 0)
    assert out["count"] == 3


def test_python_values_are_checked_outside_a_program():
    assert check.require(True, 3, "fine") == 3
    with pytest.raises(check.CheckError, match="too small"):
        check.require(False, 3, "too small")
