"""Episodes: how they begin, are scored, end, begin again; and what is refused."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import data, make
from jaxarc.envs import (
    ActionError,
    ConfigError,
    EnvironmentConfig,
    JaxArcConfig,
    MaskAction,
    ObservationConfig,
    PointAction,
    SimilarityReward,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
    arc_reset,
    arc_step,
    batch_reset,
    batch_step,
    create_memory_optimized_config,
)
from jaxarc.envs.structured_actions import check_any_action
from jaxarc.operations import operation_id

SUBMIT = operation_id("submit")
MASKS = JaxArcConfig(
    environment=EnvironmentConfig(max_episode_steps=20, record_history=False),
    action=UnifiedActionConfig(selection_format="mask"),
)
POINTS = JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=20))


def grid(*rows):
    return np.array(rows, np.uint8)


def two_tests():
    """A task with two test pairs: the answer is the input in colour 5."""
    pairs = [data.Pair(grid([k, k]), grid([5, 5])) for k in (1, 2, 3)]
    tests = tuple(data.Pair(grid([k], [k]), grid([5], [5])) for k in (6, 7))
    return data.TaskSet((data.RawTask("two", tuple(pairs), tests),), "own")


@pytest.fixture(scope="module")
def env():
    return make("AGI1-train", config=MASKS)


@pytest.fixture(scope="module")
def start(env):
    """Every task of ARC-AGI-1's training set in a world of its own."""
    return env.reset(jax.random.key(0), worlds=400, task=np.arange(400))


def mask_action(operation, cells):
    return MaskAction(jnp.asarray(operation, jnp.int32), jnp.asarray(cells))


def all_points(operation, worlds, row=0, col=0):
    full = lambda value: jnp.full(worlds, value, jnp.int32)  # noqa: E731
    return PointAction(full(operation), full(row), full(col))


def test_an_episode_begins_with_the_input_of_the_pair_it_is_scored_on(env, start):
    state, obs = start
    grids, inputs, targets = (
        np.asarray(x) for x in (state.working_grid, state.input_grid, state.target_grid)
    )
    np.testing.assert_array_equal(grids, inputs)
    pairs_seen = set()
    for world, task in enumerate(env.tasks.tasks):
        pair = task.demos[int(state.pair_index[world])]
        pairs_seen.add(int(state.pair_index[world]))
        for cells, expected in ((inputs[world], pair.input), (targets[world], pair.output)):
            height, width = expected.shape
            np.testing.assert_array_equal(cells[:height, :width], expected)
            assert cells.sum() == expected.sum()
        height, width = pair.input.shape
        seen = np.asarray(obs.grid[world])
        np.testing.assert_array_equal(seen[:height, :width], pair.input)
        assert (seen[height:] == -1).all()
        assert (seen[:, width:] == -1).all()
    assert pairs_seen >= {0, 1, 2}
    assert not np.asarray(state.done).any()


def test_every_training_pair_can_be_solved(env, start):
    """Resize to the target's shape, then paint each colour: ten or fewer steps to success."""
    state, _ = start
    target = np.asarray(state.target_grid)
    sizes = np.stack([state.target_height, state.target_width], axis=1)
    corner = np.zeros(target.shape, bool)
    corner[np.arange(400), sizes[:, 0] - 1, sizes[:, 1] - 1] = True
    solved = np.zeros(400, bool)
    resize = np.full(400, operation_id("resize"))
    # The one compiled step without automatic reset: a solved world stays solved.
    state, _, _, done, info = batch_step(state, mask_action(resize, corner), MASKS)
    solved |= np.asarray(info.success)
    row, column = np.mgrid[:30, :30]
    inside = (row < sizes[:, :1, None]) & (column < sizes[:, 1:, None])
    for colour in range(10):
        chosen = (target == colour) & inside
        state, _, _, done, info = batch_step(state, mask_action([colour] * 400, chosen), MASKS)
        solved |= np.asarray(info.success)
    assert solved.all()
    assert np.asarray(done).all()
    np.testing.assert_allclose(info.similarity, 1.0)


def similarity_by_hand(cells, target):
    either = agree = 0
    for row in range(max(cells.shape[0], target.shape[0])):
        for column in range(max(cells.shape[1], target.shape[1])):
            mine = row < cells.shape[0] and column < cells.shape[1]
            theirs = row < target.shape[0] and column < target.shape[1]
            either += mine or theirs
            agree += mine and theirs and cells[row, column] == target[row, column]
    return agree / either


def test_similarity_counts_cells_of_both_grids(env, start):
    state, _ = start
    for world, task in list(enumerate(env.tasks.tasks))[::9]:
        pair = task.demos[int(state.pair_index[world])]
        expected = similarity_by_hand(pair.input, pair.output)
        np.testing.assert_allclose(float(state.similarity[world]), expected, rtol=1e-6)


def own_env(*, worlds=4, config=POINTS):
    """Worlds that all play the first demonstration of `two_tests`: [1 1] -> [5 5]."""
    buffer = two_tests().buffer()
    keys = jax.random.split(jax.random.key(0), worlds)
    return batch_reset(keys, config, buffer, initial_pair_idx=0)[0]


def test_a_grid_larger_than_its_target_is_not_solved():
    state = own_env()
    state, *_ = batch_step(state, all_points(operation_id("resize"), 4, 1, 1), POINTS)
    for column in (0, 1):
        state, _, _, done, info = batch_step(state, all_points(5, 4, 0, column), POINTS)
    np.testing.assert_array_equal(state.working_grid[0, :2, :2], [[5, 5], [0, 0]])
    assert not np.asarray(info.success).any()
    assert not np.asarray(done).any()
    np.testing.assert_allclose(info.similarity, 0.5)
    state, _, _, done, info = batch_step(state, all_points(operation_id("resize"), 4, 0, 1), POINTS)
    assert np.asarray(info.success).all()
    assert np.asarray(info.terminated).all()
    assert np.asarray(done).all()


def test_handing_in_ends_the_episode_and_rewards_are_what_they_say():
    reward = SimilarityReward(
        similarity_weight=2.0, success_bonus=7.0, step_penalty=0.25, submit_penalty=3.0
    )
    config = dataclasses.replace(POINTS, reward=reward)
    state = own_env(config=config)
    paint = PointAction(np.array([5, 5, 4, 5]), np.zeros(4, int), np.zeros(4, int))
    state, _, rewards, _, _ = batch_step(state, paint, config)
    np.testing.assert_allclose(rewards, [0.75, 0.75, -0.25, 0.75])
    second = PointAction(np.array([5, SUBMIT, SUBMIT, 3]), np.zeros(4, int), np.ones(4, int))
    state, _, rewards, done, info = batch_step(state, second, config)
    np.testing.assert_allclose(rewards, [2 * 0.5 + 7 - 0.25, -3.25, -3.25, -0.25])
    np.testing.assert_array_equal(done, [True, True, True, False])
    np.testing.assert_array_equal(info.success, [True, False, False, False])
    after, _, rewards, done, info = batch_step(state, all_points(9, 4), config)
    np.testing.assert_allclose(rewards[:3], 0)
    np.testing.assert_array_equal(after.grid[:3], state.grid[:3])
    np.testing.assert_array_equal(after.step_count, [2, 2, 2, 3])
    assert not np.asarray(info.valid[:3]).any()


def test_truncation_is_not_termination():
    state = own_env()
    for step in range(20):
        state, _, _, done, info = batch_step(state, all_points(3, 4), POINTS)
        assert bool(done[0]) == (step == 19)
    assert np.asarray(info.truncated).all()
    assert not np.asarray(info.terminated).any()


def test_one_world_many_worlds_and_vmap_agree(start):
    task = data.create_mock_task()
    keys = jax.random.split(jax.random.PRNGKey(42), 6)
    states, obs = batch_reset(keys, POINTS, task)
    mapped, mapped_obs = jax.vmap(lambda key: arc_reset(key, POINTS, task))(keys)
    check_equal((states, obs), (mapped, mapped_obs))
    rng = np.random.default_rng(0)
    ops = np.array([24, 13, 3, 28, 34, 21])
    actions = PointAction(ops, rng.integers(0, 8, 6), rng.integers(0, 8, 6))
    together = batch_step(states, actions, POINTS)
    check_equal(jax.vmap(lambda s, a: arc_step(s, a, POINTS))(states, actions), together)
    jitted = jax.jit(arc_step, static_argnums=2)
    filtered = eqx.filter_jit(arc_step)
    for world in (0, 4):
        one = jax.tree.map(lambda leaf, world=world: leaf[world], (states, actions))
        expected = jax.tree.map(lambda leaf, world=world: leaf[world], together)
        check_equal(jitted(*one, POINTS), expected)
        check_equal(filtered(*one, POINTS), expected)
    first, seen = eqx.filter_jit(arc_reset)(keys[0], POINTS, task)
    check_equal((first, seen), jax.tree.map(lambda leaf: leaf[0], (states, obs)))


def check_equal(one, other):
    def same(a, b):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)

    jax.tree.map(same, one, other)


def visible(state):
    return np.where(state.working_grid_mask, np.asarray(state.working_grid).astype(int), -1)


def test_an_environment_begins_anew_by_itself(env, start):
    state, _ = start
    finish = np.arange(400) % 3 == 0
    action = mask_action(np.where(finish, SUBMIT, 7), np.ones((400, 30, 30), bool))
    after, obs, _, done, info = env.step(state, action)
    np.testing.assert_array_equal(np.asarray(done), finish | np.asarray(info.success))
    ended = np.asarray(done)
    assert (np.asarray(after.step_count) == np.where(ended, 0, 1)).all()
    assert not np.asarray(after.done).any()
    fresh = np.asarray(after.working_grid)[ended]
    np.testing.assert_array_equal(fresh, np.asarray(after.input_grid)[ended])
    # Last observation of the old episode, first of the new one.
    last, first = np.asarray(info.final_observation.grid), np.asarray(obs.grid)
    np.testing.assert_array_equal(last[~ended], first[~ended])
    old = visible(state)
    submitted = ended & finish
    np.testing.assert_array_equal(last[submitted], old[submitted])
    np.testing.assert_array_equal(first[ended], visible(after)[ended])
    # Another key, another task: the stream of random numbers moves on.
    keys = jax.random.key_data(after.key)
    assert (keys[ended] != jax.random.key_data(state.key)[ended]).any(axis=1).all()
    assert len(set(np.asarray(after.task_index)[ended].tolist())) > 60


def test_the_state_is_small_and_holds_one_pair(start):
    state, _ = start
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state)) / 400
    assert size < 2200
    own_grids = 4 * (4 * 30) * 4 + (5 * 30) * 4 - 4 * 30 * 4
    assert size - own_grids < 128


def test_allowed_operations_are_honoured_everywhere():
    action = UnifiedActionConfig(allowed_operations=(5, 3, SUBMIT))
    config = JaxArcConfig(action=action, observation=ObservationConfig(allowed_operations=True))
    assert config.operations == (3, 5, SUBMIT)
    buffer = two_tests().buffer()
    state, obs = batch_reset(jax.random.split(jax.random.key(0), 4), config, buffer)
    np.testing.assert_array_equal(np.flatnonzero(obs.allowed_operations[0]), [3, 5, SUBMIT])
    ops = PointAction(np.array([3, 4, 31, 40]), np.zeros(4, int), np.zeros(4, int))
    after, _, _, _, info = batch_step(state, ops, config)
    np.testing.assert_array_equal(info.valid, [True, False, False, False])
    np.testing.assert_array_equal(after.grid[1:], state.grid[1:])
    assert int(after.working_grid[0, 0, 0]) == 3
    np.testing.assert_array_equal(after.step_count, 1)
    drawn = make(two_tests(), config=config).random_action(jax.random.key(0), worlds=200)
    assert set(np.asarray(drawn.operation).tolist()) == {3, 5, SUBMIT}


def test_observations_hold_what_was_asked_for():
    asked = ObservationConfig(input=True, clipboard=True, demos=4, step=True)
    config = dataclasses.replace(POINTS, observation=asked)
    env = make(two_tests(), config=config)
    state, obs = env.reset(jax.random.key(0), worlds=3)
    np.testing.assert_array_equal(obs.input, obs.grid)
    assert (np.asarray(obs.clipboard) == -1).all()
    assert obs.demo_inputs.shape == (3, 4, 30, 30)
    for number in range(3):
        np.testing.assert_array_equal(obs.demo_inputs[1, number, 0, :3], [number + 1] * 2 + [-1])
        np.testing.assert_array_equal(obs.demo_outputs[1, number, 0, :3], [5, 5, -1])
    assert (np.asarray(obs.demo_inputs[:, 3]) == -1).all()
    _, obs, *_ = env.step(state, all_points(operation_id("copy"), 3))
    np.testing.assert_array_equal(obs.step, 1)
    assert (np.asarray(obs.clipboard) >= 0).sum() == 3
    with pytest.raises(ConfigError, match="needs the tasks at every step"):
        batch_step(state, all_points(0, 3), config)


TEST_MODE = JaxArcConfig(
    environment=EnvironmentConfig(episode_mode="test", record_history=False, max_episode_steps=30)
)


def play(env, state, *operations_and_rows):
    """The same actions in every world, without automatic reset."""
    for operation, row in operations_and_rows:
        action = all_points(operation, state.done.shape[0], row, 0)
        state, obs, reward, done, info = batch_step(state, action, env.config, tasks=env.buffer)
    return state, obs, reward, done, info


def test_the_official_protocol_every_test_pair_two_attempts_exact():
    env = make(two_tests(), config=TEST_MODE)
    state, _ = env.reset(jax.random.key(0), worlds=2)
    np.testing.assert_array_equal(state.working_grid[0, :2, 0], [6, 6])
    # Not told before it is handed in: an exact grid gives no similarity and no end.
    state, _, _, done, info = play(env, state, (5, 0), (5, 1))
    assert not np.asarray(done).any()
    np.testing.assert_allclose(info.similarity, 0)
    state, _, reward, done, info = play(env, state, (SUBMIT, 0))
    assert np.asarray(info.success).all()
    np.testing.assert_allclose(info.score, 0.5)
    assert np.asarray(reward > 9).all()
    assert not np.asarray(done).any()
    # The second pair is on the board. One miss leaves the grid, the second ends the episode.
    np.testing.assert_array_equal(state.pair_index, 1)
    np.testing.assert_array_equal(state.working_grid[0, :2, 0], [7, 7])
    state, _, _, done, info = play(env, state, (5, 0), (SUBMIT, 0))
    np.testing.assert_array_equal(state.working_grid[0, :2, 0], [5, 7])
    assert not np.asarray(done | info.success).any()
    state, _, _, done, info = play(env, state, (SUBMIT, 0))
    assert np.asarray(done & info.terminated & ~info.success).all()
    np.testing.assert_allclose(info.score, 0.5)


def test_two_misses_go_on_to_the_next_pair_and_the_second_attempt_counts():
    env = make(two_tests(), config=TEST_MODE)
    state, _ = env.reset(jax.random.key(0), worlds=2)
    state, *_ = play(env, state, (SUBMIT, 0), (SUBMIT, 0))
    np.testing.assert_array_equal(state.pair_index, 1)
    state, _, _, done, info = play(env, state, (SUBMIT, 0), (5, 0), (5, 1), (SUBMIT, 0))
    assert np.asarray(done & info.success).all()
    np.testing.assert_allclose(info.score, 0.5)


def test_pair_controls_go_where_they_say():
    setting = EnvironmentConfig(pair_controls=True, record_history=False)
    env = make(two_tests(), config=JaxArcConfig(environment=setting))
    keys = jax.random.split(jax.random.key(0), 2)
    state, _ = batch_reset(keys, env.config, env.buffer, initial_pair_idx=0)

    def after(state, name):
        return play(env, state, (operation_id(name), 0))[0]

    def where(state):
        return int(state.pair_index[0]), bool(state.on_test_pair[0])

    assert where(after(state, "next_demo")) == (1, False)
    assert where(after(state, "previous_demo")) == (2, False)
    assert where(after(state, "next_test")) == (0, True)
    assert where(after(state, "previous_test")) == (1, True)
    assert where(after(after(state, "next_test"), "next_demo")) == (0, False)
    assert where(after(after(state, "previous_test"), "next_test")) == (0, True)
    painted, *_ = play(env, state, (9, 0))
    np.testing.assert_array_equal(after(painted, "reset_pair").grid, state.grid)
    cell = PointAction(np.array([5, 5]), np.zeros(2, int), np.ones(2, int))
    half, *_ = play(env, state, (5, 0))
    solved, _, _, done, info = batch_step(half, cell, env.config, tasks=env.buffer)
    assert np.asarray(info.success & ~done).all()
    assert where(after(after(solved, "next_test"), "first_unsolved_demo")) == (1, False)
    assert where(after(solved, "first_open_test")) == (0, True)
    moved = after(after(solved, "next_demo"), "next_demo")
    np.testing.assert_array_equal(moved.working_grid[0, 0, :2], [3, 3])
    with pytest.raises(ConfigError, match="needs the tasks at every step"):
        batch_step(state, cell, env.config)


@pytest.mark.parametrize("selection_format", ["point", "bbox", "mask"])
def test_the_history_keeps_every_action(selection_format):
    action = UnifiedActionConfig(selection_format=selection_format)
    config = dataclasses.replace(POINTS, action=action)
    env = make(two_tests(), config=config)
    state, _ = env.reset(jax.random.key(0), worlds=2)
    actions = [env.random_action(jax.random.key(k), worlds=2) for k in range(3)]
    actions = [eqx.tree_at(lambda a: a.operation, a, jnp.array([4, 44])) for a in actions]
    for step in actions:
        state, *_ = batch_step(state, step, config)
    records = np.asarray(state.action_history)
    assert records.dtype == np.uint8
    assert records.shape[1] == 20
    for number, step in enumerate(actions):
        first = records[0, number]
        assert first[0] == 4
        assert tuple(first[-3:]) == (number, int(state.pair_index[0]), 1)
        assert records[1, number, -1] == 0
        if selection_format == "mask":
            bits = np.unpackbits(first[1:-3].reshape(30, 4), axis=1, bitorder="little")
            np.testing.assert_array_equal(bits[:, :30], step.selection[0])
        else:
            given = [int(leaf[0]) for leaf in jax.tree.leaves(step)[1:]]
            np.testing.assert_array_equal(first[1:-3], given)
    assert not records[:, 3:].any()


def test_history_sizes():
    def bytes_a_record(selection_format, steps):
        config = JaxArcConfig(
            environment=EnvironmentConfig(max_episode_steps=steps),
            action=UnifiedActionConfig(selection_format=selection_format),
        )
        reset = lambda key: arc_reset(key, config, data.create_mock_task())[0]  # noqa: E731
        history = jax.eval_shape(reset, jax.random.key(0)).action_history
        return history.size * history.dtype.itemsize / steps

    assert [bytes_a_record(f, 100) for f in ("point", "bbox", "mask")] == [6, 8, 124]
    assert [bytes_a_record(f, 1000) for f in ("point", "bbox", "mask")] == [12, 16, 128]


def test_a_rollout_is_the_same_as_stepping():
    env = make(
        "AGI1-train",
        subset="up-to-5x5",
        config=dataclasses.replace(
            POINTS, environment=EnvironmentConfig(max_episode_steps=6, record_history=False)
        ),
    )
    worlds, length = 5, 17

    def policy(params, obs, key):
        action = env.random_action(key, worlds=worlds)
        return eqx.tree_at(lambda a: a.row, action, action.row + params["shift"])

    key = jax.random.key(3)
    last, rollout = env.rollout(
        policy, {"shift": jnp.int32(2)}, key, length, worlds=worlds, observations=True
    )
    first, acting = jax.random.split(key)
    state, obs = env.reset(first, worlds=worlds)
    for step in range(length):
        np.testing.assert_array_equal(rollout.observation.grid[step], obs.grid)
        action = policy({"shift": jnp.int32(2)}, obs, jax.random.fold_in(acting, step))
        state, obs, reward, _, info = env.step(state, action)
        np.testing.assert_array_equal(rollout.action.row[step], action.row)
        np.testing.assert_array_equal(rollout.reward[step], reward)
        np.testing.assert_array_equal(rollout.terminated[step], info.terminated)
        np.testing.assert_array_equal(rollout.truncated[step], info.truncated)
    check_equal(last, state)
    assert np.asarray(rollout.truncated).any()


def test_bad_actions_poison_their_own_world_alone():
    from jaxarc.utils.error_handling import JAXErrorHandler
    from worldloom import check

    raised = check.reraise
    config = dataclasses.replace(
        POINTS, environment=EnvironmentConfig(debug_level=1, record_history=False)
    )
    state = own_env(config=config)
    bad = PointAction(np.array([5, 99, 5, 5]), np.array([0, 0, 31, 0]), np.zeros(4, int))
    with check.using("nan"):
        after, _, reward, _, _ = batch_step(state, bad, config)
        np.testing.assert_array_equal(np.isnan(reward), [False, True, True, False])
    np.testing.assert_array_equal(after.grid[1], state.grid[1])
    with pytest.raises(check.CheckError, match="operation must be one of 0 to 34"), raised():
        jax.block_until_ready(batch_step(state, bad, config))
    good = all_points(5, 4)
    checked = jax.jit(lambda a: JAXErrorHandler.validate_action(a, config))
    check_equal(checked(good), good)
    with pytest.raises(check.CheckError, match="rows 0 to 29"), raised():
        jax.block_until_ready(checked(bad))
    check_equal(JAXErrorHandler.validate_state_consistency(state), state)
    broken = state.replace(similarity=state.similarity.at[2].set(jnp.nan))
    with pytest.raises(check.CheckError, match="similarity must lie in 0 to 1"):
        jax.block_until_ready(JAXErrorHandler.validate_state_consistency(broken))


def test_configurations_are_values_and_list_what_they_know():
    assert hash(JaxArcConfig()) == hash(JaxArcConfig())
    assert JaxArcConfig() != POINTS
    with pytest.raises(ConfigError, match="it has: max_episode_steps, episode_mode"):
        EnvironmentConfig(max_steps=3)
    with pytest.raises(ConfigError, match="one of 'point', 'bbox', 'mask'"):
        UnifiedActionConfig(selection_format="rectangle")
    with pytest.raises(ConfigError, match="one of 'train', 'test'"):
        EnvironmentConfig(episode_mode="eval")
    with pytest.raises(ConfigError, match="an integer 1 to 32"):
        UnifiedDatasetConfig(max_grid_height=33)
    with pytest.raises(ConfigError, match="ids 0 to 41"):
        UnifiedActionConfig(allowed_operations=(3, 42))
    with pytest.raises(ConfigError, match="set it there"):
        arc_reset(jax.random.key(0), POINTS, data.create_mock_task(), episode_mode="test")


def test_what_does_not_fit_is_refused():
    key = jax.random.key(0)
    small = create_memory_optimized_config()
    _, obs = arc_reset(key, small, data.create_mock_task())
    assert obs.grid.shape == (15, 15)
    tiny = create_memory_optimized_config(grid_size=10)
    with pytest.raises(data.BadTaskError, match="larger than the canvas of 10 x 10"):
        arc_reset(key, tiny, data.create_mock_task())
    with pytest.raises(ConfigError, match=r"\.buffer\(height=15, width=15\)"):
        arc_reset(key, small, two_tests().buffer())
    with pytest.raises(ActionError, match=r"PointAction.*got dict"):
        check_any_action({"operation": 0, "selection": [5, 5]})
    with pytest.raises(ActionError, match="integers, got float32"):
        PointAction(jnp.float32(0), 1, 1)
    with pytest.raises(ActionError, match="10 x 10 cells, the canvas 15 x 15"):
        MaskAction(0, jnp.zeros((10, 10), bool)).to_lanes(15, 15)


def test_evaluation_sets_are_made_for_testing():
    env = make("AGI2-eval")
    assert env.config.environment.episode_mode == "test"
    assert env.buffer.num_tasks == 120
    assert int(env.action_mask.sum()) == 35
    assert make("AGI1-train", ids=["007bbfb7"]).tasks.ids == ("007bbfb7",)
