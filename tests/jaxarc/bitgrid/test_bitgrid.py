"""Every function of `bitgrid` against the same thing done cell by cell in NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxarc import bitgrid
from jaxarc.bitgrid import Box, _compact

SHAPES = [(30, 30), (5, 9), (32, 32), (17, 3), (1, 1)]
WORLDS = 40


def random_cells(rng, shape, worlds=WORLDS):
    return rng.integers(0, 10, (worlds, *shape)).astype(np.uint8)


def random_mask(rng, shape, worlds=WORLDS):
    """Masks of all densities, the empty and the full one among them."""
    density = rng.uniform(-0.1, 1.1, (worlds, 1, 1))
    return rng.uniform(size=(worlds, *shape)) < density


def lanes(packed):
    return bitgrid.to_lanes(packed)


def cells_of(words, shape):
    return np.asarray(bitgrid.unpack(bitgrid.from_lanes(words), *shape))


def mask_of(words, shape):
    return np.asarray(bitgrid.unpack_mask(bitgrid.from_lanes(words), *shape))


@pytest.fixture(params=SHAPES, ids=str)
def case(request):
    rng = np.random.default_rng(sum(request.param))
    shape = request.param
    return rng, shape, random_cells(rng, shape), random_mask(rng, shape)


def test_packing_is_lossless_and_the_host_packs_alike(case):
    _, shape, cells, mask = case
    packed = bitgrid.pack(jnp.asarray(cells))
    assert packed.shape == (WORLDS, 4, max(shape))
    np.testing.assert_array_equal(bitgrid.unpack(packed, *shape), cells)
    np.testing.assert_array_equal(bitgrid.pack_host(cells), packed)
    words = bitgrid.pack_mask(jnp.asarray(mask))
    np.testing.assert_array_equal(bitgrid.unpack_mask(words, *shape), mask)


def test_lanes_and_back():
    tree = {"a": jnp.arange(24).reshape(2, 3, 4), "b": jnp.arange(2)}
    there = bitgrid.to_lanes(tree)
    assert there["a"].shape == (3, 4, 2)
    assert there["b"].shape == (2,)
    np.testing.assert_array_equal(bitgrid.from_lanes(there)["a"], tree["a"])


def test_rectangle_keeps_to_the_canvas(case):
    rng, shape, _, _ = case
    rows = max(shape)
    box = rng.integers(-4, 37, (4, WORLDS)).astype(np.int32)
    words = bitgrid.rectangle(rows, Box(*map(jnp.asarray, box)))
    row, column = np.mgrid[:rows, :32]
    top, bottom, left, right = box[:, :, None, None]
    expected = (row >= top) & (row < bottom) & (column >= left) & (column < right)
    np.testing.assert_array_equal(mask_of(words, (rows, 32)), expected)


def test_one_cell_and_the_first_cell(case):
    rng, shape, _, mask = case
    row, column = rng.integers(0, shape[0], WORLDS), rng.integers(0, shape[1], WORLDS)
    words = bitgrid.cell(max(shape), jnp.int32(row), jnp.int32(column))
    expected = np.zeros((WORLDS, *shape), bool)
    expected[np.arange(WORLDS), row, column] = True
    np.testing.assert_array_equal(mask_of(words, shape), expected)

    found = mask_of(bitgrid.first_cell(lanes(bitgrid.pack_mask(jnp.asarray(mask)))), shape)
    for world in range(WORLDS):
        np.testing.assert_array_equal(np.argwhere(found[world]), np.argwhere(mask[world])[:1])


def test_count_and_bounding_box(case):
    _, _, _, mask = case
    words = lanes(bitgrid.pack_mask(jnp.asarray(mask)))
    np.testing.assert_array_equal(bitgrid.count(words), mask.sum(axis=(1, 2)))
    box = bitgrid.bounding_box(words)
    for world in range(WORLDS):
        rows, columns = np.nonzero(mask[world])
        expected = (0, 0, 0, 0)
        if len(rows):
            expected = (rows.min(), rows.max() + 1, columns.min(), columns.max() + 1)
        assert tuple(int(side[world]) for side in box) == expected


def test_colours_are_read_compared_and_painted(case):
    rng, shape, cells, mask = case
    other = random_cells(rng, shape)
    grid, grid2 = (lanes(bitgrid.pack(jnp.asarray(c))) for c in (cells, other))
    words = lanes(bitgrid.pack_mask(jnp.asarray(mask)))
    colour = rng.integers(0, 10, WORLDS)
    paint = colour[:, None, None].astype(np.uint8)
    np.testing.assert_array_equal(mask_of(bitgrid.equal(grid, grid2), shape), cells == other)
    found = bitgrid.is_colour(grid, jnp.int32(colour))
    np.testing.assert_array_equal(mask_of(found, shape), cells == paint)
    painted = bitgrid.paint(grid, words, jnp.int32(colour))
    np.testing.assert_array_equal(cells_of(painted, shape), np.where(mask, paint, cells))
    mixed = bitgrid.select(words, grid, grid2)
    np.testing.assert_array_equal(cells_of(mixed, shape), np.where(mask, cells, other))
    row, column = rng.integers(-2, shape[0], WORLDS), rng.integers(-2, shape[1], WORLDS)
    inside = (row >= 0) & (column >= 0)
    here = np.where(inside, cells[np.arange(WORLDS), row.clip(0), column.clip(0)], 0)
    one = bitgrid.cell(max(shape), jnp.int32(row), jnp.int32(column))
    alike = mask_of(bitgrid.same_colour(grid, one), shape)
    np.testing.assert_array_equal(alike, cells == here[:, None, None])
    table = rng.permuted(np.tile(np.arange(10, dtype=np.uint8), (WORLDS, 1)), axis=1)
    recoloured = bitgrid.recolour(grid, jnp.asarray(table.T))
    expected = np.take_along_axis(table, cells.reshape(WORLDS, -1), 1).reshape(cells.shape)
    np.testing.assert_array_equal(cells_of(recoloured, shape), expected)


@pytest.mark.parametrize("reflect", [False, True])
def test_rows_and_columns_are_mapped(case, reflect):
    rng, shape, cells, _ = case
    side = max(shape)
    square = np.zeros((WORLDS, side, 32), np.uint8)
    square[:, : shape[0], : shape[1]] = cells
    grid = lanes(bitgrid.pack(jnp.asarray(cells)))
    offset = rng.integers(-40, 72, WORLDS).astype(np.int32)
    flag = jnp.full(WORLDS, reflect)
    by_rows = cells_of(bitgrid.map_rows(grid, jnp.asarray(offset), flag), (side, 32))
    by_columns = cells_of(bitgrid.map_columns(grid, jnp.asarray(offset), flag), (side, 32))
    for world in range(WORLDS):
        for new, axis, length in ((by_rows, 0, side), (by_columns, 1, 32)):
            place = np.arange(length)
            source = offset[world] - place if reflect else offset[world] + place
            inside = (source >= 0) & (source < length)
            expected = np.take(square[world], np.where(inside, source, 0), axis)
            expected = expected * (inside[:, None] if axis == 0 else inside)
            np.testing.assert_array_equal(new[world], expected)


def test_transposition_and_reversal(case):
    _, shape, cells, _ = case
    side = max(shape)
    grid = lanes(bitgrid.pack(jnp.asarray(cells)))
    turned = cells_of(bitgrid.transpose(grid), (side, side))
    np.testing.assert_array_equal(turned[:, : shape[1], : shape[0]], cells.transpose(0, 2, 1))
    assert turned.sum() == cells.sum()
    mirrored = cells_of(bitgrid.reverse_bits(grid), (side, 32))
    np.testing.assert_array_equal(mirrored[:, : shape[0], 32 - shape[1] :], cells[:, :, ::-1])


def flood_by_hand(open_cells, seed):
    """Cell after cell from a stack."""
    reached = np.zeros_like(open_cells)
    stack = [tuple(place) for place in np.argwhere(seed & open_cells)]
    while stack:
        row, column = stack.pop()
        inside = 0 <= row < open_cells.shape[0] and 0 <= column < open_cells.shape[1]
        if inside and open_cells[row, column] and not reached[row, column]:
            reached[row, column] = True
            stack += [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
    return reached


def flood_in_bits(open_cells, seed):
    words = [lanes(bitgrid.pack_mask(jnp.asarray(mask))) for mask in (open_cells, seed)]
    return mask_of(jax.jit(bitgrid.flood)(*words), open_cells.shape[1:])


@pytest.mark.parametrize("shape", [(30, 30), (32, 32), (7, 20)], ids=str)
def test_flood_fill_equals_a_walk_from_cell_to_cell(shape):
    rng = np.random.default_rng(5)
    open_cells = rng.uniform(size=(300, *shape)) < rng.uniform(0.4, 0.95, (300, 1, 1))
    seed = rng.uniform(size=open_cells.shape) < 0.01
    expected = np.stack([flood_by_hand(o, s) for o, s in zip(open_cells, seed, strict=True)])
    np.testing.assert_array_equal(flood_in_bits(open_cells, seed), expected)


def serpentine(side):
    """A corridor that fills the canvas: full rows, joined at alternate ends."""
    corridor = np.zeros((side, side), bool)
    corridor[::2] = True
    corridor[1::4, -1] = True
    corridor[3::4, 0] = True
    return corridor


def spiral(side):
    """A corridor that winds inwards, one wall between its turns."""
    corridor = np.zeros((side + 4, side + 4), bool)
    beyond = np.ones_like(corridor)
    beyond[2:-2, 2:-2] = False
    place, heading = np.array([2, 2]), np.array([0, 1])
    for _ in range(side * side):
        corridor[tuple(place)] = True
        ahead, after = tuple(place + heading), tuple(place + 2 * heading)
        if beyond[ahead] or corridor[ahead] or corridor[after]:
            heading = np.array([heading[1], -heading[0]])
        else:
            place = place + heading
    return corridor[2:-2, 2:-2]


@pytest.mark.parametrize("shape", [serpentine, spiral])
@pytest.mark.parametrize("turned", [False, True])
def test_flood_fill_reaches_the_end_of_a_winding_corridor(shape, turned):
    corridor = shape(30)
    corridor = corridor.T if turned else corridor
    assert corridor.sum() > 200
    seed = np.zeros_like(corridor)
    seed[0, 0] = True
    assert flood_by_hand(corridor, seed).sum() == corridor.sum()
    np.testing.assert_array_equal(flood_in_bits(corridor[None], seed[None])[0], corridor)


@settings(max_examples=30)
@given(st.data())
def test_flood_is_a_closure(data):
    """Nothing closed is reached, no open neighbour of a reached cell is missed."""
    words = st.lists(st.integers(0, 2**30 - 1), min_size=6, max_size=6)
    open_cells = jnp.array(data.draw(words), jnp.uint32)[:, None]
    seed = jnp.array(data.draw(words), jnp.uint32)[:, None]
    reached = jax.jit(bitgrid.flood)(open_cells, seed)
    assert not np.any(reached & ~open_cells)
    assert not np.any(seed & open_cells & ~reached)
    up, down = reached[1:], reached[:-1]
    assert not np.any(up & open_cells[:-1] & ~reached[:-1])
    assert not np.any(down & open_cells[1:] & ~reached[1:])
    assert not np.any((reached << 1) & open_cells & ~reached)
    assert not np.any((reached >> 1) & open_cells & ~reached)


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_work_on_active_lanes_touches_no_other(block):
    rng = np.random.default_rng(block)
    worlds = 100
    x = jnp.asarray(rng.integers(0, 100, (3, worlds)))
    for active in (np.zeros(worlds, bool), np.ones(worlds, bool), rng.uniform(size=worlds) < 0.3):
        seen = []

        def double(x, lanes_seen=seen):
            lanes_seen.append(x.shape[-1])
            return {"twice": 2 * x}

        result = bitgrid.on_active_lanes(
            double, (x,), jnp.asarray(active), otherwise={"twice": -x}, block=block
        )
        np.testing.assert_array_equal(result["twice"], np.where(active, 2 * x, -x))
        assert set(seen) == {min(block, worlds)}


@pytest.mark.parametrize("n", [1, 64, 65, 1032, 5000])
def test_lanes_are_numbered_by_what_comes_before(n):
    counts = np.random.default_rng(n).integers(0, 2, n)
    found = jax.jit(_compact._count_before)(jnp.asarray(counts, jnp.float32))
    np.testing.assert_array_equal(found, np.cumsum(counts) - counts)


def test_one_world_needs_no_lanes():
    grid = bitgrid.pack(jnp.arange(9, dtype=jnp.uint8).reshape(3, 3))
    one = bitgrid.cell(3, jnp.int32(1), jnp.int32(2))
    assert bitgrid.same_colour(grid, one)[1] & 0b111 == 0b100
    turned = bitgrid.unpack(bitgrid.transpose(grid), 3, 3)
    np.testing.assert_array_equal(turned, np.arange(9).reshape(3, 3).T)
    down = bitgrid.map_rows(grid, jnp.int32(-1), jnp.array(False))
    assert int(bitgrid.unpack(down, 3, 3)[2, 0]) == 3
