"""One ARC task from its JSON form, checked to the last cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from worldloom._errors import WorldloomError

MAX_SIDE = 30
COLOURS = 10


class BadTaskError(WorldloomError, ValueError):
    """A task file does not hold what the ARC format asks for."""


class UnknownTaskError(WorldloomError, KeyError, IndexError):
    """No task, pair, tag or subset of that name or number."""

    def __str__(self) -> str:
        return self.args[0]


@dataclass(frozen=True, eq=False)
class Pair:
    """One input grid and its output grid, `uint8[height, width]`; a hidden output is `None`."""

    input: np.ndarray
    output: np.ndarray | None


@dataclass(frozen=True, eq=False)
class RawTask:
    """One task on the host, its grids unpadded.

    `tags` are the names of the groups that the task belongs to: its split, its concept.
    """

    id: str
    demos: tuple[Pair, ...]
    tests: tuple[Pair, ...]
    tags: frozenset[str] = frozenset()


def parse_task(
    task: Any,
    *,
    id: str,
    source: str,
    tags: frozenset[str] = frozenset(),
    null_as_zero: bool = False,
) -> RawTask:
    """The official form, `{"train": [{"input": grid, "output": grid}, ...], "test": [...]}`.

    A test pair may lack its output. Anything else that is missing, and any cell that is not an
    integer 0 ... 9, is refused with `source`, task, pair and cell.

    **Arguments:**

    - `null_as_zero`: take `null` cells as 0, as Mini-ARC means them.
    """
    where = f"{source}: task {id!r}"
    if not isinstance(task, Mapping):
        raise BadTaskError(f"{where}: expected an object with 'train' and 'test', got {task!r:.60}")
    parts: dict[str, tuple[Pair, ...]] = {}
    for part in ("train", "test"):
        pairs = task.get(part)
        if not isinstance(pairs, Sequence) or isinstance(pairs, str) or not pairs:
            raise BadTaskError(f"{where}: {part!r} must be a list of at least one pair")
        parts[part] = tuple(
            _pair(pair, f"{where}, {part} pair {number}", part == "test", null_as_zero)
            for number, pair in enumerate(pairs)
        )
    return RawTask(id, parts["train"], parts["test"], tags)


def _pair(pair: Any, where: str, may_hide: bool, null_as_zero: bool) -> Pair:
    if not isinstance(pair, Mapping) or "input" not in pair:
        raise BadTaskError(f"{where}: expected an object with 'input' and 'output'")
    output = pair.get("output")
    if output is None and not may_hide:
        raise BadTaskError(f"{where}: the output is missing")
    return Pair(
        parse_grid(pair["input"], where=f"{where}, input", null_as_zero=null_as_zero),
        None
        if output is None
        else parse_grid(output, where=f"{where}, output", null_as_zero=null_as_zero),
    )


def parse_grid(grid: Any, *, where: str, null_as_zero: bool = False) -> np.ndarray:
    """A list of rows to `uint8[height, width]`; `where` opens the message of any error."""
    if not isinstance(grid, list) or not grid or not all(isinstance(row, list) for row in grid):
        raise BadTaskError(f"{where}: expected a list of rows, got {grid!r:.60}")
    height, width = len(grid), len(grid[0])
    if not (1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE):
        raise BadTaskError(f"{where}: {height} x {width} cells; a side has 1 to {MAX_SIDE}")
    allowed = {int, type(None)} if null_as_zero else {int}
    for number, row in enumerate(grid):
        if len(row) != width:
            raise BadTaskError(f"{where}: row {number} has {len(row)} cells, row 0 has {width}")
        if not (set(map(type, row)) <= allowed):
            raise _bad_cell(grid, where, lambda cell: type(cell) not in allowed)
    if null_as_zero:
        grid = [[cell or 0 for cell in row] for row in grid]
    if min(map(min, grid)) < 0 or max(map(max, grid)) >= COLOURS:
        raise _bad_cell(grid, where, lambda cell: not 0 <= cell < COLOURS)
    return np.array(grid, np.uint8)


def _bad_cell(grid, where, is_bad) -> BadTaskError:
    row, column, cell = next(
        (row, column, cell)
        for row, cells in enumerate(grid)
        for column, cell in enumerate(cells)
        if is_bad(cell)
    )
    return BadTaskError(
        f"{where}, cell ({row}, {column}): {cell!r} is not a colour; "
        f"expected an integer 0 to {COLOURS - 1}"
        + ("; null cells are read as 0 with null_as_zero=True" if cell is None else "")
    )
