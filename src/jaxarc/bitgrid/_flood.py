"""Flood fill: whole rows at a time, exact at any shape.

A run of open cells fills from a seed by one addition: adding the seed to the run carries up to
the run's end, and every bit that the carry touched is reached. One sweep down and one up carry
what was reached from row to row, in place; sweeps repeat until nothing changes. A spiral takes
as many sweeps as it has turns, so there is no fixed number of them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, UInt32


def fill_runs(
    reached: UInt32[Array, "*lanes"], open_cells: UInt32[Array, "*lanes"]
) -> UInt32[Array, "*lanes"]:
    """Spread `reached`, a subset of `open_cells`, over the runs of open cells it touches."""
    reached = (((open_cells + reached) ^ open_cells) & open_cells) | reached
    # The carry runs towards higher columns only; towards lower ones, in five doubling steps.
    through = open_cells
    for distance in (1, 2, 4, 8, 16):
        reached = reached | (through & (reached >> distance))
        through = through & (through >> distance)
    return reached


def flood(
    open_cells: UInt32[Array, rows * lanes], seed: UInt32[Array, rows * lanes]
) -> UInt32[Array, rows * lanes]:
    """All open cells that are 4-connected to a seed through open cells.

    ```python
    import jax.numpy as jnp
    from jaxarc import bitgrid

    open_cells = jnp.array([0b0111, 0b0101, 0b1101], jnp.uint32)
    seed = jnp.array([0b0001, 0, 0], jnp.uint32)
    assert (bitgrid.flood(open_cells, seed) == open_cells).all()
    ```
    """

    rows = open_cells.shape[0]

    def visit(step, carry):
        reached, before = carry
        row = jnp.minimum(step, 2 * rows - 1 - step)  # down, then up
        open_row = _row(open_cells, row)
        filled = fill_runs((_row(reached, row) | before) & open_row, open_row)
        return jax.lax.dynamic_update_index_in_dim(reached, filled, row, 0), filled

    def sweeps(carry):
        reached, _ = carry
        after, _ = jax.lax.fori_loop(0, 2 * rows, visit, (reached, jnp.zeros_like(reached[0])))
        return after, jnp.any(after != reached)

    seed = seed & open_cells
    return jax.lax.while_loop(lambda carry: carry[1], sweeps, (seed, jnp.bool_(True)))[0]


def _row(mask, row):
    """One row; `row` is never negative, which need not be checked."""
    start = (row, *[0] * (mask.ndim - 1))
    sizes = (1, *mask.shape[1:])
    return jax.lax.dynamic_slice(mask, start, sizes, allow_negative_indices=False)[0]
