"""The specification in docs/arc/operations.md, once more, cell by cell in plain NumPy.

It shares no code with the package. It is slow and meant to be read next to the page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class OracleBoard:
    """A canvas with an active area, and a clipboard of any shape (`None` in unfilled cells)."""

    canvas: np.ndarray
    height: int
    width: int
    clipboard: list[list[int | None]]

    def active(self, row, column):
        return 0 <= row < self.height and 0 <= column < self.width


def empty_board(canvas_shape, cells):
    canvas = np.zeros(canvas_shape, int)
    canvas[: cells.shape[0], : cells.shape[1]] = cells
    return OracleBoard(canvas, cells.shape[0], cells.shape[1], [])


def point(row, column, canvas_shape):
    return box(row, column, row, column, canvas_shape)


def box(r1, c1, r2, c2, canvas_shape):
    """All cells between two corners that lie on the canvas."""
    return {
        (row, column)
        for row in range(canvas_shape[0])
        for column in range(canvas_shape[1])
        if min(r1, r2) <= row <= max(r1, r2) and min(c1, c2) <= column <= max(c1, c2)
    }


def mask(cells):
    return set(map(tuple, np.argwhere(cells).tolist()))


def apply(operation, selection, board, pair_input):
    """The board after one operation 0 ... 34; `selection` is a set of canvas cells."""
    selected = {place for place in selection if board.active(*place)}
    if operation == 31:
        return clear(board)
    if operation == 32:
        return replace(empty_board(board.canvas.shape, pair_input), clipboard=board.clipboard)
    if operation == 33:
        return resize(board, selection)
    if operation >= 34 or operation < 0 or not selected:
        return board
    if operation < 10:
        return write(board, dict.fromkeys(selected, operation))
    if operation < 20:
        return write(board, dict.fromkeys(region(board, min(selected)), operation - 10))
    if operation < 24:
        return move(board, selected, [(-1, 0), (1, 0), (0, -1), (0, 1)][operation - 20])
    if operation < 28:
        return turn(board, selected, operation)
    if operation == 29:
        return paste(board, min(r for r, _ in selected), min(c for _, c in selected))
    copied = replace(board, clipboard=lift(board, selected))
    return copied if operation == 28 else write(copied, dict.fromkeys(selected, 0))


def write(board, cells):
    """Set cells; those outside the active area are dropped."""
    canvas = board.canvas.copy()
    for (row, column), colour in cells.items():
        if board.active(row, column):
            canvas[row, column] = colour
    return replace(board, canvas=canvas)


def clear(board):
    everything = [(r, c) for r in range(board.height) for c in range(board.width)]
    return write(board, dict.fromkeys(everything, 0))


def region(board, start):
    """The cells joined to `start` over cells of its colour."""
    reached, waiting = set(), [start]
    while waiting:
        row, column = waiting.pop()
        if (row, column) in reached or not board.active(row, column):
            continue
        if board.canvas[row, column] != board.canvas[start]:
            continue
        reached.add((row, column))
        waiting += [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return reached


def move(board, selected, step):
    landing = {(r + step[0], c + step[1]): board.canvas[r, c] for r, c in selected}
    return write(write(board, dict.fromkeys(selected, 0)), landing)


def corners(selected):
    rows, columns = [r for r, _ in selected], [c for _, c in selected]
    return min(rows), min(columns), max(rows), max(columns)


def turn(board, selected, operation):
    top, left, bottom, right = corners(selected)
    block = board.canvas[top : bottom + 1, left : right + 1]
    new = {
        24: lambda: np.rot90(block, -1),
        25: lambda: np.rot90(block, 1),
        26: lambda: block[:, ::-1],
        27: lambda: block[::-1],
    }[operation]()
    emptied = write(board, {(top + i, left + j): 0 for i, j in np.ndindex(block.shape)})
    return write(emptied, {(top + i, left + j): new[i, j] for i, j in np.ndindex(new.shape)})


def lift(board, selected):
    top, left, bottom, right = corners(selected)
    return [
        [int(board.canvas[r, c]) if (r, c) in selected else None for c in range(left, right + 1)]
        for r in range(top, bottom + 1)
    ]


def paste(board, top, left):
    return write(
        board,
        {
            (top + i, left + j): colour
            for i, row in enumerate(board.clipboard)
            for j, colour in enumerate(row)
            if colour is not None
        },
    )


def resize(board, selection):
    if not selection:
        return board
    height = max(row for row, _ in selection) + 1
    width = max(column for _, column in selection) + 1
    canvas = np.zeros_like(board.canvas)
    for row, column in np.ndindex(height, width):
        if board.active(row, column):
            canvas[row, column] = board.canvas[row, column]
    return replace(board, canvas=canvas, height=height, width=width)
