from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import worldloom as wl
from worldloom import check
from worldloom.compile import UnhashableStaticError, unhashable_part


class Pair(eqx.Module):
    a: jax.Array
    b: jax.Array
    label: str = eqx.field(static=True, default="pair")


@dataclasses.dataclass(frozen=True)
class Config:
    power: int = 2
    sizes: tuple[int, ...] = (1, 2)


def test_modules_arrays_and_configuration():
    @wl.compiled(static=("config",))
    def scale(pair, config, *, shift=0):
        return Pair(pair.a**config.power + shift, pair.b, pair.label)

    pair = Pair(jnp.arange(3.0), jnp.ones(2), "x")
    assert scale(pair, Config()).a.tolist() == [0, 1, 4]
    assert scale(pair, config=Config(3), shift=1).a.tolist() == [1, 2, 9]
    assert scale(pair, Config()).label == "x"
    assert scale.__name__ == "scale"


def test_calls_of_one_kind_compile_once(no_recompile):
    f = wl.compiled(lambda pair, x: Pair(pair.a + x, pair.b))
    pair, x = Pair(jnp.ones(3), jnp.ones(2)), jnp.ones(3)
    f(pair, x)
    with no_recompile():
        for _ in range(3):
            pair = f(pair, x)
    assert len(f.compilations) == 1


def test_modules_with_functions_inside(no_recompile):
    model = eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(0))
    f = wl.compiled(lambda model, x, config: model(x) * config.power, static=("config",))
    x = jnp.ones(2)
    expected = model(x) * 2
    np.testing.assert_allclose(f(model, x, Config()), expected, rtol=1e-6)
    with no_recompile():
        f(model, x, Config())
    tanh = eqx.tree_at(lambda m: m.activation, model, jnp.tanh)
    np.testing.assert_allclose(f(tanh, x, Config(3)), tanh(x) * 3, rtol=1e-6)


def test_a_function_that_first_saw_only_arrays_may_see_modules_later():
    f = wl.compiled(lambda model, x: model(x) if callable(model) else model * x)
    assert f(jnp.float32(2), jnp.float32(3)) == 6
    model = eqx.nn.Identity()
    assert f(eqx.nn.Lambda(jnp.sin), jnp.float32(0)) == 0
    assert f(model, jnp.float32(5)) == 5


def test_donated_arguments_are_gone():
    f = wl.compiled(lambda x, y: x + y, donate=("x",))
    x = jnp.ones(8)
    assert f(x, jnp.ones(8)).tolist() == [2] * 8
    assert x.is_deleted()
    model = eqx.nn.MLP(1, 1, 1, 1, key=jax.random.key(0))
    with pytest.raises(TypeError, match=r"cannot be donated; mark such fields"):
        wl.compiled(lambda model: model, donate=("model",))(model)


def test_warm_up_from_shapes_leaves_nothing_to_compile(no_recompile):
    f = wl.compiled(lambda pair, n, config: pair.a[:n] * config.power, static=("n", "config"))
    shape = jax.ShapeDtypeStruct((5,), jnp.float32)
    assert f.warm_up(Pair(shape, shape, "w"), 2, Config()) > 0
    pair = Pair(jnp.ones(5), jnp.ones(5), "w")
    with no_recompile():
        assert f(pair, 2, Config()).tolist() == [2, 2]


def test_shapes_without_running():
    f = wl.compiled(lambda x: jnp.outer(x, x))
    assert f.eval_shape(jax.ShapeDtypeStruct((3,), jnp.float32)).shape == (3, 3)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((jnp.ones(3), Config()), (jnp.ones(4), Config()), "x: f32[3] -> f32[4]"),
        ((jnp.ones(3), Config()), (jnp.ones(3, jnp.int32), Config()), "x: f32[3] -> i32[3]"),
        (
            (jnp.ones(3), Config()),
            (jnp.ones(3), Config(power=5)),
            "static argument 'config' changed: .power 2 -> 5",
        ),
        ((1.5, Config()), (jnp.float32(1.5), Config()), "(a Python number and an array"),
        (({"a": jnp.ones(1)}, Config()), ({"b": jnp.ones(1)}, Config()), "x['b'] is new"),
        (({"a": 1.0}, Config()), ({}, Config()), "x['a'] is gone"),
    ],
)
def test_a_second_compilation_is_explained(before, after, words):
    @wl.compiled(static=("config",))
    def f(x, config):
        return jax.tree.map(lambda leaf: leaf * config.power, x)

    f(*before)
    assert f.explain() == "f: first call"
    f(*after)
    assert words in f.explain()


def test_the_nearest_earlier_call_explains_best():
    f = wl.compiled(lambda x, y: x[0] + y[0])
    f(jnp.ones(2), jnp.ones(2))
    f(jnp.ones(3), jnp.ones(3))
    f(jnp.ones(3), jnp.ones(4))
    assert f.explain().endswith("because y: f32[3] -> f32[4]")


def test_unhashable_configuration_is_named():
    @dataclasses.dataclass
    class Thawed:
        n: int = 1

    f = wl.compiled(lambda x, config: x, static=("config",))
    for config, words in [
        (Config(sizes=[1]), r"config\.sizes is a list"),
        ({"n": 1}, "config is a dict"),
        (Thawed(), "config is a Thawed, a dataclass that is not frozen"),
        ((1, {2}), r"config\[1\] is a set"),
    ]:
        with pytest.raises(UnhashableStaticError, match=words):
            f(jnp.ones(1), config)
        assert unhashable_part(config, "config") is not None
    assert unhashable_part(Config()) is None


def test_unknown_argument_names_are_refused():
    with pytest.raises(ValueError, match="no argument 'confg'; it takes x, config"):
        wl.compiled(lambda x, config: x, static=("confg",))


def test_errors_of_the_function_itself_pass_through():
    def broken(x):
        raise ValueError("my own words")

    with pytest.raises(ValueError, match="my own words"):
        wl.compiled(broken)(jnp.ones(2))


def test_a_failed_requirement_is_raised_without_noise():
    f = wl.compiled(lambda x: check.require(x > 0, x, "must be positive"))
    assert f(jnp.float32(1)) == 1
    with pytest.raises((check.CheckError, jax.errors.JaxRuntimeError), match="must be positive"):
        f(jnp.float32(-1)).block_until_ready()
