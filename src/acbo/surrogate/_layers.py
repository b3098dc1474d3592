"""Layers of the surrogate, for many small tables on a CPU.

A batch of tables, for which `count` is that of `acbo._apart.apart`, is trained with: there the way
back is written out where JAX's own is slow. Where `count` is `None`, for one table or under `vmap`,
a layer is what it is anywhere else: answers come sooner that way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from acbo.scm import Samples

_CACHED = 2**17  # numbers: half a megabyte
_VECTOR = 8  # numbers


def in_parts(
    function: Callable[[Samples], Float[Array, "part ..."]], samples: Samples, features: int
) -> Float[Array, "tables ..."]:
    """A function of a batch of tables, given a part of them at a time.

    As many as have features that stay in a core's cache, where the way back finds them again;
    `features` is how many a value of a table has.
    """
    tables, n, d = samples.values.shape
    fit = max(_CACHED // (features * n * d), 1)
    size = max(k for k in range(1, tables + 1) if tables % k == 0 and k <= fit)
    parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), samples)
    found = lax.map(function, parts)
    return found.reshape(tables, *found.shape[2:])


def across(
    layer: eqx.nn.Linear, x: Float[Array, "n ..."], here: Float[Array, ...]
) -> Float[Array, "m ..."]:
    """A linear layer along the first axis. Where `here` is 1, it has its bias; elsewhere none."""
    assert layer.bias is not None
    # A feature for the bias: so the product for the weight's gradient gives the bias's too.
    weight = jnp.concatenate([layer.weight, layer.bias[:, None]], axis=1)
    flat = jnp.concatenate([x, here[None]])
    return (weight @ flat.reshape(flat.shape[0], -1)).reshape(-1, *here.shape)


class Affine(NamedTuple):
    """A linear layer of weights that may be computed."""

    weight: Float[Array, "m n"]
    bias: Float[Array, " m"]

    @classmethod
    def of(cls, layer: eqx.nn.Linear) -> Affine:
        """The layer as it is."""
        assert layer.bias is not None
        return cls(layer.weight, layer.bias)

    @classmethod
    def behind(
        cls, scale: Float[Array, " n"], shift: Float[Array, " n"], layer: eqx.nn.Linear
    ) -> Affine:
        """The layer behind the scale and shift of a norm, which its weights then hold."""
        bias = layer.weight @ shift
        return cls(layer.weight * scale[None, :], bias if layer.bias is None else bias + layer.bias)

    def __call__(
        self, x: Float[Array, "t a b n"], count: Int[Array, ""] | None
    ) -> Float[Array, "t a b m"]:
        """Along the last axis."""
        if count is None:
            return x @ self.weight.T + self.bias[None, None, None, :]
        # A feature that is always 1: its weight is the bias, and what the product gives needs no
        # other kernel. Rows of whole vectors: with 17 numbers it takes longer than with 24.
        rest = -(x.shape[-1] + 1) % _VECTOR
        empty = jnp.zeros((self.bias.shape[0], rest), x.dtype)
        both = jnp.concatenate([self.weight, self.bias[:, None], empty], axis=1)
        one = jnp.ones((*x.shape[:-1], 1), x.dtype)
        empty = jnp.zeros((*x.shape[:-1], rest), x.dtype)
        x = jnp.concatenate([x, one, empty], axis=-1)
        return _product(both, x)


@jax.custom_vjp
def _product(both: Float[Array, "m n"], x: Float[Array, "*batch n"]) -> Float[Array, "*batch m"]:
    return x @ both.T


def _product_forward(both: Array, x: Array) -> tuple[Array, tuple[Array, Array]]:
    return x @ both.T, (both, x)


def _product_backward(kept: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    # JAX would turn the gradient, not `x`, which takes longer.
    both, x = kept
    flat, far = (one.reshape(-1, one.shape[-1]) for one in (x, g))
    return lax.dot_general(flat, far, (((0,), (0,)), ((), ()))).T, g @ both


_product.defvjp(_product_forward, _product_backward)


@jax.custom_vjp
def standard(x: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    """With mean 0 and variance 1 along the last axis, computed in float32."""
    return _standard_forward(x)[0]


def _standard_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    scale = lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    out = (centred * scale).astype(x.dtype)
    return out, (out, scale)


def _standard_backward(kept: tuple[Array, Array], g: Any) -> tuple[Array]:
    out, scale = (one.astype(jnp.float32) for one in kept)
    wide = g.astype(jnp.float32)
    along = (wide * out).mean(axis=-1, keepdims=True)
    found = (wide - wide.mean(axis=-1, keepdims=True) - along * out) * scale
    return (found.astype(g.dtype),)


standard.defvjp(_standard_forward, _standard_backward)
