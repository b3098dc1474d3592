"""One edit of many grids at once, as the table says."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from jaxarc.bitgrid import (
    WORD,
    Box,
    bounding_box,
    first_cell,
    flood,
    map_rows,
    on_active_lanes,
    rectangle,
    reverse_bits,
    same_colour,
    select,
    shift_columns,
    transpose,
)
from jaxarc.bitgrid._colours import colour_words
from jaxarc.bitgrid._masks import any_bits
from jaxarc.operations._table import Carry, Paint, PickUp, PutDown, among

# Lanes that carry at a time: few, so that what they carry stays in the fast caches.
CARRIED_AT_ONCE = 64


class Board(eqx.Module):
    """What operations work on: grids with their sizes, and clipboards.

    Padding cells of `grid` are 0. The clipboard lies at the top-left of the canvas;
    `filled` is the mask of its cells, the others are 0.
    """

    grid: UInt32[Array, "4 rows lanes"]
    height: Int32[Array, " lanes"]
    width: Int32[Array, " lanes"]
    clipboard: UInt32[Array, "4 rows lanes"]
    filled: UInt32[Array, "rows lanes"]


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
    block: int | None = None,
) -> Board:
    """Apply an operation 0 ... 34 to the board of each lane; any other id changes nothing.

    Painting is a few words of arithmetic and runs in every lane. Flood fill and carrying run in
    the lanes that need them, see `jaxarc.bitgrid.on_active_lanes`.

    **Arguments:**

    - `selection`: mask of the selected cells. Bits outside the canvas must be 0.
    - `source`, `source_height`, `source_width`: the pair's input, for *copy input*.
    - `block`: lanes that are gathered at a time; it changes the speed alone. The default suits
      operations drawn at random.
    """
    lanes = operation.shape[0]
    block = block or -(-3 * lanes // 8)
    paints = lambda what: among(operation, lambda row: row.paint is what)  # noqa: E731
    rows = board.grid.shape[1]
    active = area(rows, board.height, board.width)
    cells = selection & active

    reach = bounding_box(selection)
    resizes = paints(Paint.CUT_OFF) & (reach.bottom > 0)
    height = jnp.where(resizes, reach.bottom, board.height)
    width = jnp.where(resizes, reach.right, board.width)
    from_source = paints(Paint.CANVAS)
    height = jnp.where(from_source, source_height, height)
    width = jnp.where(from_source, source_width, width)

    nothing = jnp.zeros_like(cells)
    painted = jnp.where(paints(Paint.CELLS)[None], cells, nothing)
    painted = jnp.where(paints(Paint.AREA)[None], active, painted)
    painted = jnp.where(paints(Paint.CUT_OFF)[None], ~area(rows, height, width), painted)
    painted = jnp.where(from_source[None], ~nothing, painted)
    painted = on_active_lanes(
        _region,
        (cells, active, board.grid),
        paints(Paint.REGION),
        otherwise=painted,
        block=block,
    )

    colour = jnp.where(operation < 20, operation % 10, 0)
    value = jnp.where(from_source[None, None], source, colour_words(colour)[:, None])
    grid = select(painted, value, board.grid)

    carries = among(operation, lambda row: row.carry is not Carry.NOWHERE)
    grid, clipboard, filled = on_active_lanes(
        _carry,
        (operation, cells, active, board.grid, board.clipboard, board.filled),
        carries & (any_bits(cells) != 0),
        otherwise=(grid, board.clipboard, board.filled),
        block=min(block, CARRIED_AT_ONCE),
    )
    return Board(grid, height, width, clipboard, filled)


def _region(cells, active, grid) -> UInt32[Array, "rows lanes"]:
    """The region of one colour around the first selected cell."""
    seed = first_cell(cells)
    return flood(same_colour(grid, seed) & active, seed)


def _carry(operation, cells, active, grid, clipboard, filled):
    """Grid, clipboard and its filled cells after picking up, carrying and putting down."""
    rows, block = cells.shape
    box = bounding_box(cells)
    boxed = rectangle(rows, box)
    column = lambda name, what: among(operation, lambda row: getattr(row, name) is what)  # noqa: E731
    mask = jnp.where(column("pick_up", PickUp.BOX)[None], boxed, cells)
    pastes = column("pick_up", PickUp.CLIPBOARD)
    planes = jnp.where(pastes[None, None], clipboard, grid & mask[None])
    moved = jnp.concatenate([planes, jnp.where(pastes[None], filled, mask)[None]])

    # Cells change rows with columns, or columns run backwards: for three operations alone.
    rotates = among(operation, lambda row: row.carry in (Carry.CLOCKWISE, Carry.COUNTER_CLOCKWISE))
    reverses = among(operation, lambda row: row.carry in (Carry.CLOCKWISE, Carry.MIRROR_COLUMNS))
    moved = on_active_lanes(
        _turn,
        (moved, rotates, reverses),
        rotates | reverses,
        otherwise=moved,
        block=-(-block // 2),
    )
    row_offset, mirrored, column_offset = _route(operation, box)
    # What a branch takes and gives is computed once and kept. Left to itself, XLA would compute
    # the offsets anew for every word of a world, and the moved planes for each of their uses;
    # and a gather fused with elementwise work makes all of it scalar.
    moved = jax.lax.cond(
        jnp.any((row_offset != 0) | mirrored),
        map_rows,
        lambda same, *_: same,
        moved,
        row_offset,
        mirrored,
    )
    moved = jax.lax.cond(
        jnp.any(column_offset != 0), shift_columns, lambda same, _: same, moved, column_offset
    )
    planes, mask_there = moved[:4], moved[4]

    emptied = jnp.where(column("paint", Paint.NOTHING)[None], 0, mask)
    landed = jnp.where(column("put_down", PutDown.GRID)[None], mask_there & active, 0)
    onto_clipboard = column("put_down", PutDown.CLIPBOARD)
    return (
        select(landed, planes, grid & ~emptied[None]),
        jnp.where(onto_clipboard[None, None], planes, clipboard),
        jnp.where(onto_clipboard[None], mask_there, filled),
    )


def _route(operation, box: Box):
    """Where rows and columns come from.

    Row `r` comes from row `offset + r`, or `offset - r` where it is mirrored. Column `c` comes
    from `offset + c`, where columns run backwards counted from the other end of the word.
    """
    top, bottom, left, right = box
    none = jnp.zeros_like(top)
    routes = {
        # carry: row offset, rows mirrored, column offset
        Carry.UP: (none + 1, False, none),
        Carry.DOWN: (none - 1, False, none),
        Carry.LEFT: (none, False, none + 1),
        Carry.RIGHT: (none, False, none - 1),
        Carry.CLOCKWISE: (left - top, False, WORD - bottom - left),
        Carry.COUNTER_CLOCKWISE: (right - 1 + top, True, top - left),
        Carry.MIRROR_COLUMNS: (none, False, WORD - left - right),
        Carry.MIRROR_ROWS: (top + bottom - 1, True, none),
        Carry.TO_ORIGIN: (top, False, left),
        Carry.TO_ANCHOR: (-top, False, -left),
    }
    row_offset = column_offset = none
    mirrored = jnp.zeros(top.shape, bool)
    for carry, (row, mirrors, column) in routes.items():
        here = among(operation, lambda entry, carry=carry: entry.carry is carry)
        row_offset = jnp.where(here, row, row_offset)
        column_offset = jnp.where(here, column, column_offset)
        mirrored = mirrored | (here & mirrors)
    return row_offset, mirrored, column_offset


def _turn(planes, rotates, reverses):
    """Transpose some lanes, and reverse the columns of some."""
    planes = jnp.where(rotates[None, None], transpose(planes), planes)
    return jnp.where(reverses[None, None], reverse_bits(planes), planes)
