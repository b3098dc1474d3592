"""Cells to bits and back, and the place of the batch axis."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree, UInt8, UInt32

PLANES = 4  # ten colours need four binary digits
WORD = 32  # bits in a row, so the widest canvas


def _columns(width: int, ndim: int) -> np.ndarray:
    """0, 1, 2, ... along the last of `ndim` axes."""
    return np.arange(width, dtype=np.uint32).reshape((1,) * (ndim - 1) + (width,))


def pack_mask(cells: Bool[Array, "*batch height width"]) -> UInt32[Array, "*batch rows"]:
    """Cells to a bit mask with `max(height, width)` rows; the batch comes first."""
    height, width = cells.shape[-2:]
    bits = cells.astype(jnp.uint32) << _columns(width, cells.ndim)
    words = jnp.sum(bits, axis=-1, dtype=jnp.uint32)
    missing = max(height, width) - height
    return jnp.pad(words, [(0, 0)] * (words.ndim - 1) + [(0, missing)])


def unpack_mask(
    mask: UInt32[Array, "*batch rows"], height: int, width: int
) -> Bool[Array, "*batch {height} {width}"]:
    """A bit mask to cells; the batch comes first."""
    return ((mask[..., :height, None] >> _columns(width, mask.ndim + 1)) & 1).astype(bool)


def pack(cells: UInt8[Array, "*batch height width"]) -> UInt32[Array, "*batch 4 rows"]:
    """Colours to a bit grid with `max(height, width)` rows; the batch comes first.

    ```python
    import jax.numpy as jnp
    from jaxarc import bitgrid

    grid = bitgrid.pack(jnp.array([[0, 3], [9, 1]], jnp.uint8))
    assert bitgrid.unpack(grid, 2, 2)[1, 0] == 9
    ```
    """
    digits = jnp.stack([(cells >> k) & 1 for k in range(PLANES)], axis=-3)
    return pack_mask(digits.astype(bool))


def unpack(
    grid: UInt32[Array, "*batch 4 rows"], height: int, width: int
) -> UInt8[Array, "*batch {height} {width}"]:
    """A bit grid to colours; the batch comes first."""
    digits = unpack_mask(grid, height, width).astype(jnp.uint8)
    one, two, four, eight = (digits[..., k, :, :] for k in range(PLANES))
    return one | (two << 1) | (four << 2) | (eight << 3)


def pack_host(cells: np.ndarray) -> np.ndarray:
    """`pack` in NumPy, for loading: it compiles nothing."""
    *batch, height, width = cells.shape
    square = np.zeros((*batch, max(height, width), WORD), np.uint8)
    square[..., :height, :width] = cells
    planes = [np.packbits((square >> k) & 1, axis=-1, bitorder="little") for k in range(PLANES)]
    return np.stack(planes, axis=-3).view("<u4")[..., 0].astype(np.uint32)


def to_lanes(tree: PyTree, lanes: int | None = None) -> PyTree:
    """Move the leading axis of every leaf, the batch, to the end.

    With `lanes`, it is filled up to so many: with copies of the first numbers, and with zeros where
    an entry is an array, which XLA does in the same pass over memory.
    """

    def move(leaf):
        moved = jnp.moveaxis(leaf, 0, -1)
        missing = 0 if lanes is None else lanes - moved.shape[-1]
        if not missing:
            return moved
        if moved.ndim == 1:
            return jnp.concatenate([moved, moved[:missing]])
        return jnp.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, missing)])

    return jax.tree.map(move, tree)


def lanes_for(worlds: int) -> int:
    """Lanes that carry so many worlds fastest: an odd number of vectors of eight.

    The rows of a grid lie `lanes` words apart. Where that is a power of two, all rows of a world
    fall into the same few sets of the processor's caches and push each other out; at 1024 lanes
    that makes a step take 1.7 times as long. Few lanes fit anyway.
    """
    if worlds < 64:
        return worlds
    vectors = -(-worlds // 8)
    return 8 * (vectors + 1 - vectors % 2)


def from_lanes(tree: PyTree) -> PyTree:
    """Move the last axis of every leaf, the lanes, to the front."""
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), tree)
