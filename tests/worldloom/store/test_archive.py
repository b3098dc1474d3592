from __future__ import annotations

import math
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from worlds import World, all_worlds

from worldloom import WorldloomError, store

NUMPY = [
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
]
EXTENDED = [
    np.dtype(getattr(ml_dtypes, name))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint2")
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tree.loom"


def same(a: Any, b: Any) -> bool:
    """Equal in type, structure, dtype, shape and every bit; dict order aside, as in JAX."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    return a == b


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(NUMPY + EXTENDED))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    size = math.prod(shape) * dtype.itemsize
    raw = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    if dtype == np.bool_:
        raw = raw & 1
    return raw.view(dtype).reshape(shape)


plain = (
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.just(math.nan)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters())
    | st.none()
)
trees = st.recursive(
    arrays() | plain | arrays().filter(lambda a: a.shape == ()).map(lambda a: a[()]),
    lambda children: (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), children, max_size=4)
        | st.dictionaries(st.integers(), children, max_size=4)
    ),
    max_leaves=12,
)


@given(tree=trees, level=st.sampled_from([1, 3, 19]))
def test_a_plain_tree_comes_back_as_it_was(tree, level, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round-trip.loom"
    store.save(path, tree, level=level)
    assert same(store.load(path), tree)
    assert same(store.load(path, like=tree), tree)


def test_dicts_keep_their_order(path: Path):
    store.save(path, {"b": 1, "a": np.zeros(2), "c": {2: 0, 1: 0}})
    back = store.load(path)
    assert list(back) == ["b", "a", "c"]
    assert list(back["c"]) == [2, 1]


@pytest.mark.parametrize("world", all_worlds(), ids=lambda world: world.name)
@pytest.mark.parametrize("abstract", [False, True])
def test_the_state_of_a_world_comes_back(world: World, abstract: bool, path: Path):
    store.save(path, world.state)
    like = (
        jax.eval_shape(lambda: world.state) if abstract else jax.tree.map(lambda x: x, world.state)
    )
    back = store.load(path, like=like)
    assert eqx.tree_equal(back, world.state, typematch=True)
    world.step(back, world.inputs[0] if world.inputs is not None else jnp.int32(0))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int4, jnp.float8_e5m2, jnp.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3)])
def test_jax_arrays_of_any_dtype_and_shape(dtype, shape: tuple[int, ...], path: Path):
    array = jnp.arange(math.prod(shape)).reshape(shape).astype(dtype)
    store.save(path, array)
    back = store.load(path, like=jnp.zeros_like(array))
    assert isinstance(back, jax.Array)
    assert same(np.asarray(back), np.asarray(array))
    assert same(store.load(path), np.asarray(array))


def test_arrays_in_any_memory_order(path: Path):
    block = np.arange(24).reshape(2, 3, 4)
    tree = [
        block.T,
        block[:, ::-1, ::2],
        np.asfortranarray(block),
        block.astype(">i4"),
        block[0, 0, 0],
    ]
    store.save(path, tree)
    for before, after in zip(tree, store.load(path), strict=True):
        assert np.array_equal(before, after)
    assert store.load(path)[3].dtype == np.int32


def test_an_array_of_many_frames(path: Path):
    array = np.random.default_rng(0).integers(0, 1000, (3, 1_000_003)).astype(np.int32)
    zeros = np.zeros(9_000_000, np.uint8)
    store.save(path, {"array": array, "zeros": zeros})
    back = store.load(path)
    assert np.array_equal(back["array"], array)
    assert np.array_equal(back["zeros"], zeros)


def test_a_mapped_array_is_an_array(path: Path, tmp_path: Path):
    mapped = store.create_mapped(tmp_path / "m.npy", (4,), np.int16)
    mapped[:] = 7
    store.save(path, mapped)
    assert same(store.load(path), np.full(4, 7, np.int16))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_keys_come_back_as_keys(impl: str, path: Path):
    keys = jax.random.split(jax.random.key(3, impl=impl), (2, 3))
    store.save(path, {"keys": keys, "one": keys[0, 0]})
    template = {"keys": jax.random.clone(keys), "one": keys[1, 1]}
    for like in (None, template, jax.eval_shape(lambda: template)):
        back = store.load(path, like=like)
        assert jax.random.key_impl(back["keys"]) == impl
        assert back["one"].dtype == keys.dtype
        assert back["keys"].shape == (2, 3)
        assert (jax.random.bits(back["keys"][1, 2]) == jax.random.bits(keys[1, 2])).all()


def test_keys_of_another_kind_do_not_fit(path: Path):
    store.save(path, jax.random.key(0, impl="rbg"))
    with pytest.raises(store.MismatchError, match=r"key<rbg>\[\].*key<fry>\[\]"):
        store.load(path, like=jax.random.key(0))
    with pytest.raises(store.MismatchError, match="keys"):
        store.load(path, like=jnp.zeros(4, jnp.uint32))


def test_arrays_go_where_the_template_says(path: Path):
    mesh = jax.make_mesh((2,), ("worlds",), axis_types=(AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("worlds"))
    x, keys = jnp.arange(8.0), jax.random.split(jax.random.key(0), 8)
    store.save(path, (x, keys, x))
    like = (
        jax.device_put(x, split),
        jax.device_put(keys, split),
        jax.ShapeDtypeStruct((8,), jnp.float32, sharding=split),
    )
    back = store.load(path, like=like)
    assert all(leaf.sharding == split for leaf in back)
    assert np.array_equal(back[0], x)
    assert np.array_equal(back[2], x)
    assert np.array_equal(jax.random.key_data(back[1]), jax.random.key_data(keys))
    second = jax.device_put(x, jax.devices()[1])
    assert store.load(path, like=(second, keys, x))[0].devices() == {jax.devices()[1]}


def test_an_array_that_was_free_stays_free(path: Path, no_recompile):
    """Else the first step after a restart would compile again."""
    step = jax.jit(lambda tree: jax.tree.map(jnp.negative, tree))
    tree = {"x": jnp.arange(3.0), "pinned": jax.device_put(jnp.arange(3.0), jax.devices()[0])}
    store.save(path, tree)
    step(tree)
    back = store.load(path, like=tree)
    assert not back["x"].committed
    assert back["pinned"].committed
    with no_recompile():
        step(back)


class Point(NamedTuple):
    x: Any
    y: Any


class Model(eqx.Module):
    weights: Any
    activation: Any
    size: int = eqx.field(static=True)


def test_what_is_not_stored_comes_from_the_template(path: Path):
    store.save(path, Model(jnp.ones(3), jax.nn.relu, size=3))
    back = store.load(path, like=Model(jnp.zeros(3), jax.nn.gelu, size=4))
    assert back.activation is jax.nn.gelu
    assert back.size == 4
    assert (back.weights == 1).all()
    with pytest.raises(store.MismatchError, match=r"\.activation .* left out.*like"):
        store.load(path)


def test_plain_values_come_from_the_file(path: Path):
    """A counter that is a Python number must not be reset by the template."""
    store.save(path, {"epoch": 12, "name": "adam", "on": True})
    like = {"epoch": 0, "name": "", "on": False}
    assert store.load(path, like=like) == {"epoch": 12, "name": "adam", "on": True}
    with pytest.raises(store.MismatchError, match=r"\['epoch'\].*int.*float"):
        store.load(path, like={**like, "epoch": 0.0})
    with pytest.raises(store.MismatchError, match=r"\['on'\].*bool.*int"):
        store.load(path, like={**like, "on": 1})


def test_objects_without_a_template_are_dicts_of_their_parts(path: Path):
    tree = {"p": Point(1, np.arange(2)), "o": OrderedDict(b=1, a=None), "m": Model(2.0, None, 1)}
    store.save(path, tree)
    back = store.load(path)
    assert same(back["p"], {"x": 1, "y": np.arange(2)})
    assert same(back["o"], {"b": 1, "a": None})
    assert same(back["m"], {"weights": 2.0, "activation": None})


def test_every_difference_from_the_template_is_listed(path: Path):
    store.save(path, {"a": np.zeros((2, 3), np.float32), "b": np.zeros(2), "c": np.zeros(2)})
    like = {"a": np.zeros((3, 2), np.float32), "b": np.zeros(2, np.int64), "d": jnp.zeros(2)}
    with pytest.raises(store.MismatchError) as caught:
        store.load(path, like=like)
    text = str(caught.value)
    assert str(path) in text
    assert "['a']: the file has float32[2, 3]; the template has float32[3, 2]" in text
    assert "['b']: the file has float64[2]; the template has int64[2]" in text
    assert "['c']: the file has float64[2]; not in the template" in text
    assert "['d']: not in the file; the template has float32[2]" in text


def test_none_is_not_an_array(path: Path):
    store.save(path, {"a": None})
    with pytest.raises(store.MismatchError, match=r"\['a'\]: not in the file"):
        store.load(path, like={"a": np.zeros(2)})
    store.save(path, {"a": np.zeros(2)})
    with pytest.raises(store.MismatchError, match=r"\['a'\].*not in the template"):
        store.load(path, like={"a": None})


def test_a_long_list_of_differences_is_cut(path: Path):
    store.save(path, [np.zeros(1)] * 30)
    with pytest.raises(store.MismatchError, match=r"30 leaves(.|\n)*22 more"):
        store.load(path, like=[np.zeros(2)] * 30)


def test_float64_never_becomes_float32_silently(path: Path):
    store.save(path, np.arange(3.0))
    like = jax.ShapeDtypeStruct((3,), np.dtype(np.float64))
    with pytest.raises(store.MismatchError, match="x64"):
        store.load(path, like=like)


def test_meta_comes_back_without_the_arrays(path: Path):
    meta = {"step": 3, "loss": 0.25, "name": "é", "list": [1, None, True], "nested": {"a": {}}}
    store.save(path, np.zeros(1_000_000), meta=meta)
    assert store.read_meta(path) == meta
    store.save(path, np.zeros(3))
    assert store.read_meta(path) == {}
    store.save(path, np.zeros(3), meta={"shape": (1, 2)})
    assert store.read_meta(path) == {"shape": [1, 2]}


@pytest.mark.parametrize(
    ("meta", "where"),
    [
        ({"a": [1, math.nan]}, r"meta\['a'\]\[1\]"),
        ({"a": {1: 2}}, r"meta\['a'\]"),
        ({"a": np.float32(1)}, r"meta\['a'\]"),
        ({"a": object()}, r"meta\['a'\]"),
    ],
)
def test_meta_that_json_would_change_is_refused(meta, where: str, path: Path):
    with pytest.raises(store.UnstorableError, match=where):
        store.save(path, 1, meta=meta)
    assert not path.exists()


def test_inspect_lists_the_leaves(path: Path):
    store.save(path, {"a": np.zeros((1000, 4)), "k": jax.random.key(0), "n": 3, "f": len})
    rows = {row.path: row for row in store.inspect(path)}
    a = rows["['a']"]
    assert (a.kind, a.dtype, a.shape, a.nbytes) == ("array", "float64", (1000, 4), 32_000)
    assert 0 < a.stored < 200
    assert [rows[f"['{name}']"].kind for name in "knf"] == ["key", "value", "static"]
    assert sum(row.stored for row in rows.values()) < path.stat().st_size


def circle() -> list:
    knot: list = []
    knot.append(knot)
    return knot


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"a": np.array([object()])}, r"\['a'\].*object"),
        ({"a": np.array(["x"])}, r"\['a'\].*<U1"),
        ({"a": np.zeros(2, "f4,i4")}, r"\['a'\]"),
        ({"a": np.ma.masked_array([1], [True])}, r"\['a'\].*MaskedArray"),
        ({"a": {(1, 2): 3}}, r"\['a'\].*\(1, 2\)"),
        (10**5000, "manifest"),
        (circle(), "contains itself"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_stored_is_refused_by_name(tree, words: str, path: Path):
    store.save(path, "old")
    with pytest.raises(store.UnstorableError, match=words):
        store.save(path, tree)
    assert store.load(path) == "old"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_arrays_that_have_no_values_are_refused_by_name(path: Path):
    donated = jnp.zeros(3)
    donated.delete()
    with pytest.raises(store.UnstorableError, match=r"\['a'\].*donated"):
        store.save(path, {"a": donated})
    with pytest.raises(store.UnstorableError, match=r"\['a'\] is traced"):
        jax.jit(lambda x: store.save(path, {"a": x}))(jnp.zeros(3))
    assert not path.exists()


def test_arguments_out_of_range(path: Path):
    for level in (0, 23):
        with pytest.raises(store.ArgumentError, match=f"level is {level}"):
            store.save(path, 1, level=level)
    store.save(path, np.zeros(100))
    with pytest.raises(store.ArgumentError, match="max_bytes is -1"):
        store.load(path, max_bytes=-1)
    with pytest.raises(store.TooLargeError, match=r"800 bytes.*limit is 799"):
        store.load(path, max_bytes=799)
    assert store.load(path, max_bytes=800).shape == (100,)


def test_missing_files_and_folders(tmp_path: Path):
    with pytest.raises(store.MissingError, match=r"read.*nothing\.loom"):
        store.load(tmp_path / "nothing.loom")
    with pytest.raises(FileNotFoundError):
        store.save(tmp_path / "no" / "folder.loom", 1)
    with pytest.raises(store.ForeignFileError, match="is a folder"):
        store.load(tmp_path)


def test_errors_are_ours_and_builtin():
    pairs = {
        store.DamagedError: ValueError,
        store.VersionError: ValueError,
        store.ForeignFileError: ValueError,
        store.MismatchError: ValueError,
        store.UnstorableError: TypeError,
        store.MissingError: FileNotFoundError,
        store.DiskError: OSError,
    }
    for ours, builtin in pairs.items():
        assert issubclass(ours, store.StoreError)
        assert issubclass(ours, WorldloomError)
        assert issubclass(ours, builtin)
