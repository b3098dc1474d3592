"""The operations against the oracle: random boards, sizes, selections, clipboards, sequences."""

from __future__ import annotations

import arc_oracle as oracle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import bitgrid, operations
from jaxarc.operations import Board

CASES = 2000  # an operation, in the quick tests
MANY = 50_000  # and in the slow ones
CHUNK = 2000  # cases in one compiled call


def random_canvases(rng, count, shape):
    """Grids of every size on a canvas, some like noise, some of few colours or with blocks."""
    sizes = np.stack([rng.integers(1, side + 1, count) for side in shape], axis=1)
    colours = rng.choice([1, 2, 3, 10], count)[:, None, None]
    cells = rng.integers(0, 10, (count, *shape)) % colours
    shift = rng.integers(0, 10, count)[:, None, None]
    cells = np.where(cells > 0, (cells + shift) % 10, 0)
    return cut(cells, sizes), sizes


def cut(cells, sizes):
    row, column = np.mgrid[: cells.shape[1], : cells.shape[2]]
    inside = (row < sizes[:, :1, None]) & (column < sizes[:, 1:, None])
    return np.where(inside, cells, 0).astype(np.uint8)


def random_selections(rng, count, shape):
    """Points, boxes and masks, some empty, on the whole canvas (so on padding as well)."""
    row, column = np.mgrid[: shape[0], : shape[1]]
    a, b = (np.sort(rng.integers(-2, side + 2, (count, 2, 1, 1)), axis=1) for side in shape)
    small = rng.uniform(size=(count, 1, 1)) < 0.5  # half of the boxes near the top left
    a, b = (np.where(small[:, None], x // 4, x) for x in (a, b))
    boxes = (row >= a[:, 0]) & (row <= a[:, 1]) & (column >= b[:, 0]) & (column <= b[:, 1])
    points = (row == a[:, 0]) & (column == b[:, 0])
    noise = rng.uniform(size=(count, *shape)) < rng.choice([0.005, 0.1, 0.9], (count, 1, 1))
    kind = rng.integers(0, 4, count)[:, None, None]
    return np.select([kind == 0, kind == 1, kind == 2], [boxes, points, noise], noise & boxes)


def random_clipboards(rng, count, shape):
    """Blocks at the top left: colours, and which cells are filled; a fifth are empty."""
    cells, sizes = random_canvases(rng, count, shape)
    full = cut(np.ones_like(cells), sizes).astype(bool)
    filled = full & (rng.uniform(size=full.shape) < rng.choice([0, 0.5, 1, 1, 1], (count, 1, 1)))
    return np.where(filled, cells, 0).astype(np.uint8), filled


def pack_board(cells, sizes, clipboard, filled):
    grid, clip = (bitgrid.pack_host(x) for x in (cells, clipboard))
    mask = np.asarray(bitgrid.pack_mask(jnp.asarray(filled)))
    grid, clip, mask = (jnp.asarray(np.moveaxis(x, 0, -1)) for x in (grid, clip, mask))
    height, width = jnp.asarray(sizes.astype(np.int32).T)
    return Board(grid, height, width, clip, mask)


def unpack_board(board, shape):
    """Canvas, sizes, clipboard and its filled cells, batch first."""
    grid, clip, filled = bitgrid.from_lanes((board.grid, board.clipboard, board.filled))
    everything = (
        bitgrid.unpack(grid, *shape),
        jnp.stack([board.height, board.width], axis=1),
        bitgrid.unpack(clip, *shape),
        bitgrid.unpack_mask(filled, *shape),
    )
    return [np.asarray(x) for x in everything]


def to_oracle(cells, size, clipboard, filled):
    block = []
    if filled.any():
        rows, columns = np.nonzero(filled)
        block = [
            [int(clipboard[r, c]) if filled[r, c] else None for c in range(columns.max() + 1)]
            for r in range(rows.max() + 1)
        ]
    return oracle.OracleBoard(cells.astype(int), int(size[0]), int(size[1]), block)


def from_oracle(board):
    """The same four arrays as `unpack_board` gives."""
    clip = np.zeros_like(board.canvas)
    filled = np.zeros(board.canvas.shape, bool)
    for i, row in enumerate(board.clipboard):
        for j, colour in enumerate(row):
            if colour is not None:
                clip[i, j], filled[i, j] = colour, True
    return board.canvas, np.array([board.height, board.width]), clip, filled


@jax.jit
def compiled(operation, selection, board, source, source_size):
    words = jnp.moveaxis(bitgrid.pack_mask(selection), 0, -1)
    return operations.apply_operation(operation, words, board, source, *source_size)


def run(ops, selection, board, source, source_sizes):
    packed = jnp.asarray(np.moveaxis(bitgrid.pack_host(source), 0, -1))
    sizes = tuple(jnp.asarray(source_sizes.astype(np.int32).T))
    return compiled(jnp.asarray(ops, jnp.int32), jnp.asarray(selection), board, packed, sizes)


def compare(rng, operation, count, shape=(30, 30)):
    """`count` random cases of one operation, here and in the oracle."""
    for _ in range(-(-count // CHUNK)):
        cells, sizes = random_canvases(rng, CHUNK, shape)
        clipboard = random_clipboards(rng, CHUNK, shape)
        selection = random_selections(rng, CHUNK, shape)
        source, source_sizes = random_canvases(rng, CHUNK, shape)
        board = pack_board(cells, sizes, *clipboard)
        ops = np.full(CHUNK, operation)
        results = unpack_board(run(ops, selection, board, source, source_sizes), shape)
        expected = []
        for i in range(CHUNK):
            before = to_oracle(cells[i], sizes[i], clipboard[0][i], clipboard[1][i])
            pair_input = source[i, : source_sizes[i, 0], : source_sizes[i, 1]]
            after = oracle.apply(operation, oracle.mask(selection[i]), before, pair_input)
            expected.append(from_oracle(after))
        check(results, expected, operations.OPERATIONS[operation].name)


def check(results, expected, what):
    """Equal in every world, or say in which one not."""
    for name, got, wanted in zip(
        ("grid", "size", "clipboard", "filled"), results, zip(*expected, strict=True), strict=True
    ):
        different = np.any((got != np.stack(wanted)).reshape(len(got), -1), axis=1)
        assert not different.any(), f"{name} after {what} in case {np.flatnonzero(different)[0]}"


IDS = [row.name for row in operations.OPERATIONS]


@pytest.mark.parametrize("operation", range(35), ids=IDS[:35])
def test_each_operation_equals_the_oracle(operation):
    compare(np.random.default_rng(operation), operation, CASES)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("operation", range(35), ids=IDS[:35])
def test_each_operation_equals_the_oracle_in_many_cases(operation):
    compare(np.random.default_rng(100 + operation), operation, MANY)


@pytest.mark.parametrize("shape", [(6, 11), (32, 32), (9, 4)], ids=str)
def test_canvases_of_other_shapes(shape, monkeypatch):
    monkeypatch.setitem(globals(), "CHUNK", 100)
    for operation in range(35):
        compare(np.random.default_rng(operation), operation, 100, shape)


def play(seed, worlds, steps, shape=(30, 30)):
    """Long random sequences from empty clipboards, compared after each step."""
    rng = np.random.default_rng(seed)
    cells, sizes = random_canvases(rng, worlds, shape)
    source, source_sizes = random_canvases(rng, worlds, shape)
    none = np.zeros_like(cells)
    board = pack_board(cells, sizes, none, none.astype(bool))
    empty = (none[0], none[0].astype(bool))
    here = [to_oracle(c, s, *empty) for c, s in zip(cells, sizes, strict=True)]
    for step in range(steps):
        ops = rng.integers(0, 35, worlds)
        selection = random_selections(rng, worlds, shape)
        board = run(ops, selection, board, source, source_sizes)
        results = unpack_board(board, shape)
        for i in range(worlds):
            pair_input = source[i, : source_sizes[i, 0], : source_sizes[i, 1]]
            here[i] = oracle.apply(ops[i], oracle.mask(selection[i]), here[i], pair_input)
        check(results, [from_oracle(board) for board in here], f"step {step}, operations {ops}")


def test_long_sequences_equal_the_oracle():
    play(seed=1, worlds=50, steps=150)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_very_long_sequences_equal_the_oracle():
    play(seed=2, worlds=200, steps=1500)


def test_ids_outside_the_table_change_nothing():
    rng = np.random.default_rng(0)
    cells, sizes = random_canvases(rng, CHUNK, (30, 30))
    board = pack_board(cells, sizes, *random_clipboards(rng, CHUNK, (30, 30)))
    selection = random_selections(rng, CHUNK, (30, 30))
    ops = rng.choice([-1, -7, 42, 1000, 35, 39], CHUNK)
    after = run(ops, selection, board, cells, sizes)
    jax.tree.map(np.testing.assert_array_equal, after, board)


@pytest.mark.parametrize("block", [1, 64])
def test_the_block_size_changes_nothing(block):
    rng = np.random.default_rng(7)
    count = 64
    cells, sizes = random_canvases(rng, count, (30, 30))
    board = pack_board(cells, sizes, *random_clipboards(rng, count, (30, 30)))
    selection = random_selections(rng, count, (30, 30))
    words = jnp.moveaxis(bitgrid.pack_mask(jnp.asarray(selection)), 0, -1)
    ops = jnp.asarray(rng.integers(8, 28, count), jnp.int32)
    source = (board.grid, board.height, board.width)
    step = jax.jit(operations.apply_operation, static_argnames="block")
    one, other = (step(ops, words, board, *source, block=b) for b in (block, 13))
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_the_table_is_complete_and_named():
    assert [row.id for row in operations.OPERATIONS] == list(range(42))
    assert len(set(IDS)) == 42
    assert operations.operation_id("submit") == operations.NUM_EDITS - 1 == 34
    assert operations.operation_id("move_left") == 22
    with pytest.raises(ValueError, match="there are: fill_0"):
        operations.operation_id("paint")


def edit(operation, selection, cells, shape=(30, 30), clipboard=None):
    """One operation on one grid; gives the active cells."""
    cells = np.asarray(cells, np.uint8)
    canvas = np.zeros((1, *shape), np.uint8)
    canvas[0, : cells.shape[0], : cells.shape[1]] = cells
    none = np.zeros_like(canvas) if clipboard is None else clipboard
    board = pack_board(canvas, np.array([cells.shape]), none, none.astype(bool))
    chosen = np.zeros((1, *shape), bool)
    for place in selection:
        chosen[(0, *place)] = True
    board = run([operation], chosen, board, canvas, np.array([cells.shape]))
    height, width = int(board.height[0]), int(board.width[0])
    return np.asarray(bitgrid.unpack(bitgrid.from_lanes(board.grid), height, width))[0].tolist()


def test_moves_go_the_way_they_are_called():
    line = [[0, 5, 0]]
    assert edit(23, [(0, 1)], line) == [[0, 0, 5]]
    assert edit(22, [(0, 1)], line) == [[5, 0, 0]]
    assert edit(22, [(0, 0), (0, 1)], [[3, 5, 0]]) == [[5, 0, 0]]
    assert edit(20, [(1, 0)], [[0], [4]]) == [[4], [0]]
    assert edit(21, [(1, 0)], [[0], [4]]) == [[0], [0]]


def test_a_rotated_object_is_still_there():
    grid = [[1, 2, 3], [4, 5, 6], [0, 0, 0]]
    box = [(r, c) for r in (0, 1) for c in (0, 1, 2)]
    assert edit(24, box, grid) == [[4, 1, 0], [5, 2, 0], [6, 3, 0]]
    assert edit(25, box, grid) == [[3, 6, 0], [2, 5, 0], [1, 4, 0]]
    assert edit(24, [(0, 0), (0, 1), (0, 2)], [[1, 2, 3]]) == [[1, 0, 0]]


def test_a_grid_can_grow():
    assert edit(33, [(1, 2)], [[7, 8]]) == [[7, 8, 0], [0, 0, 0]]
    assert edit(33, [(0, 0)], [[7, 8], [9, 9]]) == [[7]]


def test_flood_fill_has_no_end_but_the_region():
    corridor = np.zeros((30, 30), np.uint8)
    corridor[::2] = 1
    corridor[1::4, -1] = 1
    corridor[3::4, 0] = 1
    # Lying, one sweep over the rows fills it; standing, it takes a sweep for each turn.
    for maze in (corridor, corridor.T):
        filled = np.array(edit(15, [(0, 0)], maze))
        np.testing.assert_array_equal(filled, np.where(maze == 1, 5, 0))
    assert edit(15, [(0, 0)], [[1, 0, 1]]) == [[5, 0, 1]]
