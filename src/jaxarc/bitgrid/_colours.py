"""Colours of cells: reading, comparing, painting."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt8, UInt32

from jaxarc.bitgrid._layout import PLANES
from jaxarc.bitgrid._masks import any_bits


def colour_words(colour: Int32[Array, "*lanes"]) -> UInt32[Array, 4 * lanes]:
    """The digits of a colour, each repeated over a whole word: what a row of it looks like."""
    digit = np.arange(PLANES).reshape((PLANES,) + (1,) * jnp.ndim(colour))
    return jnp.where(((colour[None] >> digit) & 1) == 1, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))


def select(
    mask: UInt32[Array, rows * lanes],
    inside: UInt32[Array, "4 rows *lanes"],
    outside: UInt32[Array, "4 rows *lanes"],
) -> UInt32[Array, "4 rows *lanes"]:
    """One grid inside the mask, another outside of it."""
    return (inside & mask[None]) | (outside & ~mask[None])


def paint(
    grid: UInt32[Array, "4 rows *lanes"],
    mask: UInt32[Array, rows * lanes],
    colour: Int32[Array, "*lanes"],
) -> UInt32[Array, "4 rows *lanes"]:
    """The grid with the cells of the mask in one colour."""
    return (colour_words(colour)[:, None] & mask[None]) | (grid & ~mask[None])


def equal(
    a: UInt32[Array, "4 rows *lanes"], b: UInt32[Array, "4 rows *lanes"]
) -> UInt32[Array, rows * lanes]:
    """The cells in which two grids agree, over whole words: intersect with an area of interest."""
    return ~any_bits(a ^ b)


def is_colour(
    grid: UInt32[Array, "4 rows *lanes"], colour: Int32[Array, "*lanes"]
) -> UInt32[Array, rows * lanes]:
    """The cells of one colour, over whole words: intersect with an area of interest."""
    return ~any_bits(grid ^ colour_words(colour)[:, None])


def same_colour(
    grid: UInt32[Array, "4 rows *lanes"], one: UInt32[Array, rows * lanes]
) -> UInt32[Array, rows * lanes]:
    """The cells with the colour of the one cell in a mask, over whole words; 0 for an empty mask.

    Intersect with an area of interest.
    """
    digits = any_bits(jnp.swapaxes(grid & one[None], 0, 1)) != 0
    words = jnp.where(digits, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))
    return ~any_bits(grid ^ words[:, None])


def recolour(
    grid: UInt32[Array, "4 rows *lanes"], table: UInt8[Array, 10 * lanes]
) -> UInt32[Array, "4 rows *lanes"]:
    """Replace colour `k` by `table[k]`, in every word: intersect with an area of interest."""
    result = jnp.zeros_like(grid)
    for old in range(10):
        words = colour_words(table[old].astype(jnp.int32))[:, None]
        old_colour = jnp.full(table.shape[1:], old, jnp.int32)
        result = result | (words & is_colour(grid, old_colour)[None])
    return result
