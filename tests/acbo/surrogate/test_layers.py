"""Layers, and the ways back that are written out, against plain JAX."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate._layers import Affine, across, standard

KEY = jax.random.key(0)
X = 3 * jax.random.normal(KEY, (2, 3, 4, 5)) + 1


def alike(found, expected):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * np.abs(b).max())


def value_and_gradient(function, *args):
    """Of a sum that tells all numbers of the answer apart."""

    def told(*args):
        out = function(*args)
        return (out * jnp.cos(jnp.arange(out.size).astype(out.dtype)).reshape(out.shape)).sum()

    return jax.jit(jax.value_and_grad(told, argnums=tuple(range(len(args)))))(*args)


def plain_norm(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def test_standard_has_mean_0_and_variance_1_and_its_own_gradient():
    found = np.asarray(standard(X))
    np.testing.assert_allclose(found.mean(axis=-1), 0, atol=1e-5)
    np.testing.assert_allclose(found.var(axis=-1), 1, atol=1e-3)
    alike(value_and_gradient(standard, X), value_and_gradient(plain_norm, X))


@pytest.mark.parametrize("counted", [True, False], ids=["a batch", "under vmap"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [(5, 6), (5, 1)])
def test_a_layer_behind_a_norm_is_norm_and_layer(counted, bias, sizes):
    layer = eqx.nn.Linear(*sizes, use_bias=bias, key=KEY)
    scale, shift = jax.random.normal(KEY, (2, 5))
    weights = (scale, shift, layer.weight, layer.bias) if bias else (scale, shift, layer.weight)

    def of(x, scale, shift, weight, bias=None):
        return eqx.tree_at(lambda one: one.weight, layer, weight), scale, shift, bias

    def ours(x, *weights):
        changed, scale, shift, bias = of(x, *weights)
        if bias is not None:
            changed = eqx.tree_at(lambda one: one.bias, changed, bias)
        count = jnp.int32(3) if counted else None
        return Affine.behind(scale, shift, changed)(standard(x), count)

    def plain(x, *weights):
        changed, scale, shift, bias = of(x, *weights)
        scaled = plain_norm(x) * scale[None, None, None] + shift[None, None, None]
        out = jnp.einsum("...n,mn->...m", scaled, changed.weight)
        return out if bias is None else out + bias[None, None, None]

    alike(value_and_gradient(ours, X, *weights), value_and_gradient(plain, X, *weights))


def test_a_layer_across_has_its_bias_only_where_something_is():
    layer = eqx.nn.Linear(2, 3, key=KEY)
    here = (jnp.arange(12).reshape(3, 4) % 3 > 0).astype(jnp.float32)
    x = X[:, :, :, 0] * here[None]
    found = np.asarray(across(layer, x, here))
    np.testing.assert_array_equal(found[:, np.asarray(here) == 0], 0)
    each = jax.vmap(jax.vmap(layer, in_axes=-1, out_axes=-1), in_axes=-1, out_axes=-1)(x)
    np.testing.assert_allclose(found, each * here[None], atol=1e-5)
