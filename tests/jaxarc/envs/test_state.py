"""States: packed and taken apart, changed by name, and cheap to hand over."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import make
from jaxarc.envs import EnvironmentConfig, JaxArcConfig
from jaxarc.envs._environment import _step

PLAIN = JaxArcConfig(environment=EnvironmentConfig(record_history=False))


@pytest.fixture(scope="module")
def env():
    return make("AGI1-train", config=PLAIN)


@pytest.fixture(scope="module")
def played(env):
    state, _ = env.reset(jax.random.key(0), worlds=5)
    for t in range(3):
        state, *_ = env.step(state, env.random_action(jax.random.key(t), worlds=5))
    return state


def equal(one, other) -> bool:
    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


def test_a_state_taken_apart_is_the_state(played):
    assert equal(played.world.packed(), played)
    one = jax.tree.map(lambda leaf: leaf[2], played)
    assert equal(one.world.packed(), one)
    assert np.array_equal(one.world.key, jax.random.key_data(played.key[2]))


def test_fields_are_replaced_by_name(played):
    bits = jnp.full(5, 2**32 - 1, jnp.uint32)
    key = jax.random.split(jax.random.key(7), 5)
    changed = played.replace(attempts=bits, done=True, key=key, step_count=9)
    assert np.array_equal(changed.attempts, bits)
    assert changed.done.all()
    assert changed.done.dtype == bool
    assert np.array_equal(changed.step_count, np.full(5, 9))
    assert np.array_equal(jax.random.key_data(changed.key), jax.random.key_data(key))
    back = changed.replace(
        attempts=played.attempts, done=played.done, key=played.key, step_count=played.step_count
    )
    assert equal(back, played)
    assert equal(jax.jit(lambda s: s.replace(width=3))(played), played.replace(width=3))


def test_what_cannot_be_replaced_is_named(played):
    with pytest.raises(ValueError, match="no field 'size'; it has grid, height"):
        played.replace(size=3)
    with pytest.raises(ValueError, match=r"\(4,\).*\(5,\)"):
        played.replace(height=jnp.zeros(4, jnp.int32))


@pytest.mark.parametrize("key", [jax.random.PRNGKey(3), jax.random.key(3, impl="rbg")])
def test_keys_of_any_kind_begin_episodes(env, key):
    state, _ = env.reset(key, worlds=64)
    assert str(jax.random.key_impl(state.key)) == "threefry2x32"
    assert len(np.unique(jax.random.key_data(state.key), axis=0)) == 64
    assert len(np.unique(state.task_index)) > 40


def test_stepping_one_world_calls_no_other_thread(env):
    """XLA:CPU hands kernels to other threads where ten or more are ready at once.

    That takes as long as the rest of a step of one world. Kernels as deep as each other in the
    program may be ready at once.
    """
    state, _ = env.reset(jax.random.key(0), worlds=1)
    action = env.random_action(jax.random.key(1), worlds=1)
    assert len(jax.tree.leaves(state)) == 6
    assert len(jax.tree.leaves(env.buffer)) == 5
    program = _step.lower(state, action, env.buffer, config=env.config).compile().as_text()
    entry = program[program.index("ENTRY") :]
    depth: dict[str, int] = {}
    counts: dict[int, int] = {}
    line = re.compile(r"%(\S+) = .*? ([a-z\-]+)\((.*?)\)")
    for name, kind, given in line.findall(entry):
        here = max((depth.get(one, 0) for one in re.findall(r"%([\w.\-]+)", given)), default=0)
        if kind not in ("parameter", "constant", "get-tuple-element", "bitcast", "tuple"):
            here += 1
            counts[here] = counts.get(here, 0) + 1
        depth[name] = here
    assert len(counts) > 5, "the program was read"
    assert max(counts.values()) <= 9, counts
