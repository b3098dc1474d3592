"""One edit of many ARC grids: bits with compaction against the naive form, a vmapped switch.

    python benchmarks/arc_step.py [--batch 1024] [--steps 10] [--rounds 9] [--quick]

Both sides apply the same random operations, all 35, to the same boards; the grids they end with
are compared before anything is timed. The naive side works on cells, one branch an operation,
which `vmap` runs in every world.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxarc.bitgrid import from_lanes, pack_mask, to_lanes, unpack
from jaxarc.data import load
from jaxarc.operations import Board, apply_operation
from worldloom import bench

GROUP = "arc"
NAIVE, OURS = "vmap of a switch", "bits, compacted"
SIDE = 30
ROW, COLUMN = jnp.mgrid[:SIDE, :SIDE]


def take(cells, row, column):
    """`cells[row, column]`, 0 outside."""
    inside = (row >= 0) & (row < SIDE) & (column >= 0) & (column < SIDE)
    return jnp.where(inside, cells[row.clip(0, SIDE - 1), column.clip(0, SIDE - 1)], 0)


def flood(same, seed):
    """Cell by cell until nothing changes."""

    def grow(carry):
        reached, _ = carry
        p = jnp.pad(reached, 1)
        near = p[2:, 1:-1] | p[:-2, 1:-1] | p[1:-1, 2:] | p[1:-1, :-2]
        after = reached | (near & same)
        return after, jnp.any(after != reached)

    return jax.lax.while_loop(lambda carry: carry[1], grow, (seed & same, jnp.array(True)))[0]


def naive_edit(operation, selection, world, source, source_size):
    """One operation in one world, on cells, by a switch of 35 branches."""
    grid, size, clip, filled = world
    active = (size[0] > ROW) & (size[1] > COLUMN)
    cells = selection & active
    some = jnp.any(cells)
    rows, columns = jnp.any(cells, 1), jnp.any(cells, 0)
    top, left = jnp.argmax(rows), jnp.argmax(columns)
    bottom, right = SIDE - 1 - jnp.argmax(rows[::-1]), SIDE - 1 - jnp.argmax(columns[::-1])
    box = (top <= ROW) & (bottom >= ROW) & (left <= COLUMN) & (right >= COLUMN) & some

    def fill(colour):
        return lambda: (jnp.where(cells, colour, grid), size, clip, filled)

    def flooded(colour):
        def branch():
            first = jnp.argmax(cells)
            same = (grid == grid.reshape(-1)[first]) & active
            region = flood(same, (first == ROW * SIDE + COLUMN) & some)
            return jnp.where(region, colour, grid), size, clip, filled

        return branch

    def carry(mask, row, column):
        def branch():
            there = take(mask, row, column).astype(bool) & active
            emptied = jnp.where(mask, 0, grid)
            return jnp.where(there, take(grid, row, column), emptied), size, clip, filled

        return branch

    def copied(after):
        row, column = ROW + top, COLUMN + left
        block = take(jnp.where(cells, grid, 0), row, column)
        there = take(cells, row, column).astype(bool)
        return after, size, jnp.where(some, block, clip), jnp.where(some, there, filled)

    def paste():
        row, column = ROW - top, COLUMN - left
        there = take(filled, row, column).astype(bool) & active & some
        return jnp.where(there, take(clip, row, column), grid), size, clip, filled

    def resize():
        any_row, any_column = jnp.any(selection, 1), jnp.any(selection, 0)
        new = jnp.stack([SIDE - jnp.argmax(any_row[::-1]), SIDE - jnp.argmax(any_column[::-1])])
        new = jnp.where(jnp.any(selection), new, size)
        return jnp.where((new[0] > ROW) & (new[1] > COLUMN), grid, 0), new, clip, filled

    branches = [
        *(fill(colour) for colour in range(10)),
        *(flooded(colour) for colour in range(10)),
        carry(cells, ROW + 1, COLUMN),
        carry(cells, ROW - 1, COLUMN),
        carry(cells, ROW, COLUMN + 1),
        carry(cells, ROW, COLUMN - 1),
        carry(box, bottom - (COLUMN - left), left + (ROW - top)),
        carry(box, top + (COLUMN - left), right - (ROW - top)),
        carry(box, ROW, left + right - COLUMN),
        carry(box, top + bottom - ROW, COLUMN),
        lambda: copied(grid),
        paste,
        lambda: copied(jnp.where(cells, 0, grid)),
        lambda: (jnp.where(active, 0, grid), size, clip, filled),
        lambda: (source, source_size, clip, filled),
        resize,
        lambda: (grid, size, clip, filled),
    ]
    return jax.lax.switch(operation, branches)


Bound = tuple[bench.Program, tuple[Any, ...]]


def programs(batch: int, steps: int) -> dict[str, Bound]:
    """Both sides, compiled, with their arguments; their results are the same."""
    tasks = load("AGI1-train").buffer()
    keys = jax.random.split(jax.random.key(0), 5)
    pair = tasks.demo(tasks.sample(keys[0], (batch,)), 0)
    size = pair.input_size.astype(jnp.int32)
    operations = jax.random.randint(keys[1], (steps, batch), 0, 35, jnp.int32)
    corners = jax.random.randint(keys[2], (4, steps, batch, 1, 1), 0, 16)
    high, low = jnp.maximum(*corners[:2]), jnp.minimum(*corners[:2])
    right, left = jnp.maximum(*corners[2:]), jnp.minimum(*corners[2:])
    selections = (low <= ROW) & (high >= ROW) & (left <= COLUMN) & (right >= COLUMN)
    words = jax.jit(lambda s: jnp.moveaxis(pack_mask(s), 1, -1))(selections)

    grid = to_lanes(pair.input)
    source = (grid, size[:, 0], size[:, 1])
    board = Board(*source, jnp.zeros_like(grid), jnp.zeros_like(grid[0]))
    cells = jax.jit(lambda g: unpack(g, SIDE, SIDE).astype(jnp.int32))(pair.input)
    world = (cells, size, jnp.zeros_like(cells), jnp.zeros(cells.shape, bool))

    def bits(board, source, operations, words):
        step = lambda board, x: (apply_operation(x[0], x[1], board, *source), None)  # noqa: E731
        return jax.lax.scan(step, board, (operations, words))[0]

    def naive(world, cells, size, operations, selections):
        edit = jax.vmap(naive_edit)
        step = lambda world, x: (edit(x[0], x[1], world, cells, size), None)  # noqa: E731
        return jax.lax.scan(step, world, (operations, selections))[0]

    our_args = (board, source, operations, words)
    their_args = (world, cells, size, operations, selections)
    fast, slow = bench.build(bits, *our_args), bench.build(naive, *their_args)
    ours, theirs = fast(*our_args), slow(*their_args)
    assert (unpack(from_lanes(ours.grid), SIDE, SIDE) == theirs[0]).all(), "the grids differ"
    assert (jnp.stack([ours.height, ours.width], 1) == theirs[1]).all(), "the sizes differ"

    return {NAIVE: (slow, their_args), OURS: (fast, our_args)}


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(9, 5))
    script.parser.add_argument("--batch", type=int, help="worlds; 1024, quick 256")
    script.parser.add_argument("--steps", type=int, default=10)
    options = script.start()
    batch, steps = options.batch or (256 if options.quick else 1024), options.steps
    sides = programs(batch, steps)
    found = bench.compare(
        {name: lambda side=side: side[0](*side[1]) for name, side in sides.items()},
        rounds=options.rounds,
        items=batch * steps,
        unit="edits",
        title="edits of ARC grids, all 35 operations at random",
    )
    script.case(
        found,
        ours=OURS,
        naive=NAIVE,
        compiling={name: program.seconds for name, (program, _) in sides.items()},
        memory={name: program.temporaries / batch for name, (program, _) in sides.items()},
        memory_of="temporaries a world",
    )
    script.finish()


if __name__ == "__main__":
    main()
