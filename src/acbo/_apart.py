"""A border that XLA's compiler for CPUs does not fuse across."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, PyTree

T = TypeVar("T", bound=PyTree)
U = TypeVar("U", bound=PyTree)


def apart(x: T, count: Int[Array, ""] | None) -> T:
    """`x`, computed once.

    XLA takes additions and products to be free, and computes them anew in every kernel that uses
    them; in the gradient of a sum over layers, each layer would compute all those after it again.
    It does not look across a branch, nor across the one that the gradient has in the same place.

    `count` is any number that counts something, known only when the program runs: it is never
    negative, but XLA does not know that. Where `vmap` would give each table a count of its own, and
    so make no branch of it, pass `None`: `x` is then left alone.
    """
    return within(lambda x: x, x, count)


def within(function: Callable[[T], U], x: T, count: Int[Array, ""] | None) -> U:
    """`function(x)`, computed once: inside the branch of `apart`, which would copy it."""
    # One operation after the other: there is nothing to fuse.
    uncompiled = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
    if count is None or uncompiled:
        return function(x)

    def never(x: T) -> U:
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)

    like = jax.eval_shape(function, x)
    return lax.cond(count >= 0, function, never, x)
