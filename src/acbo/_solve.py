"""Small symmetric systems, many at a time, without LAPACK.

Under `vmap` JAX calls LAPACK once for each small matrix. Worse, the CPU kernels
of jaxlib 0.10 wait inside the thread pool for work that they put into the same pool: two such calls
at once, in one program or on two devices, can wait for each other for ever on a machine with two
cores. So what runs in batches eliminates by itself, in all matrices at once.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

_BLOCK = 5


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


def determinant_and_form(
    matrix: Float[Array, "n n"], vector: Float[Array, " n"], *, least: float
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """`log det M` and `v' inv(M) v` of a symmetric matrix with no eigenvalue below `least`.

    No pivot is below it then. Where rounding says otherwise, nothing is left of that row but
    noise, and it is taken as `least` on the diagonal alone. Five rows at a time; `n` is a multiple
    of five.
    """
    n = matrix.shape[0]
    if n % _BLOCK:
        raise ValueError(f"matrix has {n} rows; expected a multiple of {_BLOCK}")
    both = jnp.concatenate([matrix, vector[:, None]], axis=1)

    def eliminate(
        block: Array | int, carry: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array]:
        both, determinant, form = carry
        start = block * _BLOCK
        rows = lax.dynamic_slice_in_dim(both, start, _BLOCK, axis=0)
        corner = lax.dynamic_slice_in_dim(rows, start, _BLOCK, axis=1)
        solved, size = _eliminate_corner(corner, rows, least)
        below = lax.dynamic_slice_in_dim(both, start, _BLOCK, axis=1)
        below = jnp.where(jnp.arange(n)[:, None] >= start + _BLOCK, below, 0.0)
        both = both - (below[:, :, None] * solved[None, :, :]).sum(axis=1)
        return both, determinant + size, form + (rows[:, -1] * solved[:, -1]).sum()

    zero = jnp.zeros((), matrix.dtype)
    _, determinant, form = lax.fori_loop(0, n // _BLOCK, eliminate, (both, zero, zero))
    return determinant, form


def _eliminate_corner(corner: Array, rows: Array, least: float) -> tuple[Array, Array]:
    """`inv(corner) @ rows`, and the log determinant of the corner; unrolled."""
    size = corner.shape[0]
    both = jnp.concatenate([corner, rows], axis=1)
    determinant = jnp.zeros((), corner.dtype)
    for k in range(size):
        pivot = jnp.maximum(both[k, k], least)
        determinant = determinant + jnp.log(pivot)
        only = jnp.zeros(both.shape[1], both.dtype).at[k].set(1.0)
        row = jnp.where(both[k, k] < 0.5 * least, only, both[k] / pivot)
        column = both[:, k].at[k].add(-1.0)
        both = both - column[:, None] * row[None, :]
    return both[:, size:], determinant
