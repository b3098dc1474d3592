from __future__ import annotations

import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import worlds
from jax.sharding import AxisType, Mesh

from worldloom import mesh


@pytest.fixture(scope="module")
def devices() -> Mesh:
    return mesh.worlds_mesh()


def test_the_mesh_is_one_row_of_all_devices_with_an_automatic_axis(devices):
    assert devices.shape == {"worlds": 2}
    assert devices.axis_types == (AxisType.Auto,)
    assert list(devices.devices) == jax.devices()


def test_the_mesh_keeps_the_order_of_the_devices_it_is_given():
    first, second = jax.devices()
    assert list(mesh.worlds_mesh([second, first]).devices) == [second, first]


@pytest.mark.parametrize(("chosen", "words"), [([], "empty"), ([0, 0], "more than once")])
def test_a_mesh_of_no_or_repeated_devices_is_refused(chosen, words):
    with pytest.raises(mesh.MeshError, match=words):
        mesh.worlds_mesh([jax.devices()[i] for i in chosen])


@hypothesis.given(
    rows=st.integers(1, 6).map(lambda n: 2 * n),
    dtype=st.sampled_from([np.float32, np.int8, np.bool_, np.uint16]),
    rest=st.lists(st.integers(0, 3), max_size=2),
    on_host=st.booleans(),
)
def test_a_sharded_value_gathers_to_itself(devices, rows, dtype, rest, on_host):
    value = np.arange(rows * int(np.prod(rest))).reshape(rows, *rest).astype(dtype)
    placed = mesh.shard(value if on_host else jnp.asarray(value), devices)
    halves = [np.asarray(part.data) for part in placed.addressable_shards]
    np.testing.assert_array_equal(halves[0], value[: rows // 2])
    np.testing.assert_array_equal(halves[1], value[rows // 2 :])
    back = mesh.gather(placed)
    assert type(back) is np.ndarray
    assert back.dtype == value.dtype
    np.testing.assert_array_equal(back, value)


def test_typed_keys_are_split_and_stay_keys(devices):
    keys = jax.random.split(jax.random.key(3, impl="rbg"), 4)
    placed = mesh.shard(keys, devices)
    assert len(placed.addressable_shards) == 2
    back = mesh.gather(placed)
    assert back.dtype == keys.dtype
    np.testing.assert_array_equal(jax.random.key_data(back), jax.random.key_data(keys))


def test_a_module_is_sharded_and_what_is_no_array_is_left_alone(devices):
    world = worlds.grid_world(4)
    placed = mesh.shard((world.state, jnp.tanh, None, 3, "name"), devices)
    assert isinstance(placed[0], worlds.Grid)
    assert placed[0].cells.sharding.shard_shape((4, 8, 8)) == (2, 8, 8)
    assert placed[1:] == (jnp.tanh, None, 3, "name")


def test_a_replicated_value_is_whole_on_each_device(devices):
    model = eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(0))
    placed = mesh.replicate(model, devices)
    assert placed.activation is model.activation
    weight = placed.layers[0].weight
    assert [part.data.shape for part in weight.addressable_shards] == [(4, 2), (4, 2)]
    np.testing.assert_array_equal(mesh.gather(weight), model.layers[0].weight)


def test_a_memory_mapped_array_is_sharded(devices, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(12.0, dtype=np.float32).reshape(4, 3))
    placed = mesh.shard(np.load(tmp_path / "x.npy", mmap_mode="r"), devices)
    np.testing.assert_array_equal(mesh.gather(placed).ravel(), np.arange(12))


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"x": np.zeros(7)}, "7 worlds cannot be split evenly over 2 devices.* 6 or 8"),
        ({"x": np.zeros(1)}, "1 worlds cannot.* that can: 2"),
        ({"x": np.zeros(4), "y": np.zeros(6)}, r"\['y'\] has 6 rows but \['x'\] has 4"),
        ({"x": np.zeros(4), "t": np.float32(1)}, r"\['t'\] is a scalar.*mesh\.replicate"),
    ],
)
def test_what_cannot_be_split_is_refused_by_name(devices, tree, words):
    with pytest.raises(mesh.MeshError, match=words):
        mesh.shard(tree, devices)


def test_a_mesh_without_the_axis_is_refused():
    other = jax.make_mesh((2,), ("rows",), axis_types=(AxisType.Auto,))
    with pytest.raises(mesh.MeshError, match=r"\('rows',\), none called 'worlds'"):
        mesh.shard(np.zeros(4), other)


def test_each_device_runs_the_function_on_its_own_rows(devices):
    @jax.jit
    def totals(x):
        return mesh.each_device(lambda x: jnp.sum(x, keepdims=True), devices)(x)

    np.testing.assert_array_equal(totals(mesh.shard(np.arange(6), devices)), [3, 12])


def test_each_device_moves_nothing_between_devices(devices):
    def one_by_one(x):
        return jax.lax.map(lambda row: row * 2, x)

    def collectives(fn):
        rows = mesh.shard(np.zeros((4, 5), np.float32), devices)
        program = jax.jit(fn).lower(rows).compile().as_text()
        return [w for w in ("all-gather", "all-reduce", "all-to-all") if w in str(program)]

    assert collectives(one_by_one)
    assert not collectives(mesh.each_device(one_by_one, devices))


def test_axes_are_as_for_vmap(devices):
    def step(state, shared, x):
        return {"a": state["a"] + (shared * x)[None], "total": jax.lax.psum(x.sum(), mesh.AXIS)}

    fn = mesh.each_device(
        step, devices, in_axes=({"a": 1}, None, 0), out_axes={"a": 1, "total": None}
    )
    state = {"a": np.zeros((3, 4), np.float32)}
    out = jax.jit(fn)(state, jnp.float32(2), np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(out["a"], np.tile([0, 2, 4, 6], (3, 1)))
    assert out["total"] == 6


def test_arrays_bound_to_the_function_are_shared(devices):
    step = jax.tree_util.Partial(lambda field, x: field[x], jnp.array([10, 20, 30]))
    out = jax.jit(mesh.each_device(step, devices))(np.array([2, 0, 1, 1]))
    np.testing.assert_array_equal(out, [30, 10, 20, 20])


@pytest.mark.parametrize(
    ("axes", "words"),
    [((0, 0), "2 entries but.* 1 argument"), (-1, "holds -1"), ("worlds", "holds 'worlds'")],
)
def test_bad_axes_are_refused(devices, axes, words):
    with pytest.raises(mesh.MeshError, match=words):
        mesh.each_device(lambda x: x, devices, in_axes=axes)(np.zeros(4))
