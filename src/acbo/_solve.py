"""Small symmetric systems, many at a time, without LAPACK.

Under `vmap` JAX calls LAPACK once for each small matrix. Worse, the CPU kernels
of jaxlib 0.10 wait inside the thread pool for work that they put into the same pool: two such calls
at once, in one program or on two devices, can wait for each other for ever on a machine with two
cores. So what runs in batches eliminates by itself, in all matrices at once.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float, PyTree

_AT_ONCE = 64
_ROWS = 4


def solve_positive(matrix: Float[Array, "n n"], right: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Solve a symmetric positive definite system by Gauss-Jordan elimination."""
    n = matrix.shape[0]
    both = jnp.concatenate([matrix, right], axis=1)

    def eliminate(k: Array | int, both: Array) -> Array:
        here = (jnp.arange(n) == k).astype(both.dtype)
        row = here @ both
        row = row / (row[:n] @ here)
        column = both[:, :n] @ here
        return both - (column - here)[:, None] * row[None, :]

    return lax.fori_loop(0, n, eliminate, both)[:, n:]


def inverse_positive(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The inverse of a symmetric positive definite matrix."""
    return solve_positive(matrix, jnp.eye(matrix.shape[0], dtype=matrix.dtype))


def determinants_and_forms(
    matrices: Float[Array, "n n s"], vectors: Float[Array, "n s"]
) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """`log det M` and `v' inv(M) v` of symmetric matrices with no eigenvalue below one.

    No pivot is below one then. Where rounding says otherwise, nothing is left of that row but
    noise, and it is taken as one on the diagonal alone.
    """
    both = jnp.concatenate([matrices, vectors[:, None, :]], axis=1)
    determinants = forms = jnp.zeros(both.shape[2:], both.dtype)
    while both.shape[0] > 0:
        # A few rows first, then all that is below them in one pass over memory. The matrix is
        # symmetric, so the columns below are these rows.
        r = min(_ROWS, both.shape[0])
        rows = lax.fori_loop(0, r, _eliminate, both[:r])
        pivots = jnp.stack([rows[k, k] for k in range(r)])
        safe = jnp.maximum(pivots, 1.0)
        scaled = rows / jnp.where(pivots < 0.5, jnp.inf, safe)[:, None]
        determinants = determinants + jnp.log(safe).sum(axis=0)
        forms = forms + (rows[:, -1] * scaled[:, -1]).sum(axis=0)
        below = both[r:, r:]
        for k in range(r):
            below = below - rows[k, r:-1, None, :] * scaled[k, None, r:, :]
        both = below
    return determinants, forms


def _eliminate(k: Array | int, rows: Float[Array, "r m s"]) -> Float[Array, "r m s"]:
    """Take row `k` from the later ones."""
    row = lax.dynamic_index_in_dim(rows, k, axis=0, keepdims=False)
    column = lax.dynamic_index_in_dim(rows, k, axis=1, keepdims=False)
    pivot = lax.dynamic_index_in_dim(row, k, axis=0, keepdims=False)
    later = (jnp.arange(rows.shape[0]) > k)[:, None] & (pivot >= 0.5)[None, :]
    factor = jnp.where(later, column, 0.0) / jnp.maximum(pivot, 1.0)[None, :]
    return rows - factor[:, None, :] * row[None, :, :]


def in_blocks(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Give a function of stacks, last axis, a first axis instead; it sees a part of them at once.

    A part stays in a core's cache through all steps of the function. Batches are longer stacks:
    `vmap` would have each step go over all of them.
    """

    @custom_vmap
    def stacked(*stacks: Array) -> PyTree:
        s = stacks[0].shape[0]
        size = max(min(_AT_ONCE, s), 1)
        full = -(-s // size) * size

        def parts(stack: Array) -> Array:
            stack = jnp.pad(stack, ((0, full - s),) + ((0, 0),) * (stack.ndim - 1))
            return stack.reshape(full // size, size, *stack.shape[1:])

        def whole(found: Array) -> Array:
            return jnp.moveaxis(found, -1, 1).reshape(full, *found.shape[1:-1])[:s]

        found = lax.map(
            lambda part: function(*(jnp.moveaxis(one, 0, -1) for one in part)),
            tuple(map(parts, stacks)),
        )
        return jax.tree.map(whole, found)

    @stacked.def_vmap
    def longer(axis_size: int, in_batched: list[bool], *stacks: Array) -> tuple[PyTree, PyTree]:
        stacks = tuple(
            stack if batched else jnp.broadcast_to(stack, (axis_size, *stack.shape))
            for stack, batched in zip(stacks, in_batched, strict=True)
        )
        found = stacked(*(stack.reshape(-1, *stack.shape[2:]) for stack in stacks))
        found = jax.tree.map(lambda one: one.reshape(axis_size, -1, *one.shape[1:]), found)
        return found, jax.tree.map(lambda _: True, found)

    return stacked
