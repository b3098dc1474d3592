"""Sets of cells: rectangles, bounding boxes, counts."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from jaxarc.bitgrid._layout import WORD


class Box(NamedTuple):
    """The cells with `top <= row < bottom` and `left <= column < right`."""

    top: Int32[Array, "*lanes"]
    bottom: Int32[Array, "*lanes"]
    left: Int32[Array, "*lanes"]
    right: Int32[Array, "*lanes"]


def row_numbers(rows: int, lanes: int) -> Int32[Array, " {rows} *ones"]:
    """0, 1, 2, ... along the first axis, with `lanes` axes of length one after it."""
    return jnp.arange(rows, dtype=jnp.int32).reshape((rows,) + (1,) * lanes)


def columns_below(column: Int32[Array, "*lanes"]) -> UInt32[Array, "*lanes"]:
    """A word with the bits `0 ... column - 1` set; none where `column` is negative."""
    # XLA shifts by 32 and more give 0, as arithmetic would have it.
    places = jnp.maximum(column, 0).astype(jnp.uint32)
    return ~jax.lax.shift_left(jnp.full_like(places, 0xFFFFFFFF), places)


def rectangle(rows: int, box: Box) -> UInt32[Array, {rows} * lanes]:
    """The mask of a box. Parts of the box outside the canvas are left out."""
    row = row_numbers(rows, jnp.ndim(box.top))
    columns = columns_below(box.right) & ~columns_below(box.left)
    inside = (row >= box.top[None]) & (row < box.bottom[None])
    return jnp.where(inside, columns[None], jnp.uint32(0))


def cell(
    rows: int, row: Int32[Array, "*lanes"], column: Int32[Array, "*lanes"]
) -> UInt32[Array, {rows} * lanes]:
    """The mask of one cell; empty where the cell lies outside."""
    return rectangle(rows, Box(row, row + 1, column, column + 1))


def count(mask: UInt32[Array, rows * lanes]) -> Int32[Array, "*lanes"]:
    """The number of cells in a mask."""
    return jnp.sum(jax.lax.population_count(mask).astype(jnp.int32), axis=0)


def any_bits(words: UInt32[Array, axis * lanes]) -> UInt32[Array, "*lanes"]:
    """The words along the first axis, or-ed."""
    return jax.lax.reduce(words, jnp.uint32(0), jax.lax.bitwise_or, (0,))


def lowest_bit(word: UInt32[Array, "*lanes"]) -> Int32[Array, "*lanes"]:
    """The position of the lowest bit set; -1 for the word 0."""
    return WORD - 1 - jax.lax.clz(word & (~word + 1)).astype(jnp.int32)


def rows_in_use(mask: UInt32[Array, rows * lanes]) -> UInt32[Array, "*lanes"]:
    """A word whose bit `r` says whether row `r` of the mask has any cell."""
    row = row_numbers(mask.shape[0], mask.ndim - 1).astype(jnp.uint32)
    return any_bits(jnp.where(mask != 0, jnp.uint32(1) << row, jnp.uint32(0)))


def bounding_box(mask: UInt32[Array, rows * lanes]) -> Box:
    """The smallest box around a mask; all four numbers are 0 where the mask is empty."""

    def extent(word):
        low = jnp.maximum(lowest_bit(word), 0)
        return low, WORD - jax.lax.clz(word).astype(jnp.int32)

    return Box(*extent(rows_in_use(mask)), *extent(any_bits(mask)))


def first_cell(mask: UInt32[Array, rows * lanes]) -> UInt32[Array, rows * lanes]:
    """The mask of the first cell of a mask in reading order; empty where the mask is."""
    row = lowest_bit(rows_in_use(mask))
    here = row_numbers(mask.shape[0], mask.ndim - 1) == row[None]
    return jnp.where(here, mask & (~mask + 1), jnp.uint32(0))
