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

from acbo._apart import apart

_AT_ONCE = 64


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
    count = (both[0, 0, 0] > 0).astype(jnp.int32)
    while both.shape[0] > 0:
        # Two rows of the Cholesky factor. By symmetry the columns below are these rows too.
        rows = apart(both[:2], count)
        inverse, determinant = _inverse_factor(rows[:, : rows.shape[0]])
        # A sum, so that XLA computes it once, and not in each of the rows that come after.
        factor = (inverse[:, :, None] * rows[None]).sum(axis=1)
        determinants = determinants + determinant
        forms = forms + (factor[:, -1] ** 2).sum(axis=0)
        both = both[2:, 2:]
        for row in factor:
            both = both - row[2:-1, None] * row[None, 2:]
    return determinants, forms


def _inverse_factor(
    matrices: Float[Array, "k k s"],
) -> tuple[Float[Array, "k k s"], Float[Array, " s"]]:
    """The inverse of the Cholesky factor, and the log determinant, of one or two rows."""
    scale, log = _pivot(matrices[0, 0])
    if matrices.shape[0] == 1:
        return scale[None, None], log
    share = matrices[0, 1] * scale**2
    second, log_second = _pivot(matrices[1, 1] - share * matrices[0, 1])
    above = jnp.stack([scale, jnp.zeros_like(scale)])
    return jnp.stack([above, jnp.stack([-share * second, second])]), log + log_second


def _pivot(pivot: Float[Array, " s"]) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """One over its root, nothing for noise; and its logarithm."""
    safe = jnp.maximum(pivot, 1.0)
    return jnp.where(pivot < 0.5, 0.0, lax.rsqrt(safe)), jnp.log(safe)


def in_blocks(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Give a function of stacks, last axis, a first axis instead; it sees a part of them at once.

    A part stays in a core's cache through all steps of the function. Batches are longer stacks:
    `vmap` would have each step go over all of them.
    """

    @custom_vmap
    def stacked(*stacks: Array) -> PyTree:
        s = stacks[0].shape[0]
        size = max(min(_AT_ONCE, s), 1)
        full = max(-(-s // size), 1) * size  # no loop of no parts: it has no place without `jit`

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
