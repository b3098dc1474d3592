from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st
from jax.tree_util import Partial

import worldloom as wl
from worldloom import check
from worldloom.loop import _setup
from worldloom.loop._program import chunk


def plain(tree):
    """A pytree as NumPy arrays, keys as their words."""

    def leaf(x):
        is_key = isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(x) if is_key else x)

    return jtu.tree_map(leaf, tree)


def assert_same(a, b):
    jtu.tree_map(np.testing.assert_array_equal, plain(a), plain(b))


def by_scan(world):
    xs = jnp.arange(world.length, dtype=jnp.int32) if world.inputs is None else world.inputs
    return jax.lax.scan(world.step, world.state, xs)


def count(n, t):
    """A world whose state is the number of steps done, and whose output is its square."""
    n = n + 1
    return n, n * n


@pytest.mark.parametrize("world", worlds.all_worlds(), ids=lambda world: world.name)
def test_a_run_is_a_scan_of_its_step(world):
    state, outputs = by_scan(world)
    result = wl.run(world.step, world.state, world.inputs, length=world.length, save=wl.Every())
    jtu.tree_map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-6), plain(state), plain(result.state)
    )
    np.testing.assert_allclose(result.records, outputs, rtol=2e-6)
    assert result.steps == world.length
    assert result.faults == ()


@pytest.mark.parametrize("world", worlds.all_worlds(), ids=lambda world: world.name)
def test_a_second_run_compiles_nothing(world, no_recompile):
    def go():
        return wl.run(world.step, world.state, world.inputs, length=world.length, save=wl.Every(4))

    first = go()
    with no_recompile():
        second = go()
    assert second.compile_seconds == 0
    assert_same(first.records, second.records)


def test_other_lengths_share_one_program(no_recompile):
    wl.run(count, 0, length=36, save=(wl.Every(2), wl.Final(negative)))
    with no_recompile():
        for length in (64, 40, 34):
            assert wl.run(count, 0, length=length, save=(wl.Every(2), wl.Final(negative))).records[
                1
            ].tolist() == [-length]


@given(
    length=st.integers(0, 40),
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    at=st.sets(st.integers(0, 40)),
    initial=st.booleans(),
    chunk_steps=st.none() | st.integers(1, 45),
)
def test_every_record_is_where_it_belongs(length, n, m, at, initial, chunk_steps):
    at = sorted(step for step in at if step <= length)
    save = {
        "outputs": wl.Every(n),
        "states": [wl.Every(m, of=negative, initial=initial)],
        "at": wl.At(at, of=negative),
        "final": wl.Final(negative),
    }
    result = wl.run(count, 0, length=length, save=save, chunk_steps=chunk_steps)
    done = np.arange(1, length + 1)
    assert result.state == length
    assert result.records["outputs"].tolist() == (done[n - 1 :: n] ** 2).tolist()
    assert result.records["states"][0].tolist() == [0] * initial + (-done[m - 1 :: m]).tolist()
    assert result.records["at"].tolist() == [-step for step in at]
    assert result.records["final"].tolist() == [-length]


def negative(n):
    return -n


def test_tiny_buffers_give_the_same_records(monkeypatch):
    world = worlds.vortex_world()
    save = {"radius": wl.Every(), "where": wl.Every(3, of=lambda s: s.position)}
    whole = wl.run(world.step, world.state, length=world.length, save=save)
    monkeypatch.setattr(_setup, "BUFFER_BYTES", 64)
    parts = wl.run(world.step, world.state, length=world.length, save=save)
    assert_same(whole.records, parts.records)
    assert_same(whole.state, parts.state)


def test_inputs_go_to_the_device_in_windows(monkeypatch, tmp_path):
    world = worlds.grid_world(length=50)
    whole = wl.run(world.step, world.state, world.inputs, length=50, save=wl.Every())
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.int32, world.inputs.shape)
    mapped[:] = world.inputs
    monkeypatch.setattr(_setup, "BUFFER_BYTES", 7 * world.inputs[0].nbytes)
    sizes = []
    put = jax.device_put
    monkeypatch.setattr(
        jax, "device_put", lambda x, *a, **k: sizes.append(len(x)) or put(x, *a, **k)
    )
    windows = wl.run(world.step, world.state, mapped, length=50, save=wl.Every())
    assert_same(whole.records, windows.records)
    assert set(sizes) == {7}
    assert len(sizes) >= 50 // 7


def test_the_given_state_is_not_touched():
    x = jnp.ones(4)
    wl.run(lambda x, t: (x + 1, None), x, length=3)
    assert x.tolist() == [1, 1, 1, 1]


def test_host_arrays_and_numbers_are_welcome():
    state = {"a": np.zeros(3, np.float32), "b": 1, "c": 2.0}

    def step(s, t):
        return {"a": s["a"] + 1, "b": s["b"] + 1, "c": s["c"] * 0.5}, None

    result = wl.run(step, state, length=3)
    assert result.state["a"].tolist() == [3, 3, 3]
    assert (int(result.state["b"]), float(result.state["c"])) == (4, 0.25)


def test_modules_with_functions_inside_can_be_state():
    model = eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(0))

    def shrink(model, t):
        return jtu.tree_map(lambda x: 0.5 * x if eqx.is_array(x) else x, model), None

    result = wl.run(shrink, model, length=2)
    assert result.state.activation is model.activation
    np.testing.assert_allclose(result.state.layers[0].weight, model.layers[0].weight / 4)


def add(x, t, *, field):
    return x + field[t % 3], None


def test_bound_data_is_an_argument_not_a_constant(no_recompile):
    step = jtu.Partial(add, field=jnp.array([1.0, 10.0, 100.0]))
    assert wl.run(step, jnp.float32(0), length=3).state == 111
    with no_recompile():
        step = jtu.Partial(add, field=jnp.array([2.0, 20.0, 200.0]))
        assert wl.run(step, jnp.float32(0), length=3).state == 222


def test_keys_and_small_floats_can_be_recorded():
    state = {"key": jax.random.key(3), "x": jnp.ones(2, jnp.bfloat16)}
    result = wl.run(lambda s, t: (s, None), state, length=2, save=wl.Every(of=lambda s: s))
    assert result.records["x"].dtype == np.float32
    assert result.records["key"].tolist() == [jax.random.key_data(state["key"]).tolist()] * 2


def worlds_over_two_devices():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("worlds",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("worlds"))


def first_cell_large(state):
    return jtu.tree_leaves(plain_state(state))[0].reshape(6, -1)[:, 0] > 250


@pytest.mark.parametrize(
    "world", [worlds.grid_world(), worlds.vortex_world()], ids=lambda world: world.name
)
def test_worlds_on_two_devices_give_the_same_bits(world):
    def go(state):
        return wl.run(
            world.step,
            state,
            world.inputs,
            length=world.length,
            save={"out": wl.Every(), "all": wl.Every(7, of=plain_state, initial=True)},
            checks={"large": first_cell_large},
        )

    one, two = go(world.state), go(jax.device_put(world.state, worlds_over_two_devices()))
    assert_same(one.records, two.records)
    assert_same(one.state, two.state)
    leaf = jtu.tree_leaves(two.state)[0]
    assert leaf.sharding.is_equivalent_to(worlds_over_two_devices(), leaf.ndim)


def test_devices_do_not_wait_for_each_other():
    world = worlds.vortex_world()
    setup = _setup.Setup(
        world.step,
        jax.device_put(world.state, worlds_over_two_devices()),
        None,
        length=8,
        save={"out": wl.Every(), "where": wl.Every(4, of=lambda s: s.position)},
        checks={"large": first_cell_large},
        on_fault="keep",
        refresh=None,
    )
    numbers = (np.int32(0), np.zeros(2, np.int32), np.int32(0), np.int32(8))
    text = (
        chunk.lower(setup.program, setup.step, setup.carry, setup.buffers(), [], *numbers)
        .compile()
        .as_text()
    )
    assert "while" in text
    for collective in ("all-reduce", "all-gather", "all-to-all", "collective-permute"):
        assert collective not in text


def add_row(total, t, *, table, first):
    """Adds one row of a table of which only a part is there."""
    return total + table[t - first], None


def test_a_step_takes_other_arrays_as_it_goes(no_recompile, tmp_path):
    whole = jnp.arange(40.0).reshape(20, 2) ** 2
    asked = []

    def refresh(done):
        asked.append(done)
        first = done // 5 * 5
        part = Partial(add_row, table=whole[first : first + 5], first=jnp.int32(first))
        return part, first + 5

    def go(**options):
        return wl.run(refresh(0)[0], jnp.zeros(2), length=20, refresh=refresh, **options)

    result = go()
    assert_same(result.state, whole.sum(axis=0))
    assert {0, 5, 10, 15} <= set(asked)
    with no_recompile():
        assert_same(go(chunk_steps=3).state, result.state)
    halfway = wl.run(
        refresh(0)[0],
        jnp.zeros(2),
        length=20,
        refresh=refresh,
        save=wl.At([7], of=lambda total: total),
        checkpoint=tmp_path / "run",
    )
    assert_same(halfway.records[0], whole[:7].sum(axis=0))


def test_a_step_that_changes_more_than_its_arrays():
    def other(done):
        return (lambda total, t: (total, None)), 5

    step = Partial(add_row, table=jnp.zeros((5, 2)), first=jnp.int32(0))
    with pytest.raises(wl.StepError, match=r"refresh\(0\) returned a step of another kind"):
        wl.run(step, jnp.zeros(2), length=5, refresh=other)
    with pytest.raises(wl.StepError, match=r"refresh\(0\) returned a step that is good until 0"):
        wl.run(step, jnp.zeros(2), length=5, refresh=lambda done: (step, done))


def plain_state(state):
    return jtu.tree_map(
        lambda x: jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x,
        state,
    )


@pytest.mark.parametrize(
    ("step", "state", "message"),
    [
        (lambda s, t: s, 0, r"must return a pair \(state, output\); it returned"),
        (lambda s, t: ({"a": s["a"], "b": s["a"]}, None), {"a": jnp.ones(2)}, "same structure"),
        (
            lambda s, t: ({"a": s["a"][:1]}, None),
            {"a": jnp.ones(2)},
            r"changed state\['a'\] from float32\[2\] to float32\[1\]",
        ),
        (lambda s, t: (s.astype(jnp.int32), None), jnp.ones(2), r"state from float32.* to int32"),
    ],
)
def test_a_step_of_the_wrong_form_is_refused(step, state, message):
    with pytest.raises(wl.StepError, match=message):
        wl.run(step, state, length=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": -1}, "length=-1"),
        ({"length": 2**31}, "length="),
        ({"length": 2, "on_fault": "explode"}, r"on_fault='explode': expected one of \('stop'"),
        ({"length": 2, "chunk_steps": 0}, "chunk_steps=0"),
        ({"length": 2, "resume": True}, "resume=True needs `checkpoint`"),
        ({"length": 2, "save": wl.At([3])}, "asks for step 3 of a run of 2 steps"),
        ({"length": 2, "inputs": np.zeros(3)}, r"inputs has shape \[3\]; its leading axis"),
        ({"length": 2, "inputs": {"a": np.float32(3)}}, r"inputs\['a'\] has shape \[\]"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(Exception, match=message) as caught:
        wl.run.__wrapped__(lambda s, t: (s, None), 0, **options)  # without beartype in the way
    assert isinstance(caught.value, ValueError | TypeError)


def test_wrong_saves_are_named():
    with pytest.raises(ValueError, match="n must be at least 1"):
        wl.Every(0)
    with pytest.raises(ValueError, match="needs `of`"):
        wl.Every(initial=True)
    with pytest.raises(ValueError, match="must increase"):
        wl.At([3, 3])
    with pytest.raises(TypeError, match=r"save\['x'\] is 5"):
        wl.run(count, 0, length=2, save={"x": 5})


def test_a_run_inside_jit_points_to_unroll():
    with pytest.raises(wl.StepError, match=r"use worldloom\.unroll"):
        jax.jit(lambda x: wl.run(count, x, length=2).state)(0)


def test_the_result_says_what_happened():
    result = wl.run(count, 0, length=5)
    assert repr(result).startswith("RunResult(steps=5, faults=0, compile_seconds=")


def test_a_failed_requirement_ends_the_run_in_its_own_words():
    def step(x, t):
        x = x * 2
        return check.require(jnp.all(x < 100), x, "grew too large"), None

    with pytest.raises(check.CheckError, match=r"^grew too large"):
        wl.run(step, jnp.ones(2), length=50)
    with check.using("off"):
        assert wl.run(step, jnp.ones(2), length=50).state[0] == 2.0**50


def test_buffers_of_records_fill_alike(monkeypatch):
    """A narrow record beside a wide one does not take half of the bytes and cut chunks short."""
    monkeypatch.setattr(_setup, "BUFFER_BYTES", 8 * 404)
    save = {"wide": wl.Every(of=lambda x: x), "narrow": wl.Every(of=lambda x: x[0])}
    setup = _setup.Setup(
        lambda x, t: (x + 1, None),
        jnp.zeros(100),
        None,
        length=64,
        save=save,
        checks={},
        on_fault="stop",
        refresh=None,
    )
    assert setup.furthest(0, 64) == 8
