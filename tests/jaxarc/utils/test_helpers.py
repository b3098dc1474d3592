"""The helpers of the guides: each must be able to say "good" and to say "bad"."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc import data
from jaxarc.envs import (
    BboxAction,
    ConfigError,
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
from jaxarc.utils._workload import guide_action
from worldloom import batch, no_compiles
from worldloom.compile import RecompileError

CONFIG = JaxArcConfig(
    environment=EnvironmentConfig(max_episode_steps=30),
    dataset=UnifiedDatasetConfig(max_grid_height=12, max_grid_width=12),
)


@pytest.fixture(scope="module")
def task():
    return data.create_mock_task()


@dataclasses.dataclass(frozen=True)
class Reward:
    """A reward that does something on the host at every step."""

    action: object

    def __call__(self, transition):
        similarity = transition.similarity_after
        jax.debug.callback(self.action, similarity)
        return similarity


def with_reward(reward):
    return dataclasses.replace(CONFIG, reward=reward)


# --- compilation


@dataclasses.dataclass(frozen=True)
class Unhashable:
    weights: object = dataclasses.field(default_factory=lambda: [1.0])

    def __call__(self, transition):
        return transition.similarity_after


class ByIdentity:
    def __call__(self, transition):
        return transition.similarity_after


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        (with_reward(Unhashable()), "config.reward.weights is a list"),
        (with_reward(ByIdentity()), "a copy of it would compile anew"),
        ({"max_episode_steps": 3}, "config is a dict"),
    ],
)
def test_a_configuration_that_cannot_be_static_is_found(config, fault, task, capsys):
    assert not jaxarc.verify_config_hashability(config)
    assert fault in capsys.readouterr().out
    assert not jaxarc.debug_jit_compilation(config, task)
    assert fault in capsys.readouterr().out


def test_a_good_configuration_is_said_to_be_good(task, capsys):
    assert jaxarc.verify_config_hashability(CONFIG)
    assert jaxarc.debug_jit_compilation(CONFIG, task)
    assert "JIT compilation successful" in capsys.readouterr().out


def test_a_step_that_cannot_be_compiled_is_told(task, capsys):
    assert not jaxarc.debug_jit_compilation(with_reward(BranchesOnValues()), task)
    assert "JIT compilation failed: TracerBoolConversionError" in capsys.readouterr().out


@dataclasses.dataclass(frozen=True)
class BranchesOnValues:
    def __call__(self, transition):
        return (
            transition.similarity_after if transition.success[0] else -transition.similarity_after
        )


def test_after_warming_up_nothing_compiles(task):
    config = dataclasses.replace(CONFIG, environment=EnvironmentConfig(max_episode_steps=29))
    key, action = jax.random.key(1), guide_action(config, 3)
    jax.block_until_ready((key, action))
    with pytest.raises(RecompileError), no_compiles():
        arc_reset(key, config, task)
    seconds = jaxarc.warm_up_functions(config, task)
    assert set(seconds) == {"reset", "step"}
    with no_compiles():
        state, _ = arc_reset(key, config, task)
        arc_step(state, action, config)


def test_speed_up_is_compiled_against_uncompiled(task):
    found = jaxarc.profile_jit_compilation(CONFIG, task, num_runs=10)
    assert found["speedup"] == pytest.approx(
        found["uncompiled_time"] / found["execution_time"], rel=0.9
    )
    assert found["speedup"] > 10
    assert found["compilation_time"] > found["execution_time"]


# --- memory


def test_fields_of_a_record():
    assert [jaxarc.get_fields_per_action(name) for name in ("point", "bbox", "mask")] == [6, 8, 904]
    with pytest.raises(ConfigError, match="there are: point, bbox, mask"):
        jaxarc.get_fields_per_action("circle")


def test_memory_of_each_format_is_that_of_a_state(task):
    usage = jaxarc.analyze_memory_usage_by_format()
    config = JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=1000))
    state, _ = arc_reset(jax.random.key(0), config, task)
    history = usage["point"]["action_history_mb"]
    assert history == state.action_history.nbytes / 2**20
    assert history < 0.024
    assert usage["mask"]["action_history_mb"] < 3.45
    assert history < 0.1 * usage["mask"]["action_history_mb"]
    short = jaxarc.analyze_memory_usage_by_format(max_episode_steps=10)
    assert short["point"]["action_history_mb"] < history


def test_memory_of_a_batch_is_that_of_its_arrays(task):
    keys = jax.random.split(jax.random.key(0), 8)
    made = batch_reset(keys, CONFIG, task)
    exact = sum(leaf.nbytes for leaf in jax.tree.leaves(made)) / 2**20
    profile = jaxarc.profile_memory_usage(CONFIG, task, batch_sizes=(8,))
    assert profile[8]["total_memory_mb"] == pytest.approx(exact, rel=0.02)
    assert profile[8]["per_env_memory_mb"] == profile[8]["total_memory_mb"] / 8
    assert profile[8]["memory_after"] > profile[8]["memory_before"]


def test_a_leak_is_found_and_none_is_none(task, capsys):
    clean = jaxarc.detect_memory_leaks(CONFIG, task, num_iterations=24)
    assert not clean.leaking
    assert len(clean) == 24
    assert clean[-1][0] == 23
    assert clean[0][1] > 1
    assert "Verdict: no leak" in capsys.readouterr().out
    kept = []
    leaky = with_reward(Reward(lambda similarity: kept.append(jnp.ones(1000))))
    found = jaxarc.detect_memory_leaks(leaky, task, num_iterations=12)
    assert found.leaking
    assert found.report.slope_bytes_per_iteration >= 4000
    assert "Verdict: leak: arrays of JAX stay alive" in capsys.readouterr().out


def test_the_pool_gives_back_what_it_was_given(task, no_recompile):
    pool = jaxarc.StateMemoryPool(pool_size=1, config=CONFIG, task=task)
    first, second = pool.get_state(), pool.get_state()
    assert first is not second
    assert len(pool.in_use_states) == 2
    after, *_ = arc_step(first, guide_action(CONFIG, 0), CONFIG)
    assert not pool.return_state(after)  # not one of its own
    assert pool.return_state(first)
    assert not pool.return_state(first)  # twice
    assert not pool.return_state(second)  # full
    with no_recompile():
        assert pool.get_state() is first
    del first, second
    assert len(pool.in_use_states) == 0
    with pytest.raises(ValueError, match="pool_size must be 0 or more"):
        jaxarc.StateMemoryPool(pool_size=-1)


# --- batches


def test_the_best_batch_size_is_the_one_with_the_most_steps(task, capsys):
    best, results = jaxarc.find_optimal_batch_size(CONFIG, task, max_batch_size=8)
    assert sorted(results) == [1, 4, 8]
    assert best == max(results, key=lambda size: results[size]["throughput"])
    for size, row in results.items():
        assert row["throughput"] * row["per_env_time"] == pytest.approx(1)
        assert row["efficiency"] == pytest.approx(row["throughput"] / size)
    needs = results[4]["memory_used_gb"]
    assert needs > results[1]["memory_used_gb"]
    # A limit between the two keeps the larger one out.
    between = (needs + results[1]["memory_used_gb"]) / 2
    _, fewer = jaxarc.find_optimal_batch_size(CONFIG, task, 4, between)
    assert sorted(fewer) == [1]
    assert "Batch 4: needs" in capsys.readouterr().out
    with pytest.raises(batch.BatchMemoryError, match="target_memory_gb is 1e-09"):
        jaxarc.find_optimal_batch_size(CONFIG, task, 4, 1e-9)


@pytest.mark.slow
def test_workers_play_the_episodes_that_a_plain_loop_plays():
    # Three of the cells that the work paints are to be painted, so that each step tells.
    start = np.ones((8, 8), np.uint8)
    demos = []
    for rows in ([5], [6, 7]):
        target = start.copy()
        target[rows, 5] = 0
        demos.append(data.Pair(start, target))
    task = data.pad_task(data.RawTask("own", tuple(demos), (demos[0],)), height=30, width=30)
    found = jaxarc.hierarchical_batch_processing(2, 3, 2, CONFIG, task, steps=7, seed=42)
    assert len(found) == 4
    keys = jax.random.split(jax.random.key(42), 6)
    expected = []
    for episode in range(2):
        own = jax.vmap(lambda key, e=episode: jax.random.fold_in(key, e))(keys)
        states, _ = batch_reset(own, CONFIG, task)
        total = np.zeros(6, np.float32)
        for step in range(7):
            states, _, reward, *_ = batch_step(states, guide_action(CONFIG, step, (6,)), CONFIG)
            total += np.asarray(reward)
        expected.append(total.reshape(2, 3))
    assert len(np.unique(np.stack(expected))) > 1
    by_worker = [expected[episode][worker] for worker in range(2) for episode in range(2)]
    np.testing.assert_allclose(np.stack(found), np.stack(by_worker), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="needs a config and a task"):
        jaxarc.hierarchical_batch_processing(2, 3, 2)
    with pytest.raises(ValueError, match="must be 1 or more"):
        jaxarc.hierarchical_batch_processing(0, 3, 2, CONFIG, task)


def test_batches_grow_while_they_fit(task):
    processor = jaxarc.DynamicBatchProcessor(CONFIG, task, 2, max_batch_size=4, patience=1)
    results = processor.process_batch(num_episodes=4)
    assert [len(rewards) for rewards in results] == [2, 4, 4, 4]
    assert [row["batch_size"] for row in processor.performance_history] == [2, 4, 4, 4]
    two, four, *_ = (row["memory_gb"] for row in processor.performance_history)
    assert four > two
    limited = jaxarc.DynamicBatchProcessor(
        CONFIG, task, 4, memory_limit_gb=(two + four) / 2, max_batch_size=4
    )
    assert [len(rewards) for rewards in limited.process_batch(num_episodes=2)] == [2, 2]
    with pytest.raises(batch.BatchMemoryError, match="memory_limit_gb is 1e-09"):
        jaxarc.DynamicBatchProcessor(CONFIG, task, 1, 1e-9, max_batch_size=1).process_batch(1)


# --- speed


def test_the_monitor_keeps_compilation_apart_and_names_a_recompilation(task, capsys):
    monitor = jaxarc.PerformanceMonitor()
    config = dataclasses.replace(CONFIG, environment=EnvironmentConfig(max_episode_steps=28))
    state, _ = monitor.monitor_reset(jax.random.key(0), config, task)
    for i in range(4):
        state, *_ = monitor.monitor_step(state, guide_action(config, i), config)
    stats = monitor.get_statistics()
    assert stats["step_compilations"] == stats["reset_compilations"] == 1
    assert len(monitor.metrics["step_times"]) == 3
    assert stats["step_time_min"] <= stats["step_time_mean"] <= stats["step_time_max"]
    assert stats["step_time_max"] < monitor.metrics["jit_compilation_times"]["step"][0]
    monitor.print_report()
    assert "RECOMPILED" not in capsys.readouterr().out
    # Another configuration for the same state: another program.
    monitor.monitor_step(state, guide_action(config, 0), with_reward(ByIdentity()))
    monitor.print_report()
    assert "step compiled" in (shown := capsys.readouterr().out)
    assert "RECOMPILED 1 times" in shown


class Unfinished:
    """A result that is still being computed when the call returns."""

    def block_until_ready(self):
        time.sleep(0.05)
        return self


def test_the_monitor_waits_for_the_work_and_counts_worlds(task):
    monitor = jaxarc.PerformanceMonitor()
    _, elapsed = monitor.time_function(Unfinished)
    assert elapsed >= 0.05
    states, _ = batch_reset(jax.random.split(jax.random.key(0), 8), CONFIG, task)
    actions = guide_action(CONFIG, 0, (8,))
    for _ in range(2):
        states, *_ = monitor.monitor_batch_step(states, actions, CONFIG)
    stats = monitor.get_statistics()
    assert 0 < stats["throughput_mean"] <= stats["throughput_max"]


def test_a_slow_step_misses_the_target(task):
    slow = with_reward(Reward(lambda similarity: time.sleep(0.01)))
    bad = jaxarc.benchmark_performance(slow, task, num_runs=10)
    assert bad["step_time_ms"] >= 1.0
    assert not bad["meets_target"]
    good = jaxarc.benchmark_performance(CONFIG, task, num_runs=50)
    assert good["step_time_ms"] < bad["step_time_ms"]
    assert good["throughput"] == pytest.approx(1000 / good["step_time_ms"])


def test_a_profile_shows_the_step(task, tmp_path: Path, capsys):
    profile = jaxarc.profile_with_jax_profiler(CONFIG, task, tmp_path / "trace")
    assert profile.file.is_relative_to(tmp_path)
    assert any("step" in kernel.program for kernel in profile.table)
    assert "Profile saved to" in capsys.readouterr().out


def test_an_episode_in_one_function_is_the_episode_step_by_step(task):
    runner = jaxarc.create_optimized_episode_runner(CONFIG, task, max_steps=40)
    key = jax.random.key(5)
    result = runner(key, None)
    state, _ = arc_reset(key, CONFIG, task)
    total = 0.0
    for step in range(40):
        state, _, reward, *_ = arc_step(state, guide_action(CONFIG, step), CONFIG)
        total += float(reward)
    assert int(result["episode_length"]) == 30  # truncated there, and then still
    np.testing.assert_allclose(float(result["episode_reward"]), total, rtol=1e-5)
    np.testing.assert_array_equal(result["final_state"].working_grid, state.working_grid)
    many = jax.vmap(lambda key: runner(key, None))(jax.random.split(key, 3))
    assert many["episode_reward"].shape == (3,)


def test_a_policy_sees_and_acts_in_the_episode(task):
    def policy(params, observation, key):
        assert observation.grid.shape == (12, 12)
        return PointAction(params, jnp.int32(0), jnp.int32(0))

    runner = jaxarc.create_optimized_episode_runner(CONFIG, task, max_steps=3, policy=policy)
    assert int(runner(jax.random.key(0), jnp.int32(7))["final_state"].working_grid[0, 0]) == 7
    assert int(runner(jax.random.key(0), jnp.int32(34))["episode_length"]) == 1


@pytest.mark.parametrize(
    ("name", "kind"), [("point", PointAction), ("bbox", BboxAction), ("mask", MaskAction)]
)
def test_the_work_has_the_format_of_the_configuration(name, kind):
    config = dataclasses.replace(CONFIG, action=UnifiedActionConfig(selection_format=name))
    action = guide_action(config, 9, (2,))
    assert isinstance(action, kind)
    cells = np.asarray(action.to_selection_mask((12, 12)))
    assert cells.shape == (2, 12, 12)
    assert cells[:, 2, 5].all()
    assert cells.sum() == 2
