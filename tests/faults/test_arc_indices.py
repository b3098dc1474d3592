"""Issue 24, ARC 1: no index of a task or a pair ever means another task or pair."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxarc
from jaxarc import data
from jaxarc.envs import EnvironmentConfig, JaxArcConfig, arc_reset, batch_reset
from worldloom import WorldloomError, check

TRAIN = JaxArcConfig(environment=EnvironmentConfig(record_history=False))
TEST = JaxArcConfig(environment=EnvironmentConfig(record_history=False, episode_mode="test"))
KEY = jax.random.key(0)


def task(id, demos, tests, colour):
    def pair(k):
        return data.Pair(np.full((1, 2), colour, np.uint8), np.full((1, 2), k % 10, np.uint8))

    return data.RawTask(
        id, tuple(pair(k) for k in range(demos)), tuple(pair(k) for k in range(tests))
    )


TASKS = data.TaskSet((task("a", 5, 1, 1), task("b", 2, 3, 2), task("c", 3, 1, 3)), "own")
COUNTS = {"train": (5, 2, 3), "test": (1, 3, 1)}
BUFFER = TASKS.buffer()
CONFIGS = {"train": TRAIN, "test": TEST}


def refused(call, *words):
    with pytest.raises(WorldloomError) as caught, check.reraise():
        jax.block_until_ready(call())
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_the_task_of_the_issue_does_not_play_its_test_pair_or_another_task():
    tasks = data.load("AGI1-train")
    first = tasks.get_task_by_id("007bbfb7")  # demonstrations 0 to 4
    for pair in (5, 6, 99, -1):
        for task_data in (first, tasks.filter(ids=["007bbfb7"]).buffer()):
            refused(
                lambda p=pair, t=task_data: arc_reset(KEY, TRAIN, t, initial_pair_idx=p),
                f"initial_pair_idx={pair}",
                "0 to 4",
            )
    env = jaxarc.make(tasks)
    for number in (9999, 400, -1):
        refused(lambda n=number: env.reset(KEY, worlds=1, task=[n]), f"task={number}", "0 to 399")


@settings(max_examples=30)
@given(
    mode=st.sampled_from(["train", "test"]),
    number=st.integers(0, 2),
    pair=st.integers(-7, 12) | st.sampled_from([-(2**31), 2**31 - 1, 255, 256]),
    kind=st.sampled_from([int, np.int64, np.uint8, jnp.int32]),
)
def test_a_pair_is_played_or_refused(mode, number, pair, kind):
    if kind is np.uint8:
        pair %= 256
    exists = 0 <= pair < COUNTS[mode][number]
    config, given_pair = CONFIGS[mode], kind(pair)
    one, alone = TASKS.get_task_by_index(number), BUFFER.take(np.array([number]))
    for task_data in (one, alone):
        if exists:
            state, _ = arc_reset(KEY, config, task_data, initial_pair_idx=given_pair)
            assert int(state.pair_index) == pair
            assert bool(state.on_test_pair) == (mode == "test")
            assert int(state.target_grid[0, 0]) == pair
        else:
            refused(
                lambda t=task_data: arc_reset(KEY, config, t, initial_pair_idx=given_pair),
                f"initial_pair_idx={pair}",
                f"0 to {COUNTS[mode][number] - 1}",
            )


def test_one_bad_world_of_a_batch_is_named():
    keys = jax.random.split(KEY, 4)
    pairs = np.array([0, 1, 7, 1])
    refused(
        lambda: batch_reset(keys, TRAIN, TASKS.get_task_by_index(1), initial_pair_idx=pairs),
        "initial_pair_idx=7",
        "world 2",
        "0 to 1",
    )
    env = jaxarc.make(TASKS, config=TRAIN)
    refused(lambda: env.reset(KEY, worlds=3, task=[0, 2, 3]), "task=3", "world 2", "0 to 2")
    refused(lambda: env.reset(KEY, worlds=3, task=[0, 1.5, 2]), "task", "integer")
    refused(lambda: env.reset(KEY, worlds=2, task=[True, False]), "task", "integer")
    refused(lambda: arc_reset(KEY, TRAIN, BUFFER, initial_pair_idx=0.5), "initial_pair_idx")
    refused(lambda: batch_reset(keys, TRAIN, BUFFER, initial_pair_idx=[0, 1]), "initial_pair_idx")


def test_a_random_task_may_lack_the_pair():
    keys = jax.random.split(KEY, 16)
    refused(
        lambda: batch_reset(keys, TRAIN, BUFFER, initial_pair_idx=3), "initial_pair_idx=3", "0 to"
    )
    states, _ = batch_reset(keys, TRAIN, BUFFER, initial_pair_idx=1)
    assert set(np.asarray(states.task_index).tolist()) == {0, 1, 2}


def test_inside_jit_it_is_flagged_and_poisoned():
    one = TASKS.get_task_by_index(0)
    for task_data in (one, BUFFER.take(np.array([0]))):
        reset = jax.jit(lambda p, t=task_data: arc_reset(KEY, TRAIN, t, initial_pair_idx=p)[0])
        assert int(reset(4).pair_index) == 4
        for pair in (5, 6, -1, 2**31 - 1):
            refused(lambda f=reset, p=pair: f(p), "initial_pair_idx", "pair")
            with check.using("nan"):
                assert np.isnan(reset(pair).similarity)
    with check.using("nan"):
        *_, reward, _, _ = jaxarc.arc_step(reset(5), jaxarc.PointAction(0, 0, 0), TRAIN)
        assert np.isnan(reward)
    keys = jax.random.split(KEY, 3)
    mapped = jax.vmap(lambda k, p: arc_reset(k, TRAIN, one, initial_pair_idx=p)[0])
    with check.using("nan"):
        states = mapped(keys, jnp.array([4, 5, 0]))
        np.testing.assert_array_equal(np.isnan(states.similarity), [False, True, False])
    env = jaxarc.make(TASKS, config=TRAIN)
    reset_task = jax.jit(lambda t: env.reset(KEY, worlds=2, task=t)[0])
    np.testing.assert_array_equal(reset_task(jnp.array([0, 2])).task_index, [0, 2])
    refused(lambda: reset_task(jnp.array([0, 3])), "task")


@pytest.mark.parametrize("getter", ["demo", "test", "pair"])
def test_a_buffer_gives_the_pair_or_refuses(getter):
    def get(number, pair):
        if getter == "pair":
            return BUFFER.pair(jnp.asarray(number), jnp.asarray(pair), jnp.asarray(False))
        return getattr(BUFFER, getter)(number, pair)

    counts = COUNTS["test" if getter == "test" else "train"]
    for number in range(3):
        for pair in range(-2, 7):
            if 0 <= pair < counts[number]:
                get(number, pair)
            else:
                refused(lambda n=number, p=pair: get(n, p), f"{pair}", f"0 to {counts[number] - 1}")
    for number in (-1, 3, 99):
        refused(lambda n=number: get(n, 0), f"{number}", "0 to 2")
    jitted = jax.jit(get)
    jitted(0, 0)
    refused(lambda: jitted(0, 9), "pair")
    refused(lambda: jitted(9, 0), "task")
    mapped = jax.vmap(get)
    mapped(jnp.arange(3), jnp.zeros(3, jnp.int32))
    refused(lambda: mapped(jnp.arange(4), jnp.zeros(4, jnp.int32)), "task")


def test_a_subset_has_only_tasks_that_exist():
    assert BUFFER.take(np.array([2, 0])).num_tasks == 2
    for bad in ([3], [-1], [0, 99]):
        refused(lambda b=bad: BUFFER.take(np.array(b)), "0 to 2")
    refused(lambda: BUFFER.take(np.array([0.5])), "integer")
    refused(lambda: jax.jit(lambda t: BUFFER.take(t))(jnp.array([0, 5])).first_pair, "task")


def test_parsers_refuse_what_they_do_not_have(tmp_path):
    jaxarc.MemoryMappedTaskLoader.write(tmp_path, TASKS)
    mapped = jaxarc.MemoryMappedTaskLoader(tmp_path)
    for parser in (TASKS, mapped):
        for bad in (3, -1, 99, True):
            refused(lambda p=parser, b=bad: p.get_task_by_index(b))
    refused(lambda: jaxarc.extract_task_id_from_index(1.5, TASKS))
    refused(lambda: jaxarc.extract_task_id_from_index(-1, TASKS), "0 to 2")


def test_a_task_without_a_pair_to_play_is_refused():
    """Pair 0 of no demonstrations would be the first test pair."""
    for demos, tests, config in ((0, 1, TRAIN), (1, 0, TEST)):
        own = data.TaskSet((task("odd", demos, tests, 1),), "own")
        refused(lambda o=own, c=config: jaxarc.make(o, config=c), "odd")
    padded = TASKS.get_task_by_index(0)
    for name, count in (("num_train_pairs", 0), ("num_train_pairs", 6), ("num_test_pairs", 9)):
        fields = {field: getattr(padded, field) for field in padded.__dataclass_fields__}
        refused(lambda f=fields, n=name, c=count: data.JaxArcTask(**{**f, n: c}), name)


def test_more_attempts_or_pairs_than_a_state_counts_are_refused():
    """Four bits a test pair, one bit a demonstration: a further one would count as another."""
    refused(lambda: EnvironmentConfig(max_attempts=16), "max_attempts=16", "1 to 15")
    many = data.TaskSet((task("many", 2, 9, 1),), "own")
    for task_data in (many.buffer(), many.get_task_by_index(0)):
        refused(lambda t=task_data: arc_reset(KEY, TEST, t), "8 test pairs")
    wide = data.TaskSet((task("wide", 33, 1, 1),), "own")
    controls = JaxArcConfig(environment=EnvironmentConfig(pair_controls=True))
    refused(lambda: jaxarc.make(wide, config=controls), "32 demonstrations")
    refused(lambda: arc_reset(KEY, controls, wide.buffer()), "32 demonstrations")
