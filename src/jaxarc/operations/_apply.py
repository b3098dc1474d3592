"""One edit of many grids at once, as the table says."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from jaxarc.bitgrid import (
    Box,
    bounding_box,
    cell,
    colour_at,
    first_cell,
    flood,
    is_colour,
    map_columns,
    map_rows,
    on_active_lanes,
    rectangle,
    select,
    transpose,
)
from jaxarc.bitgrid._colours import colour_words
from jaxarc.operations._table import Carry, Paint, PickUp, PutDown, among


class Board(eqx.Module):
    """What operations work on: grids with their sizes, and clipboards.

    Padding cells of `grid` are 0. The clipboard is a grid and, as a fifth plane, the mask of
    its filled cells; it lies at the top-left of the canvas.
    """

    grid: UInt32[Array, "4 rows lanes"]
    height: Int32[Array, " lanes"]
    width: Int32[Array, " lanes"]
    clipboard: UInt32[Array, "5 rows lanes"]


def area(rows: int, height: Int32[Array, " lanes"], width: Int32[Array, " lanes"]):
    """The mask of the cells above `height` and left of `width`."""
    zero = jnp.zeros_like(height)
    return rectangle(rows, Box(zero, height, zero, width))


def apply_operation(
    operation: Int32[Array, " lanes"],
    selection: UInt32[Array, "rows lanes"],
    board: Board,
    source: UInt32[Array, "4 rows lanes"],
    source_height: Int32[Array, " lanes"],
    source_width: Int32[Array, " lanes"],
    *,
    block: int = 128,
) -> Board:
    """Apply an operation 0 ... 34 to the board of each lane; any other id changes nothing.

    **Arguments:**

    - `selection`: mask of the selected cells. Bits outside the canvas must be 0.
    - `source`, `source_height`, `source_width`: the pair's input, for *copy input*.
    - `block`: flood fill and rotation run on this many lanes at a time, see
      `jaxarc.bitgrid.on_active_lanes`. It changes the speed alone.
    """
    is_ = lambda **column: among(  # noqa: E731
        operation, lambda row: all(getattr(row, name) is value for name, value in column.items())
    )
    rows = board.grid.shape[1]
    active = area(rows, board.height, board.width)
    cells = selection & active
    box = bounding_box(cells)
    boxed = rectangle(rows, box)
    any_cell = box.bottom > 0

    carried = _carry(operation, cells, box, boxed, board, block)
    onto_grid = is_(put_down=PutDown.GRID) & any_cell
    landed = jnp.where(onto_grid[None], carried[4] & active, 0)

    reach = bounding_box(selection)
    resized = is_(paint=Paint.CUT_OFF) & (reach.bottom > 0)
    height = jnp.where(resized, reach.bottom, board.height)
    width = jnp.where(resized, reach.right, board.width)
    from_source = is_(paint=Paint.CANVAS)
    height = jnp.where(from_source, source_height, height)
    width = jnp.where(from_source, source_width, width)

    nothing = jnp.zeros_like(cells)
    painted = jnp.where(is_(paint=Paint.CELLS)[None], cells, nothing)
    painted = jnp.where(is_(paint=Paint.BOX)[None], boxed, painted)
    painted = jnp.where(is_(paint=Paint.AREA)[None], active, painted)
    painted = jnp.where(is_(paint=Paint.CUT_OFF)[None], ~area(rows, height, width), painted)
    painted = jnp.where(is_(paint=Paint.CANVAS)[None], ~nothing, painted)
    painted = painted | _region(operation, cells, active, board.grid, block)

    colour = jnp.where(operation < 20, operation % 10, 0)
    value = jnp.where(from_source[None, None], source, colour_words(colour)[:, None])
    grid = select(landed, carried[:4], select(painted, value, board.grid))

    onto_clipboard = is_(put_down=PutDown.CLIPBOARD) & any_cell
    clipboard = jnp.where(onto_clipboard[None, None], carried, board.clipboard)
    return Board(grid, height, width, clipboard)


def _region(operation, cells, active, grid, block) -> UInt32[Array, "rows lanes"]:
    """The region of one colour around the first selected cell; empty for other operations."""
    floods = among(operation, lambda row: row.paint is Paint.REGION)
    row, column = first_cell(cells)
    same_colour = is_colour(grid, colour_at(grid, row, column)) & active
    seed = cell(grid.shape[1], row, column)
    nothing = jnp.zeros_like(cells)
    return on_active_lanes(flood, (same_colour, seed), floods, otherwise=nothing, block=block)


def _carry(operation, cells, box, boxed, board, block) -> UInt32[Array, "5 rows lanes"]:
    """What is picked up, carried to its new place, with the mask of its cells as fifth plane."""
    picks = lambda what: among(operation, lambda row: row.pick_up is what)  # noqa: E731
    mask = jnp.where(picks(PickUp.BOX)[None], boxed, 0)
    mask = jnp.where(picks(PickUp.CELLS)[None], cells, mask)
    picked = jnp.concatenate([board.grid & mask[None], mask[None]])
    picked = jnp.where(picks(PickUp.CLIPBOARD)[None, None], board.clipboard, picked)

    turned = among(operation, lambda row: row.carry in (Carry.CLOCKWISE, Carry.COUNTER_CLOCKWISE))
    picked = on_active_lanes(transpose, (picked,), turned, otherwise=picked, block=block)

    # Row r comes from row `offset + r`, or `offset - r` where reflected; columns alike.
    top, bottom, left, right = box
    none = jnp.zeros_like(top)
    routes = {
        #                        rows: offset, reflected     columns: offset, reflected
        Carry.UP: ((none + 1, False), (none, False)),
        Carry.DOWN: ((none - 1, False), (none, False)),
        Carry.LEFT: ((none, False), (none + 1, False)),
        Carry.RIGHT: ((none, False), (none - 1, False)),
        Carry.CLOCKWISE: ((left - top, False), (bottom - 1 + left, True)),
        Carry.COUNTER_CLOCKWISE: ((right - 1 + top, True), (top - left, False)),
        Carry.MIRROR_COLUMNS: ((none, False), (left + right - 1, True)),
        Carry.MIRROR_ROWS: ((top + bottom - 1, True), (none, False)),
        Carry.TO_ORIGIN: ((top, False), (left, False)),
        Carry.TO_ANCHOR: ((-top, False), (-left, False)),
    }
    row_offset = column_offset = none
    row_reflect = column_reflect = jnp.zeros(top.shape, bool)
    for carry, ((row, row_turns), (column, column_turns)) in routes.items():
        here = among(operation, lambda entry, carry=carry: entry.carry is carry)
        row_offset = jnp.where(here, row, row_offset)
        column_offset = jnp.where(here, column, column_offset)
        row_reflect = row_reflect | (here & row_turns)
        column_reflect = column_reflect | (here & column_turns)

    moves = among(operation, lambda row: row.carry is not Carry.NOWHERE)
    # A gather fused with the elementwise work around it would make all of it scalar; the
    # branch keeps it apart.
    picked = jax.lax.cond(
        jnp.any(moves), map_rows, lambda planes, *_: planes, picked, row_offset, row_reflect
    )
    return map_columns(picked, column_offset, column_reflect)
