from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from acbo._apart import apart, within


def layers(x, w, border):
    """A sum over layers, each a few elementwise operations."""
    for k in range(3):
        x = border(x + jnp.tanh(w[k] * x))
    return x.sum()


def test_values_and_gradients_are_those_without_it():
    x, w = jnp.linspace(-1.0, 3.0, 7), jnp.array([0.5, -1.0, 2.0])
    count = jnp.int32(3)
    found = jax.jit(jax.value_and_grad(lambda w: layers(x, w, lambda y: apart(y, count))))(w)
    expected = jax.value_and_grad(lambda w: layers(x, w, lambda y: y))(w)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_trees_and_batches_go_through():
    tree = {"a": jnp.arange(6.0).reshape(2, 3), "b": jnp.array([True, False])}
    found = jax.jit(jax.vmap(apart))(tree, jnp.array([0, 4]))
    jax.tree.map(np.testing.assert_array_equal, found, tree)


def test_the_compiler_keeps_it_on_both_ways():
    """Should XLA learn to look through, nothing would be wrong, but the reason for it is gone."""

    def program(count):
        def loss(x):
            return layers(x, jnp.ones(3), lambda y: apart(y, count))

        return jax.grad(loss)(jnp.ones(7))

    text = jax.jit(program).lower(jnp.int32(1)).compile().as_text()
    assert text is not None
    assert text.count(" conditional(") >= 5


def test_uncompiled_it_is_no_operation():
    with jax.disable_jit():
        program = jax.make_jaxpr(apart)(jnp.ones(3), jnp.int32(1))
    assert not program.jaxpr.eqns
    assert not jax.make_jaxpr(lambda x: apart(x, None))(jnp.ones(3)).jaxpr.eqns


def test_a_function_within_is_the_function():
    x = jnp.linspace(-1.0, 3.0, 7)
    for count in (jnp.int32(0), jnp.int32(3), None):
        found = jax.jit(lambda x, count=count: within(lambda x: (x**2, x > 0), x, count))(x)
        np.testing.assert_allclose(found[0], np.asarray(x) ** 2, rtol=1e-6)
        np.testing.assert_array_equal(found[1], np.asarray(x) > 0)
    text = jax.jit(lambda x, n: within(jnp.sin, x, n)).lower(x, jnp.int32(1)).compile().as_text()
    assert text is not None
    assert " conditional(" in text
