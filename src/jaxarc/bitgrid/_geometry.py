"""Moving cells: along columns by shifts, along rows by a gather, across by transposition.

Each function takes a stack of masks, `uint32[planes, rows, *lanes]`: a bit grid, or a bit grid
and a mask that travels with it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from jaxarc.bitgrid._layout import WORD
from jaxarc.bitgrid._masks import row_numbers


def map_rows(
    planes: UInt32[Array, "planes rows *lanes"],
    offset: Int32[Array, "*lanes"],
    reflect: Bool[Array, "*lanes"],
) -> UInt32[Array, "planes rows *lanes"]:
    """Row `r` becomes row `r + offset` of the old planes, or row `offset - r` where reflected.

    Rows that come from outside are 0.
    """
    rows = planes.shape[1]
    row = row_numbers(rows, planes.ndim - 2)
    source = jnp.where(reflect[None], offset[None] - row, offset[None] + row)
    inside = (source >= 0) & (source < rows)
    moved = jnp.take_along_axis(planes, jnp.where(inside, source, 0)[None], 1, mode="clip")
    return jnp.where(inside[None], moved, jnp.uint32(0))


def map_columns(
    planes: UInt32[Array, "planes rows *lanes"],
    offset: Int32[Array, "*lanes"],
    reflect: Bool[Array, "*lanes"],
) -> UInt32[Array, "planes rows *lanes"]:
    """Column `c` becomes column `c + offset` of the old planes, or `offset - c` where reflected.

    Columns that come from outside the word are 0.
    """
    words = jnp.where(reflect[None, None], reverse_bits(planes), planes)
    return shift_columns(words, jnp.where(reflect, WORD - 1 - offset, offset))


def shift_columns(
    planes: UInt32[Array, "planes rows *lanes"], offset: Int32[Array, "*lanes"]
) -> UInt32[Array, "planes rows *lanes"]:
    """Column `c` becomes column `c + offset` of the old planes, 0 where there is none."""
    # A shift by 32 and more gives 0 in XLA, and a negative distance is such a number once it is
    # unsigned: of the two shifts one is the answer, and the other is 0 or the same.
    right = jnp.broadcast_to(offset.astype(jnp.uint32)[None, None], planes.shape)
    left = jnp.broadcast_to((-offset).astype(jnp.uint32)[None, None], planes.shape)
    return jax.lax.shift_right_logical(planes, right) | jax.lax.shift_left(planes, left)


def reverse_bits(words: UInt32[Array, "*any"]) -> UInt32[Array, "*any"]:
    """Bit `c` of each word becomes bit `31 - c`."""
    for distance, keep in (
        (1, 0x55555555),
        (2, 0x33333333),
        (4, 0x0F0F0F0F),
        (8, 0x00FF00FF),
        (16, 0x0000FFFF),
    ):
        mask = jnp.uint32(keep)
        words = ((words >> distance) & mask) | ((words & mask) << distance)
    return words


def transpose(
    planes: UInt32[Array, "planes rows *lanes"],
) -> UInt32[Array, "planes rows *lanes"]:
    """Cell `(r, c)` becomes cell `(c, r)`. Columns from `rows` on are dropped."""
    rows, lanes = planes.shape[1], planes.ndim - 2
    number = np.arange(rows, dtype=np.uint32)
    as_column = number.reshape((1, 1, rows) + (1,) * lanes)
    as_row = number.reshape((1, rows, 1) + (1,) * lanes)
    cells = (planes[:, :, None] >> as_column) & 1
    return jnp.sum(cells << as_row, axis=1, dtype=jnp.uint32)
