"""Values around particles, kept from one sample to the next.

A particle takes several steps, of several samples each, to cross a cell. Its cell's corners are
read once, and again only when it enters another cell or time another slice: reading a number next
to others costs a tenth of looking it up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxtrace.fields._field import gather

KEPT_BYTES = 2**25
"""The most that is worth keeping: beyond it, memory is slower than looking up."""

_WORD = 32
_BITS = np.arange(_WORD, dtype=np.uint32)
_FEWEST = 64
_PARTS = 24  # one particle in so many is looked up at a time


class Near(eqx.Module):
    """What is kept: for each particle its cell, its slice, and the values at the cell's corners.

    All particles are in the same slice; it is kept for each, because all of a particle's arrays
    end in the axis of particles.
    """

    cell: Int[Array, " n"]
    slice: Int[Array, " n"]
    values: tuple[Float[Array, "corners n"], ...]
    """One array a component; the corners of the first slice, then those of the next."""


def nothing_near(n: int, components: int, corners: int, dtype: Any) -> Near:
    """Before the first sample."""
    unknown = jnp.full(n, -1, jnp.int32)
    return Near(unknown, unknown, tuple(jnp.zeros((corners, n), dtype) for _ in range(components)))


def refresh(
    near: Near,
    cell: Int[Array, " n"],
    slice_: Int[Array, ""],
    read: Callable[[Int[Array, " m"]], tuple[Float[Array, "corners m"], ...]],
) -> Near:
    """`near` with the values of particles that are in another cell now, or of all in a new slice.

    **Arguments:**

    - `cell`: the cell of each particle.
    - `slice_`: the slice of all.
    - `read`: the values at the corners of cells.
    """
    n = cell.shape[0]
    # A number that a whole loop needs is not computed in it: XLA would do so for each particle.
    new_slice = jnp.where(slice_ != near.slice[0], jnp.uint32(0xFFFFFFFF), jnp.uint32(0))
    size = min(n, max(_FEWEST, n // _PARTS))
    places, total = _queue(_words(cell != near.cell) | new_slice, size)

    def block(loop: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
        start, values = loop
        which = lax.dynamic_slice(places, (start,), (size,), allow_negative_indices=False)
        found = read(gather(cell, jnp.minimum(which, n - 1)))
        put = lambda old, new: old.at[:, which].set(  # noqa: E731
            new, mode="drop", unique_indices=True, wrap_negative_indices=False
        )
        return start + size, tuple(map(put, values, found))

    loop = (jnp.int32(0), near.values)
    _, values = lax.while_loop(lambda loop: loop[0] < total, block, loop)
    return Near(cell, jnp.full(n, slice_), values)


def _words(flags: Bool[Array, " n"]) -> UInt32[Array, " words"]:
    """Flags as bits; those that are missing in the last word are 0."""
    n = flags.shape[0]
    rows = jnp.pad(flags, (0, -n % _WORD)).reshape(-1, _WORD)
    return jnp.sum(rows.astype(jnp.uint32) << _BITS[None, :], axis=1, dtype=jnp.uint32)


def _queue(
    words: UInt32[Array, " words"], spare: int
) -> tuple[Int[Array, " n_and_spare"], Int[Array, ""]]:
    """The numbers of the bits that are set, then numbers that no bit has; and how many are set."""
    full = words.shape[0] * _WORD
    counts = lax.population_count(words).astype(jnp.int32)
    upto = lax.cumsum(counts)
    below = lax.population_count(words[:, None] & ((jnp.uint32(1) << _BITS[None, :]) - 1))
    place = (upto - counts)[:, None] + below.astype(jnp.int32)
    is_set = ((words[:, None] >> _BITS[None, :]) & 1).astype(bool)
    number = np.arange(full, dtype=np.int32)
    nowhere = number.reshape(place.shape) + (full + spare)
    queue = jnp.asarray(np.arange(full, 2 * full + spare, dtype=np.int32))
    at = jnp.where(is_set, place, nowhere).reshape(-1)
    queue = queue.at[at].set(number, mode="drop", unique_indices=True, wrap_negative_indices=False)
    return queue, upto[-1]
