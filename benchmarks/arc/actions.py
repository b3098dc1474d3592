"""Random actions, drawn the same way for every side. Needs nothing but JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

OPERATIONS = 35
SIDE = 30
FIELDS = {
    "point": ("operation", "row", "col"),
    "bbox": ("operation", "r1", "c1", "r2", "c2"),
}


def draw(key: jax.Array, kind: str, batch: int | None) -> dict[str, jax.Array]:
    """Actions by field name: any of the 35 operations, any cell, box or mask of the canvas.

    Every number comes out of one call of the generator, because at a million steps a second the
    dice would be most of the work. A cell of a mask is chosen with probability one half.
    """
    shape = () if batch is None else (batch,)
    if kind == "mask":
        bits = jax.random.bits(key, (1 + SIDE, *shape), jnp.uint32)
        rows = jnp.moveaxis(bits[1:], 0, -1)
        cells = (rows[..., None] >> jnp.arange(SIDE, dtype=jnp.uint32)) & 1
        return {"operation": _below(bits[0], OPERATIONS), "selection": cells.astype(bool)}
    fields = FIELDS[kind]
    bits = jax.random.bits(key, (len(fields), *shape), jnp.uint32)
    numbers = [_below(bits[0], OPERATIONS), *(_below(word, SIDE) for word in bits[1:])]
    return dict(zip(fields, numbers, strict=True))


def _below(word: jax.Array, limit: int) -> jax.Array:
    """A number under `limit` from 32 random bits, without a division."""
    return ((word >> 16) * jnp.uint32(limit) >> 16).astype(jnp.int32)
