from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import worlds

from worldloom import batch
from worldloom.batch._search import find_largest

MIB = 2**20
F32 = jnp.float32


def shape(*dims, dtype=F32):
    return jax.ShapeDtypeStruct(dims, dtype)


def usable(memory: int) -> int:
    return int(memory * 0.95) - 32 * MIB


def test_a_copy_needs_its_rows_twice():
    found = batch.plan(lambda x: x + 1, shape(1, 1000), memory="512 MiB")
    assert found.bytes_per_item == 8000
    assert found.fixed_bytes == 0
    assert found.largest == usable(512 * MIB) // 8000
    assert found.bytes(found.largest) <= usable(512 * MIB) < found.bytes(found.largest + 1)
    assert found.compiles == 3
    assert found.memory == 512 * MIB
    assert "59,559 items in 512.00 MiB: 7.81 KiB each" in str(found)


def test_the_prediction_is_what_xla_says_at_any_batch():
    def fn(x):
        return jax.lax.sort(jnp.sin(x), dimension=1).sum(1)

    found = batch.plan(fn, shape(3, 50), memory="200 MiB")
    for size in (7, 1000, 54321):
        needs = jax.jit(fn).lower(shape(size, 50)).compile().memory_analysis()
        assert needs is not None
        exact = needs.argument_size_in_bytes + needs.output_size_in_bytes + needs.temp_size_in_bytes
        assert found.bytes(size) == pytest.approx(exact, rel=0.01)


def test_nothing_is_allocated():
    # Sixteen times the memory of any machine here: it could not be run.
    found = batch.plan(lambda x: x * 2, shape(1, 2**40, dtype=jnp.int8), memory="512 TiB")
    assert found.largest == 243
    assert not [a for a in jax.live_arrays() if a.nbytes >= 2**40]


def test_donated_arguments_count_once():
    twice = batch.plan(lambda x: x + 1, shape(1, 1000), memory="512 MiB")
    once = batch.plan(lambda x: x + 1, shape(1, 1000), memory="512 MiB", donate_argnums=0)
    assert once.bytes_per_item == twice.bytes_per_item / 2
    assert once.largest == pytest.approx(2 * twice.largest, abs=1)


def test_what_all_items_share_is_fixed():
    table = shape(250_000)
    shared = jax.tree_util.Partial(lambda table, x: table[x], jnp.zeros(250_000))
    by_argument = batch.plan(
        lambda t, x: t[x], table, shape(1, dtype=jnp.int32), in_axes=(None, 0), memory="512 MiB"
    )
    by_binding = batch.plan(shared, shape(1, dtype=jnp.int32), memory="512 MiB")
    for found in (by_argument, by_binding):
        assert found.fixed_bytes == pytest.approx(1e6, rel=0.01)
        assert found.bytes_per_item == pytest.approx(8, rel=0.01)


def test_an_argument_that_is_not_used_takes_memory_all_the_same():
    found = batch.plan(lambda x, y: x + 1, shape(1, 10), shape(1, 90), memory="512 MiB")
    assert found.bytes_per_item == 10 * 8 + 90 * 4


def test_configuration_is_static():
    class Model(eqx.Module):
        weight: jax.Array
        power: int = eqx.field(static=True)

        def __call__(self, x, mode, count):
            assert mode == "wide"
            return jnp.tile(x @ self.weight, (1, count)) ** self.power

    found = batch.plan(
        Model(jnp.ones((4, 4)), 2), shape(1, 4), "wide", 3, in_axes=(0, None, None), memory="1 GB"
    )
    assert found.bytes_per_item >= 4 * 4 + 12 * 4


def test_axes_are_as_for_vmap():
    def fn(state, inputs):
        return jax.lax.scan(lambda s, x: (s + x, None), state["x"], inputs)[0]

    state, inputs = {"x": shape(6), "t": shape()}, shape(10, 6)
    found = batch.plan(fn, state, inputs, in_axes=({"x": 0, "t": None}, 1), memory="512 MiB")
    assert found.bytes_per_item >= 4 * 12


@pytest.mark.parametrize(
    "world", [worlds.grid_world(), worlds.vortex_world()], ids=lambda world: world.name
)
def test_the_worlds_of_the_engine_can_be_planned(world):
    x, axis = (jnp.int32(0), None) if world.inputs is None else (world.inputs[0], 0)
    found = batch.plan(world.step, world.state, x, in_axes=(0, axis), memory="1 GiB")
    state_bytes = sum(
        leaf.nbytes for leaf in jax.tree.leaves(world.state) if not isinstance(leaf, str)
    )
    assert found.bytes_per_item >= 2 * state_bytes / 6
    assert 1 <= found.best <= found.largest


def test_the_guess_fills_a_share_of_the_cache():
    found = batch.plan(lambda x: x + 1, shape(1, 1000), memory="512 MiB")
    assert found.timings == ()
    assert found.best & (found.best - 1) == 0
    assert found.bytes(found.best) <= found.bytes(found.largest) / 8
    few = batch.plan(lambda x: x + 1, shape(1, 25 * MIB), memory="1 GiB")
    assert few.best == 1


def test_the_best_batch_is_the_fastest_of_those_measured():
    # Each call of this program costs the same whatever the batch, so larger is always faster.
    def fn(x):
        spin = jax.lax.fori_loop(0, 200_000, lambda i, s: jnp.sin(s) + 1, x[0, 0])
        return x + spin

    found = batch.plan(fn, jnp.ones((3, 100)), memory="512 MiB", measure=True)
    sizes = [size for size, _ in found.timings]
    assert len(sizes) == 3
    assert sizes[2] == 4 * sizes[1] == 16 * sizes[0]
    assert found.best == sizes[2]
    assert "measured" in str(found)


def test_measuring_needs_values_and_serves_donated_ones():
    with pytest.raises(batch.BatchError, match=r"args\[0\]\['x'\] is only a shape"):
        batch.plan(lambda t: t["x"], {"x": shape(1, 4)}, memory="512 MiB", measure=True)
    found = batch.plan(
        lambda x: x + 1, np.ones((2, 9), np.float32), memory="64 MiB", measure=True,
        donate_argnums=(0,),
    )  # fmt: skip
    assert found.best in dict(found.timings)


@pytest.mark.parametrize(
    ("args", "options", "words"),
    [
        ((shape(1, 4), shape(2, 4)), {}, r"different sizes \(args\[0\]: 1, args\[1\]: 2\)"),
        ((shape(),), {}, r"args\[0\] has shape \(\): in_axes=0 is no axis"),
        ((shape(2, 3),), {"in_axes": 2}, "in_axes=2 is no axis"),
        ((shape(2), shape(2)), {"in_axes": (0,)}, r"in_axes=\(0,\) does not match the arguments"),
        ((shape(2),), {"in_axes": None}, "no argument is batched"),
        ((3,), {}, "no argument is batched"),
        ((shape(2),), {"memory": "2 apples"}, "'2 apples' is not an amount"),
        ((shape(2),), {"memory": "30 MiB"}, "memory=30.00 MiB is not enough: 5 % and 32.00 MiB"),
    ],
)
def test_what_cannot_be_planned_is_refused(args, options, words):
    with pytest.raises(batch.BatchError, match=words):
        batch.plan(lambda *a: a, *args, **({"memory": "1 GiB"} | options))


def test_one_item_that_does_not_fit_is_named_with_its_bytes():
    with pytest.raises(batch.BatchMemoryError, match=r"batch of 1 needs 2\.00 GiB, but only"):
        batch.plan(lambda x: x + 1, shape(1, 2**28), memory="1 GiB")


def test_the_line_of_a_plan_goes_through_its_first_and_its_last_point():
    found = batch.Plan(memory=1, largest=3, best=2, points=((1, 100), (2, 130), (3, 140)))
    assert found.bytes_per_item == 20
    assert found.fixed_bytes == 80
    assert [found.bytes(size) for size in (1, 2, 3, 5)] == [100, 130, 140, 160]


def test_one_item_is_tried_however_steep_the_way_down():
    largest, points = find_largest(lambda size: size**30, 2)
    assert largest == 1
    assert points[0] == (1, 1)


@hypothesis.given(
    fixed=st.integers(0, 10**8),
    first=st.integers(1, 10**6),
    second=st.integers(1, 10**6),
    kink=st.integers(2, 10**5),
    room=st.integers(10**6, 10**10),
)
def test_the_search_finds_a_batch_that_fits_and_few_more_would(fixed, first, second, kink, room):
    def bytes_of(size):
        return fixed + first * min(size, kink) + second * max(size - kink, 0)

    largest, points = find_largest(bytes_of, room)
    assert len(points) <= 13
    assert dict(points) == {size: bytes_of(size) for size, _ in points}
    if largest == 0:
        assert bytes_of(1) > room
    else:
        assert bytes_of(largest) <= room
        assert dict(points)[largest] == bytes_of(largest)
        more = bytes_of(min(largest + 1, 2**31 - 1))
        close = bytes_of(largest) >= 0.95 * room or largest == 2**31 - 1
        assert close or more > room or len(points) >= 12


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc: run it on Linux")
def test_predicted_and_measured_memory_agree_within_five_percent():
    script = Path(__file__).parents[3] / "benchmarks" / "memory_prediction.py"
    done = subprocess.run(
        [sys.executable, str(script), "--memory", "350 MiB", "--json"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert set(result) == {"grid step", "trajectory", "training step"}
    for name, entry in result.items():
        assert 0.95 < entry["measured"] / entry["predicted"] < 1.05, name
        assert entry["predicted"] > 290 * MIB
        assert entry["compiles"] <= 5
