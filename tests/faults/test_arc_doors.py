"""Issue 24, ARC 6: at every door of the environment, bad input meets a sentence of ours."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc import data, training
from jaxarc.envs import (
    ActionError,
    BboxAction,
    EnvironmentConfig,
    JaxArcConfig,
    MaskAction,
    PointAction,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
    arc_reset,
    arc_step,
    batch_reset,
    batch_step,
)
from worldloom import WorldloomError, cli

KEY = jax.random.key(0)
SIDES = UnifiedDatasetConfig(max_grid_height=4, max_grid_width=3)
CONFIG = JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=5), dataset=SIDES)
TASKS = training.tiny_tasks(pairs=2)
TASK = TASKS.get_task_by_index(0)


@pytest.fixture(scope="module")
def env():
    return jaxarc.make(TASKS, config=CONFIG)


@pytest.fixture(scope="module")
def two(env):
    return env.reset(KEY, worlds=2)[0]


@pytest.fixture(scope="module")
def one(two):
    return jax.tree.map(lambda leaf: leaf[0], two)


def points(*shape):
    zeros = jnp.zeros(shape, jnp.int32)
    return PointAction(zeros, zeros, zeros)


def refused(call, *words, kind=WorldloomError):
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("worlds", [-1, 0, True])
def test_worlds_that_are_no_number(env, worlds):
    said = f"worlds={worlds}"
    refused(lambda: env.reset(KEY, worlds=worlds), said)
    refused(lambda: env.random_action(KEY, worlds=worlds), said)
    act = lambda *_: points(2)  # noqa: E731
    refused(lambda: env.rollout(act, None, KEY, 3, worlds=worlds), said)


NO_KEYS = [
    0,
    1.5,
    None,
    "key",
    np.int64(3),
    np.zeros(2, np.int64),
    np.zeros(2, np.uint64),
    np.zeros(2, np.float32),
    np.zeros(3, np.uint32),
    np.uint32(7),
    jnp.zeros((), jnp.uint32),
    jnp.zeros(2, jnp.int32),
    [0, 1],
]


@pytest.mark.parametrize("key", NO_KEYS, ids=repr)
def test_what_is_no_key(env, key):
    for call in (
        lambda: env.reset(key, worlds=2),
        lambda: env.random_action(key, worlds=2),
        lambda: env.rollout(lambda *_: points(2), None, key, 3, worlds=2),
        lambda: arc_reset(key, CONFIG, TASK),
        lambda: batch_reset(key, CONFIG, TASK),
    ):
        refused(call, "key: expected a key, such as jax.random.key(0)")


def test_one_key_or_one_a_world(env):
    many = jax.random.split(KEY, 3)
    legacy = jax.random.split(jax.random.PRNGKey(0), 3)
    for keys in (many, legacy, np.asarray(legacy)):
        refused(lambda k=keys: env.reset(k, worlds=2), "one key, got 3")
        refused(lambda k=keys: arc_reset(k, CONFIG, TASK), "one key, got 3")
        refused(lambda k=keys: batch_reset(k[0], CONFIG, TASK), "a key for each world")
        refused(lambda k=keys: batch_reset(k[:0], CONFIG, TASK), "a key for each world")


def test_keys_of_every_kind_are_taken():
    """The same key in another form begins the same episode."""
    new, _ = arc_reset(jax.random.key(3), CONFIG, TASK)
    for key in (jax.random.PRNGKey(3), np.asarray(jax.random.PRNGKey(3))):
        old, _ = arc_reset(key, CONFIG, TASK)
        np.testing.assert_array_equal(old.numbers, new.numbers)
    arc_reset(jax.random.key(3, impl="rbg"), CONFIG, TASK)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1)], ids=str)
def test_actions_that_are_not_one_a_world(env, two, one, shape):
    refused(lambda: batch_step(two, points(*shape), CONFIG), "(2,)", str(shape), kind=ActionError)
    refused(lambda: env.step(two, points(*shape)), "(2,)", str(shape), kind=ActionError)
    if shape:
        refused(lambda: arc_step(one, points(*shape), CONFIG), "one action", kind=ActionError)
    act = lambda *_: points(*shape)  # noqa: E731
    refused(lambda: env.rollout(act, None, KEY, 3, worlds=2), "(2,)", kind=ActionError)


def test_fields_of_different_shapes(two):
    mixed = PointAction(np.zeros(2, int), np.zeros(2, int), np.int64(0))
    refused(lambda: batch_step(two, mixed, CONFIG), "col", "(2,)")
    box = BboxAction(np.zeros(2, int), 0, 0, 1, 1)
    refused(lambda: batch_step(two, box, CONFIG), "r1", "(2,)")


def test_one_world_and_many(two, one):
    refused(lambda: arc_step(two, points(2), CONFIG), "use batch_step", "holds 2")
    refused(lambda: arc_step(two, points(), CONFIG), "use batch_step")
    refused(lambda: batch_step(one, points(), CONFIG), "use arc_step")
    refused(lambda: batch_step(one, points(1), CONFIG), "use arc_step")


@pytest.mark.parametrize("shape", [(3, 4), (4,), (2, 4, 4), (1, 4, 3), (2, 5), (2, 3)], ids=str)
def test_masks_of_another_canvas(two, one, shape):
    for kind in (bool, np.uint32):
        mask = np.zeros(shape, kind)
        if (kind is bool and shape == (2, 4, 3)) or (kind is np.uint32 and shape == (2, 4)):
            continue
        action = MaskAction(np.zeros(2, int), mask)
        refused(lambda a=action: batch_step(two, a, CONFIG), str(shape), kind=ActionError)


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.float32])
def test_masks_of_another_kind(kind):
    """Whole numbers were taken for the bits of a mask."""
    refused(lambda: MaskAction(0, np.zeros((4, 3), kind)), "bool", np.dtype(kind).name)


def test_fields_of_another_kind():
    for bad in (0.5, np.float32(1), True, "3", None, 2**70):
        refused(lambda b=bad: PointAction(b, 0, 0), "integers", kind=ActionError)
        refused(lambda b=bad: BboxAction(0, 0, b, 0, 0), "integers", kind=ActionError)


def test_numbers_that_an_int32_cannot_hold_do_not_become_others(two):
    """2^32 + 3 became operation 3."""
    big = np.array([2**32 + 3, -(2**32) + 3])
    action = PointAction(big, np.zeros(2, int), np.zeros(2, int))
    after, _, reward, _, info = batch_step(two, action, CONFIG)
    assert not np.asarray(info.valid).any()
    assert (np.asarray(reward) < 0).all()
    place = PointAction(np.array([5, 5]), big, np.zeros(2, int))
    after, *_ = batch_step(two, place, CONFIG)
    np.testing.assert_array_equal(after.grid, two.grid)


def test_coordinates_outside_of_the_canvas_select_nothing_and_are_recorded_as_such(two):
    for row, col in ((4, 0), (0, 3), (-1, 0), (0, -5), (99, 99), (260, 261)):
        place = PointAction(np.full(2, 5), np.full(2, row), np.full(2, col))
        after, *_ = batch_step(two, place, CONFIG)
        np.testing.assert_array_equal(after.grid, two.grid)
        kept = np.asarray(after.action_history[:, 0, 1:3])
        expected = [value if 0 <= value <= 255 else 255 for value in (row, col)]
        np.testing.assert_array_equal(kept, [expected] * 2)


def test_states_of_another_making(two, one):
    boxes = UnifiedActionConfig(selection_format="bbox")
    wide = UnifiedDatasetConfig(max_grid_height=4, max_grid_width=4)
    for other, word in (
        (JaxArcConfig(environment=CONFIG.environment, dataset=wide), "canvas"),
        (
            JaxArcConfig(environment=CONFIG.environment, dataset=SIDES, action=boxes),
            "selection_format",
        ),
        (
            JaxArcConfig(
                environment=EnvironmentConfig(max_episode_steps=5, record_history=False),
                dataset=SIDES,
            ),
            "record_history",
        ),
    ):
        refused(lambda o=other: batch_step(two, points(2), o), word)
        refused(lambda o=other: arc_step(one, points(), o), word)


def test_tasks_of_another_kind_or_canvas(two):
    refused(lambda: batch_step(two, points(2), CONFIG, tasks=TASKS.buffer()), "canvas of 30 x 30")
    refused(lambda: arc_reset(KEY, CONFIG, TASKS.buffer()), "canvas of 30 x 30")


def test_tasks_that_there_are_none_of():
    none = TASKS.filter(where=lambda task: False)
    refused(lambda: jaxarc.make(none), "at least one task")
    refused(lambda: training.environment_for(none), "at least one task")
    refused(lambda: data.load("AGI1-train").subset("up-to-1x1"), "up-to-5x5")


@pytest.mark.parametrize(
    "words",
    [["--worlds", "-1"], ["--worlds", "0"], ["--steps", "0"], ["--dataset", "nothing"]],
    ids=" ".join,
)
def test_the_shell_gives_a_sentence(words, capsys):
    assert cli.main(["arc", "rollout", *words]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_vmap_of_a_step_is_still_taken(two):
    mapped = jax.vmap(lambda s, a: arc_step(s, a, CONFIG))(two, points(2))
    together = batch_step(two, points(2), CONFIG)
    np.testing.assert_array_equal(mapped[2], together[2])
