"""A state goes to disk without its task data and comes back whole."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from jaxarc import data
from jaxarc.envs import (
    EnvironmentConfig,
    JaxArcConfig,
    UnifiedDatasetConfig,
    arc_reset,
    batch_reset,
    batch_step,
    make,
)
from jaxarc.utils.serialization import (
    StateFileError,
    load_state_efficiently,
    save_state_efficiently,
)
from worldloom import store

WORLDS = 24
CONFIG = JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=20))


@pytest.fixture(scope="module")
def tasks():
    return data.load("AGI1-train")


@pytest.fixture(scope="module")
def played(tasks):
    """Worlds in the middle of episodes of different tasks."""
    env = make(tasks, config=CONFIG)
    state, _ = env.reset(jax.random.key(0), worlds=WORLDS)
    for step in range(3):
        action = env.random_action(jax.random.key(step), worlds=WORLDS)
        state, *_ = batch_step(state, action, CONFIG)
    return state


@pytest.fixture(scope="module")
def dummy(tasks):
    keys = jax.random.split(jax.random.key(9), WORLDS)
    return batch_reset(keys, CONFIG, tasks.buffer())[0]


def check_equal(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_a_batch_comes_back_bit_for_bit_and_goes_on_alike(played, dummy, tasks, tmp_path: Path):
    save_state_efficiently(played, tmp_path / "state.loom")
    back = load_state_efficiently(tmp_path / "state.loom", tasks, dummy)
    assert jax.tree.structure(back) == jax.tree.structure(played)
    check_equal(back, played)
    action = make(tasks, config=CONFIG).random_action(jax.random.key(7), worlds=WORLDS)
    check_equal(batch_step(back, action, CONFIG), batch_step(played, action, CONFIG))


@pytest.mark.parametrize("canvas", [(30, 30), (12, 10)])
def test_one_state_of_any_canvas_and_of_a_test_pair(tasks, tmp_path: Path, canvas):
    small = tasks.subset("up-to-10x10")
    config = JaxArcConfig(
        environment=EnvironmentConfig(episode_mode="test", record_history=False),
        dataset=UnifiedDatasetConfig(max_grid_height=canvas[0], max_grid_width=canvas[1]),
    )
    state, _ = arc_reset(jax.random.key(0), config, small.get_task_by_index(5))
    other, _ = arc_reset(jax.random.key(1), config, small.get_task_by_index(6))
    save_state_efficiently(state, tmp_path / "state.loom")
    back = load_state_efficiently(tmp_path / "state.loom", small, other)
    check_equal(back, state)
    assert bool(back.on_test_pair)


def seeds_own_save(state, path):
    """As the seed writes it; its filter looks at leaves, and so leaves no task data out."""

    def efficient_filter_spec(f, x):
        if eqx.is_array(x) or isinstance(x, (int, float, bool)):
            return eqx.default_serialise_filter_spec(f, x)
        return False

    eqx.tree_serialise_leaves(path, state, filter_spec=efficient_filter_spec)


class CarriesTask(eqx.Module):
    """A state as the seed has it: with its task in it."""

    state: object
    task_data: data.JaxArcTask


def test_the_file_is_a_tenth_of_one_with_the_task_data(played, tasks, tmp_path: Path):
    ours, seeds, same_format = (tmp_path / name for name in ("ours", "seeds.eqx", "all"))
    numbers = np.asarray(played.task_index).tolist()
    copies = [tasks.get_task_by_index(number) for number in numbers]
    task_data = jax.tree.map(lambda *leaves: np.stack(leaves), *copies)
    plain = {
        field.name: getattr(played, field.name)
        for field in dataclasses.fields(played)
        if field.name not in ("key", "canvas")
    }
    seeds_own_save(CarriesTask(plain, jax.tree.map(jax.numpy.asarray, task_data)), seeds)
    store.save(same_format, {"state": plain, "task": dataclasses.asdict(task_data)})
    save_state_efficiently(played, ours)
    sizes = {path.name: path.stat().st_size for path in (ours, seeds, same_format)}
    task_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(task_data))
    assert sizes["seeds.eqx"] > task_bytes  # the seed's own filter leaves nothing out
    assert sizes["ours"] < 0.1 * sizes["seeds.eqx"]
    assert sizes["ours"] < sizes["all"]
    print(sizes)
    stored = {leaf.path for leaf in store.inspect(ours)}
    assert not {path for path in stored if "input" in path or "target" in path}


def test_other_tasks_are_refused(played, dummy, tasks, tmp_path: Path):
    path = tmp_path / "state.loom"
    save_state_efficiently(played, path)
    with pytest.raises(StateFileError, match="saved with other task data than the parser has"):
        load_state_efficiently(path, data.load("AGI1-eval"), dummy)
    with pytest.raises(store.MismatchError, match="numbers"):
        load_state_efficiently(path, tasks, jax.tree.map(lambda leaf: leaf[:3], dummy))
