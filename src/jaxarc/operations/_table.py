"""The table of operations: what each one picks up, how it carries it, where it puts it.

An edit is one of two things, or both:

- *carrying*: pick some cells up, carry them somewhere, put them down;
- *painting*: give a region one colour, or the colours of the pair's input.

The page docs/arc/operations.md says the same in sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32


class PickUp(Enum):
    """What an operation picks up."""

    NOTHING = auto()
    CELLS = auto()  # the selected cells
    BOX = auto()  # every cell in the box around them
    CLIPBOARD = auto()


class Carry(Enum):
    """How it is carried."""

    NOWHERE = auto()
    UP = auto()
    DOWN = auto()
    LEFT = auto()
    RIGHT = auto()
    CLOCKWISE = auto()
    COUNTER_CLOCKWISE = auto()
    MIRROR_COLUMNS = auto()
    MIRROR_ROWS = auto()
    TO_ORIGIN = auto()  # from the anchor to the top-left of the canvas
    TO_ANCHOR = auto()  # and back


class PutDown(Enum):
    """Where it is put down."""

    NOWHERE = auto()
    GRID = auto()
    CLIPBOARD = auto()


class Paint(Enum):
    """Which region is painted."""

    NOTHING = auto()
    CELLS = auto()  # the selected cells
    BOX = auto()  # the box around them
    REGION = auto()  # the region of one colour around the first selected cell
    AREA = auto()  # the active area
    CUT_OFF = auto()  # what lies outside the new active area
    CANVAS = auto()  # everything, with the colours of the input


class Operation(NamedTuple):
    """One row of the table."""

    id: int
    name: str
    pick_up: PickUp = PickUp.NOTHING
    carry: Carry = Carry.NOWHERE
    put_down: PutDown = PutDown.NOWHERE
    paint: Paint = Paint.NOTHING
    colour: int = 0


_CELLS, _BOX, _CLIPBOARD = PickUp.CELLS, PickUp.BOX, PickUp.CLIPBOARD
_GRID, _TO_CLIPBOARD = PutDown.GRID, PutDown.CLIPBOARD

OPERATIONS: tuple[Operation, ...] = (
    *(Operation(k, f"fill_{k}", paint=Paint.CELLS, colour=k) for k in range(10)),
    *(Operation(10 + k, f"flood_fill_{k}", paint=Paint.REGION, colour=k) for k in range(10)),
    # id, name,              picks up,   carries,                   puts down,     paints with 0
    Operation(20, "move_up", _CELLS, Carry.UP, _GRID, Paint.CELLS),
    Operation(21, "move_down", _CELLS, Carry.DOWN, _GRID, Paint.CELLS),
    Operation(22, "move_left", _CELLS, Carry.LEFT, _GRID, Paint.CELLS),
    Operation(23, "move_right", _CELLS, Carry.RIGHT, _GRID, Paint.CELLS),
    Operation(24, "rotate_clockwise", _BOX, Carry.CLOCKWISE, _GRID, Paint.BOX),
    Operation(25, "rotate_counter_clockwise", _BOX, Carry.COUNTER_CLOCKWISE, _GRID, Paint.BOX),
    Operation(26, "flip_left_right", _BOX, Carry.MIRROR_COLUMNS, _GRID, Paint.BOX),
    Operation(27, "flip_top_bottom", _BOX, Carry.MIRROR_ROWS, _GRID, Paint.BOX),
    Operation(28, "copy", _CELLS, Carry.TO_ORIGIN, _TO_CLIPBOARD),
    Operation(29, "paste", _CLIPBOARD, Carry.TO_ANCHOR, _GRID),
    Operation(30, "cut", _CELLS, Carry.TO_ORIGIN, _TO_CLIPBOARD, Paint.CELLS),
    Operation(31, "clear", paint=Paint.AREA),
    Operation(32, "copy_input", paint=Paint.CANVAS),
    Operation(33, "resize", paint=Paint.CUT_OFF),
    Operation(34, "submit"),
    Operation(35, "next_demo"),
    Operation(36, "previous_demo"),
    Operation(37, "next_test"),
    Operation(38, "previous_test"),
    Operation(39, "reset_pair"),
    Operation(40, "first_unsolved_demo"),
    Operation(41, "first_open_test"),
)

NUM_EDITS = 35  # operations 0 ... 34; the rest go from pair to pair
NUM_OPERATIONS = len(OPERATIONS)

_BY_NAME = {operation.name: operation.id for operation in OPERATIONS}


def operation_id(name: str) -> int:
    """The id of an operation by its name in the table: `operation_id("submit") == 34`."""
    if name not in _BY_NAME:
        raise ValueError(f"no operation {name!r}; there are: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def has_id(
    operation: Int32[Array, "*lanes"], ids: tuple[int, ...] | list[int]
) -> Bool[Array, "*lanes"]:
    """Whether the operation is one of `ids`, sorted: a comparison for each run of neighbours.

    A lookup in an array would be a gather, and a gather inside an elementwise loop keeps XLA
    from vectorising it.
    """
    starts = [k for k in ids if k - 1 not in ids]
    ends = [k for k in ids if k + 1 not in ids]
    result = None
    for start, end in zip(starts, ends, strict=True):
        run = operation == start if start == end else (operation >= start) & (operation <= end)
        result = run if result is None else result | run
    return jnp.zeros(operation.shape, bool) if result is None else result


def among(
    operation: Int32[Array, "*lanes"], which: Callable[[Operation], bool]
) -> Bool[Array, "*lanes"]:
    """Whether the operation's row of the table meets a condition; found while tracing."""
    return has_id(operation, [row.id for row in OPERATIONS if which(row)])
