"""What is wrong in the public JaxARC 1.0.3 is right here: one test for each defect.

Each defect was reproduced in that release. The heading of a test says what must hold.
"""

from __future__ import annotations

import itertools
import socket
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import data, make
from jaxarc.envs import (
    EnvironmentConfig,
    JaxArcConfig,
    MaskAction,
    PointAction,
    UnifiedActionConfig,
    arc_reset,
    arc_step,
    batch_reset,
)
from jaxarc.operations import operation_id

CONFIG = JaxArcConfig(
    environment=EnvironmentConfig(max_episode_steps=10, record_history=False),
    action=UnifiedActionConfig(selection_format="mask"),
)


def grid(*rows):
    return np.array(rows, np.uint8)


def world(start, target=None, config=CONFIG):
    """A world whose only demonstration, and only test, goes from `start` to `target`."""
    target = grid([9]) if target is None else target
    pair = data.Pair(start, target)
    task = data.pad_task(data.RawTask("own", (pair,), (pair,)), height=30, width=30)
    return arc_reset(jax.random.key(0), config, task)[0]


def do(state, operation, cells, config=CONFIG, tasks=None):
    """One operation on a set of cells."""
    mask = np.zeros((30, 30), bool)
    for row, column in cells:
        mask[row, column] = True
    number = operation_id(operation) if isinstance(operation, str) else operation
    return arc_step(state, MaskAction(number, jnp.asarray(mask)), config, tasks=tasks)


def cells_of(state):
    return np.asarray(state.working_grid)[: int(state.height), : int(state.width)]


def everything(height, width):
    return [(r, c) for r in range(height) for c in range(width)]


def test_01_an_episode_starts_with_the_input_of_the_pair_it_is_scored_on():
    tasks = data.load("AGI1-train")
    keys = jax.random.split(jax.random.key(0), 64)
    state, _ = batch_reset(keys, CONFIG, tasks.buffer())
    for number in range(64):
        pair = tasks.tasks[int(state.task_index[number])].demos[int(state.pair_index[number])]
        one = jax.tree.map(lambda leaf, number=number: leaf[number], state)
        np.testing.assert_array_equal(cells_of(one), pair.input)
        height, width = pair.output.shape
        np.testing.assert_array_equal(one.target_grid[:height, :width], pair.output)


def test_02_test_pairs_are_scored():
    config = JaxArcConfig(environment=EnvironmentConfig(episode_mode="test", record_history=False))
    pair = data.Pair(grid([1, 1]), grid([5, 5]))
    env = make(data.TaskSet((data.RawTask("own", (pair,), (pair,)),)), config=config)
    state, _ = env.reset(jax.random.key(0), worlds=1)
    for operation, column in ((5, 0), (5, 1), (operation_id("submit"), 0)):
        action = PointAction(jnp.array([operation]), jnp.array([0]), jnp.array([column]))
        state, _, _, _, info = env.step(state, action)
    assert bool(info.success[0])
    assert float(info.score[0]) == 1.0


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("move_up", (1, 2)),
        ("move_down", (3, 2)),
        ("move_left", (2, 1)),
        ("move_right", (2, 3)),
    ],
)
def test_03_a_move_goes_the_way_it_is_called(name, to):
    start = np.zeros((5, 5), np.uint8)
    start[2, 2] = 7
    state, *_ = do(world(start), name, [(2, 2)])
    expected = np.zeros((5, 5), np.uint8)
    expected[to] = 7
    np.testing.assert_array_equal(cells_of(state), expected)


def test_04_a_move_does_not_wrap_round():
    state, *_ = do(world(grid([1, 2, 3], [0, 0, 0])), "move_right", everything(1, 3))
    np.testing.assert_array_equal(cells_of(state), grid([0, 1, 2], [0, 0, 0]))


def test_05_a_rotation_turns_the_selected_box_and_nothing_else():
    start = grid([1, 2, 0, 8], [3, 4, 0, 8], [0, 0, 0, 8])
    state, *_ = do(world(start), "rotate_clockwise", everything(2, 2))
    np.testing.assert_array_equal(cells_of(state), grid([3, 1, 0, 8], [4, 2, 0, 8], [0, 0, 0, 8]))


def test_06_resize_grows():
    state, *_ = do(world(grid([1, 2])), "resize", [(2, 3)])
    np.testing.assert_array_equal(cells_of(state), grid([1, 2, 0, 0], [0] * 4, [0] * 4))


def test_07_a_grid_larger_than_the_target_is_not_solved():
    state = world(grid([5, 5], [0, 0]), grid([5, 5]))
    state, _, _, done, info = do(state, "submit", [])
    assert bool(done)
    assert not bool(info.success)
    assert float(info.similarity) == 0.5


def test_08_clearing_leaves_the_padding_alone():
    state, seen, *_ = do(world(grid([1, 2], [3, 4])), "clear", everything(30, 30))
    np.testing.assert_array_equal(cells_of(state), np.zeros((2, 2)))
    assert (int(state.height), int(state.width)) == (2, 2)
    assert int((np.asarray(seen.grid) == 0).sum()) == 4
    assert int((np.asarray(seen.grid) == -1).sum()) == 896


def test_09_copying_the_input_takes_its_size():
    start = grid([1, 2], [3, 4])
    state, *_ = do(world(start), "resize", [(4, 4)])
    state, *_ = do(state, "copy_input", [])
    np.testing.assert_array_equal(cells_of(state), start)


def test_10_a_flood_goes_to_the_end_of_a_serpentine():
    winding = np.ones((30, 30), np.uint8)
    winding[1::4, 1:] = 0
    winding[3::4, :-1] = 0
    winding[29] = 1
    corridor = int((winding == 1).sum())
    assert corridor > 450
    state, *_ = do(world(winding), 10 + 6, [(0, 0)])
    assert int((cells_of(state) == 6).sum()) == corridor


def test_11_black_is_pasted_too():
    state, *_ = do(world(grid([0, 5, 5])), "copy", [(0, 0)])
    state, *_ = do(state, "paste", [(0, 1)])
    np.testing.assert_array_equal(cells_of(state), grid([0, 0, 5]))


def test_12_truncation_is_told_from_termination():
    state = world(grid([1]))
    for _ in range(10):
        state, _, _, done, info = do(state, 3, [(0, 0)])
    assert bool(done)
    assert bool(info.truncated)
    assert not bool(info.terminated)


def test_13_a_reset_can_be_compiled():
    env = make("AGI1-train", config=CONFIG)
    state, _ = jax.jit(lambda key: env.reset(key, worlds=2))(jax.random.key(0))
    again, _ = env.reset(jax.random.key(0), worlds=2)
    np.testing.assert_array_equal(state.working_grid, again.working_grid)
    task = data.create_mock_task()
    jax.jit(arc_reset, static_argnums=1)(jax.random.key(0), CONFIG, task)


def test_14_actions_and_observations_keep_to_their_bounds():
    env = make("AGI1-train")
    action = env.random_action(jax.random.key(0), worlds=4096)
    for values, most in ((action.operation, 34), (action.row, 29), (action.col, 29)):
        assert (int(values.min()), int(values.max())) == (0, most)
    _, seen = env.reset(jax.random.key(0), worlds=64)
    assert (int(seen.grid.min()), int(seen.grid.max())) == (-1, 9)
    assert env.action_mask.shape == (42,)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch):
    """No connection and no other program."""

    def refuse(*_, **__):
        raise AssertionError("asked for the network or another program")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)


def test_15_drawing_needs_no_network(offline):
    from jaxarc.utils import visualization

    svg = visualization.draw_grid(grid([0, 1, 2]), title="a title").svg()
    assert "<svg" in svg
    assert "http://" not in svg.replace("http://www.w3.org", "")
    assert "https://" not in svg


def test_16_making_an_environment_needs_no_network(offline):
    assert make("AGI2-eval").buffer.num_tasks == 120


def test_17_allowed_operations_are_honoured():
    allowed = UnifiedActionConfig(selection_format="mask", allowed_operations=(3,))
    config = JaxArcConfig(environment=CONFIG.environment, action=allowed)
    state = world(grid([1, 1]), config=config)
    after, _, _, _, info = do(state, 4, [(0, 0)], config)
    assert not bool(info.valid)
    np.testing.assert_array_equal(cells_of(after), grid([1, 1]))
    after, _, _, _, info = do(state, 3, [(0, 0)], config)
    assert bool(info.valid)
    np.testing.assert_array_equal(cells_of(after), grid([3, 1]))


def test_18_the_key_advances_from_episode_to_episode():
    env = make("AGI1-train", config=CONFIG)
    state, _ = env.reset(jax.random.key(0), worlds=8)
    hand_in = MaskAction(
        jnp.full(8, operation_id("submit"), jnp.int32), jnp.zeros((8, 30, 30), bool)
    )
    keys, tasks = [jax.random.key_data(state.key)], [np.asarray(state.task_index)]
    for _ in range(3):
        state, *_ = env.step(state, hand_in)
        keys.append(jax.random.key_data(state.key))
        tasks.append(np.asarray(state.task_index))
    for old, new in itertools.pairwise(keys):
        assert (np.asarray(old) != np.asarray(new)).any(axis=1).all()
    assert len({tuple(numbers.tolist()) for numbers in tasks}) == 4
