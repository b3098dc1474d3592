"""Rollouts over devices, and lanes to spare, change the speed and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxarc
from jaxarc import bitgrid
from jaxarc.envs import (
    EnvironmentConfig,
    JaxArcConfig,
    MaskAction,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
    _environment,
    _spread,
)
from jaxarc.envs._episode import _below, draw_next
from worldloom import mesh

SIDE = 10


@pytest.fixture(scope="module")
def env():
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=7, record_history=False),
        dataset=UnifiedDatasetConfig(max_grid_height=SIDE, max_grid_width=SIDE),
        action=UnifiedActionConfig(selection_format="mask"),
    )
    return jaxarc.make("AGI1-train", subset="up-to-10x10", config=config)


def play(env, worlds: int, steps: int = 12):
    def policy(params, seen, key):
        return env.random_action(key, worlds=worlds)

    return env.rollout(policy, None, jax.random.key(5), steps, worlds=worlds, observations=True)


def same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(x, y)


@pytest.fixture(scope="module")
def spread(env):
    return play(env, 2 * _spread.FEWEST)


def test_two_devices_play_what_one_plays(env, spread, monkeypatch):
    assert _spread.devices_for(2 * _spread.FEWEST).size == 2
    here = jax.local_devices()[:1]
    monkeypatch.setattr(_environment, "devices_for", lambda worlds: mesh.worlds_mesh(here))
    same(spread, play(env, 2 * _spread.FEWEST))


@pytest.mark.slow
def test_lanes_to_spare_change_nothing(env, spread, monkeypatch):
    assert bitgrid.lanes_for(_spread.FEWEST) > _spread.FEWEST
    monkeypatch.setattr(_spread, "lanes_for", lambda worlds: worlds)
    jax.clear_caches()
    same(spread, play(env, 2 * _spread.FEWEST))


def test_devices_do_not_talk(env):
    """A step that waits for the other device would be slower on two than on one."""
    worlds = 2 * _spread.FEWEST
    policy = lambda params, seen, key: env.random_action(key, worlds=worlds)  # noqa: E731
    key = jax.random.key(0)
    step, carry = _environment.ready(env, policy, None, key, worlds=worlds, observations=True)
    assert step.devices.size == 2
    arrays, rest = eqx.partition(step, eqx.is_array)
    call = lambda arrays, carry: eqx.combine(arrays, rest)(carry, jnp.int32(3))  # noqa: E731
    program = jax.jit(call).lower(arrays, carry).compile()
    assert not re.search(r"all-reduce|all-gather|all-to-all|collective", program.as_text())


@pytest.mark.parametrize(
    ("worlds", "devices"),
    [(1, 1), (_spread.FEWEST, 1), (2 * _spread.FEWEST, 2), (2 * _spread.FEWEST + 1, 1)],
)
def test_worlds_are_shared_evenly_or_not_at_all(worlds, devices):
    assert _spread.devices_for(worlds).size == devices


def test_one_device_for_many_cores_is_said(monkeypatch):
    monkeypatch.setattr(jax, "local_devices", lambda: jax.devices()[:1])
    monkeypatch.setattr(mesh, "usable_cores", lambda: 4)
    with pytest.warns(UserWarning, match=r"one of 4 cores.*use_cpu_devices\(4\)"):
        _spread.devices_for(2 * _spread.FEWEST)


@pytest.mark.parametrize(
    ("before", "count"),
    [
        ("", "usable_cores()"),
        ("import jax; jax.config.update('jax_num_cpu_devices', 3)", "3"),
        ("import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'", "4"),
        ("import os; os.environ['JAX_NUM_CPU_DEVICES'] = '5'", "5"),
        ("import jax.numpy as jnp; jnp.zeros(1)", "1"),
    ],
    ids=["not told", "config", "XLA_FLAGS", "variable", "running already"],
)
def test_importing_the_environment_uses_every_core_unless_told(before, count):
    code = (
        f"{before}\nimport jaxarc.envs\nimport jax\nfrom worldloom.mesh import usable_cores\n"
        f"assert jax.local_device_count() == {count}, jax.devices()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@given(st.integers(1, 5000))
def test_lanes_hold_the_worlds_and_rows_do_not_collide(worlds):
    lanes = bitgrid.lanes_for(worlds)
    assert worlds <= lanes <= worlds + 15
    if worlds >= 64:
        assert lanes % 16 == 8  # an odd number of vectors


@pytest.mark.parametrize(("worlds", "spare"), [(1, 0), (1, 1), (5, 3), (40, 15)])
def test_spare_lanes_have_the_first_numbers_and_empty_arrays(worlds, spare):
    lanes = worlds + spare
    numbers = jnp.arange(1, worlds + 1)
    cells = jnp.arange(1, 3 * worlds + 1).reshape(worlds, 3)
    padded, filled = bitgrid.to_lanes((cells, numbers), lanes)
    np.testing.assert_array_equal(padded[:, :worlds], cells.T)
    np.testing.assert_array_equal(padded[:, worlds:], np.zeros((3, lanes - worlds)))
    np.testing.assert_array_equal(filled, [*numbers, *numbers[: lanes - worlds]])


def test_a_packed_mask_is_the_mask():
    cells = jax.random.bernoulli(jax.random.key(0), 0.4, (5, SIDE, SIDE))
    action = MaskAction(jnp.arange(5), cells)
    packed = action.packed()
    assert packed.selection.nbytes * 2 < cells.nbytes
    assert packed.packed() is packed
    np.testing.assert_array_equal(packed.to_selection_mask((SIDE, SIDE)), cells)
    np.testing.assert_array_equal(packed.to_lanes(SIDE, SIDE), action.to_lanes(SIDE, SIDE))


def test_bits_outside_the_canvas_select_nothing():
    words = jnp.full((1, SIDE), 0xFFFFFFFF, jnp.uint32)
    action = MaskAction(jnp.zeros(1, jnp.int32), words)
    np.testing.assert_array_equal(action.to_lanes(SIDE, SIDE), jnp.uint32(2**SIDE - 1))


def test_a_packed_mask_of_another_canvas_is_refused():
    action = MaskAction(jnp.zeros(1, jnp.int32), jnp.zeros((1, 7), jnp.uint32))
    with pytest.raises(jaxarc.envs.ActionError, match=r"7 words.*10 x 10 has 10"):
        action.to_lanes(SIDE, SIDE)


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**31 - 1))
def test_a_number_below_a_limit_is_the_top_of_a_product(word, limit):
    found = _below(jnp.array([word], jnp.uint32), jnp.uint32(limit))
    assert int(found[0]) == word * limit >> 32


def xoroshiro64starstar(a, b):
    """Blackman and Vigna's generator in plain integers: the next state, and a word."""
    turn = lambda word, bits: (word << bits | word >> 32 - bits) % 2**32  # noqa: E731
    word = turn(a * 0x9E3779BB % 2**32, 5) * 5 % 2**32
    b ^= a
    return turn(a, 26) ^ b ^ (b << 9) % 2**32, turn(b, 13), word


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_episodes_are_drawn_by_a_known_generator(a, b):
    found = draw_next(jnp.array([[a], [b]], jnp.uint32))
    *state, first = xoroshiro64starstar(a, b)
    *state, second = xoroshiro64starstar(*state)
    assert [int(word[0]) for word in (*found.key, *found[1:])] == [*state, first, second]


def test_drawing_moves_the_key_on_and_is_even():
    keys = jax.random.key_data(jax.random.split(jax.random.key(0), 4000)).T
    found = draw_next(keys)
    assert len(np.unique(np.concatenate([keys, found.key], axis=1), axis=1).T) == 8000
    again = draw_next(found.key)
    for word in (*found[1:], *again[1:]):
        counts = np.bincount(_below(word, jnp.uint32(10)), minlength=10)
        assert ((counts - 400) ** 2 / 400).sum() < 30  # chi square, 9 degrees: one in 2,000
