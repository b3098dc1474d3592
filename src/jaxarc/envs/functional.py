"""The environment as four pure functions, compiled, for one world and for many.

`jax.vmap(arc_step)` runs the same batched program as `batch_step`.
"""

from __future__ import annotations

import dataclasses
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from jaxarc.bitgrid import from_lanes, lanes_for, to_lanes
from jaxarc.data import JaxArcTask, TaskBuffer
from jaxarc.data._index import in_range, whole_numbers
from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs._doors import check_step, check_tasks, key_of_each, one_key
from jaxarc.envs._episode import Outcome, advance, begin, restart
from jaxarc.envs._observation import ArcObservation, observe
from jaxarc.envs._options import ConfigError
from jaxarc.envs._state import AnyKey, ArcState, World
from jaxarc.envs._validate import action_is_good, what_is_good
from jaxarc.envs.structured_actions import Action, MaskAction
from worldloom import check


class StepInfo(eqx.Module):
    """What a step tells besides observation, reward and done.

    - `terminated`: the episode came to its end by this step: solved, or handed in.
    - `truncated`: the episode was cut off by this step; its value goes on, so bootstrap.
    - `success`: a pair was solved by this step.
    - `valid`: the operation is allowed, and the episode was not over.
    - `similarity`: share of cells that are right; 0 on test pairs, which do not tell.
    - `score`: share of the task's test pairs solved so far in test mode, otherwise `success`.
    - `final_observation`: the observation after the step and before any reset.
    """

    terminated: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]
    success: Bool[Array, "*batch"]
    valid: Bool[Array, "*batch"]
    similarity: Float32[Array, "*batch"]
    score: Float32[Array, "*batch"]
    final_observation: ArcObservation


Step = tuple[ArcState, ArcObservation, Float32[Array, "*batch"], Bool[Array, "*batch"], StepInfo]
LaneStep = tuple[World, ArcObservation, Float32[Array, "*batch"], Bool[Array, "*batch"], StepInfo]


def arc_reset(
    key: AnyKey,
    config: JaxArcConfig,
    task_data: JaxArcTask | TaskBuffer,
    *,
    episode_mode: str | None = None,
    initial_pair_idx: Any = None,
) -> tuple[ArcState, ArcObservation]:
    """Begin an episode in one world.

    **Arguments:**

    - `key`: decides the task, where a buffer of tasks is given, and the demonstration pair.
    - `task_data`: one task, or a buffer of tasks to draw from.
    - `episode_mode`: as in the configuration, or left out.
    - `initial_pair_idx`: the number of the pair to begin with, instead of a random one. One that
      the task does not have is an `UnknownTaskError`; inside `jit`, a failed check of
      `worldloom.check`.

    ```python
    import jax
    from jaxarc import create_mock_task
    from jaxarc.envs import JaxArcConfig, PointAction, arc_reset, arc_step

    config = JaxArcConfig()
    state, obs = arc_reset(jax.random.key(0), config, create_mock_task())
    action = PointAction(operation=3, row=5, col=5)
    state, obs, reward, done, info = arc_step(state, action, config)
    assert state.working_grid[5, 5] == 3
    ```
    """
    states, observations = batch_reset(
        one_key(key)[None],
        config,
        task_data,
        episode_mode=episode_mode,
        initial_pair_idx=initial_pair_idx,
    )
    return jax.tree.map(lambda leaf: leaf[0], (states, observations))


def batch_reset(
    keys: AnyKey,
    config: JaxArcConfig,
    task_data: JaxArcTask | TaskBuffer,
    *,
    episode_mode: str | None = None,
    initial_pair_idx: Any = None,
) -> tuple[ArcState, ArcObservation]:
    """Begin an episode in one world a key; with a buffer, worlds get tasks of their own."""
    if episode_mode not in (None, config.environment.episode_mode):
        raise ConfigError(
            f"episode_mode={episode_mode!r}, but the configuration says "
            f"{config.environment.episode_mode!r}: steps need it too, so set it there with "
            f"EnvironmentConfig(episode_mode={episode_mode!r})"
        )
    keys = key_of_each(keys)
    check_tasks(task_data, config)
    if initial_pair_idx is None:
        return _reset(keys, task_data, None, config=config)
    pair = whole_numbers("initial_pair_idx", initial_pair_idx)
    if pair.shape not in ((), keys.shape, (1,)):
        raise ConfigError(
            f"initial_pair_idx has the shape {pair.shape}; expected one number, or one a world, "
            f"{keys.shape[0]} in all"
        )
    pair = jnp.broadcast_to(pair, keys.shape)
    states, shown = _reset(keys, task_data, pair, config=config)
    return _with_known_pair(states, pair, task_data, config), shown


def _with_known_pair(states: ArcState, pair: Array, task_data: Any, config: Any) -> ArcState:
    """The states, having checked that their tasks have the pair."""
    testing = config.environment.episode_mode == "test"
    if isinstance(task_data, JaxArcTask):
        limit = task_data.num_test_pairs if testing else task_data.num_train_pairs
    else:
        counts = task_data.num_tests if testing else task_data.num_demos
        limit = counts[states.task_index]
    what = f"{'test' if testing else 'demonstration'} pairs of the task"
    return in_range("initial_pair_idx", pair, limit, what, guarded=states)


@partial(jax.jit, static_argnames="config")
def _reset(keys, task_data, pair, *, config):
    tasks = task_data
    index = None
    if isinstance(task_data, JaxArcTask):
        tasks = TaskBuffer.from_task(_onto_canvas(task_data, config.canvas))
        index = jnp.zeros(keys.shape, jnp.int32)
    state = begin(keys, config, tasks, task=index, pair=pair)
    if isinstance(task_data, JaxArcTask):
        own = jnp.broadcast_to(task_data.task_index, keys.shape)
        shown = observe(from_lanes(state), config, tasks)
        state = dataclasses.replace(state, task_index=own)
        return from_lanes(state).packed(), shown
    worlds = from_lanes(state)
    return worlds.packed(), observe(worlds, config, tasks)


def arc_step(
    state: ArcState, action: Action, config: JaxArcConfig, *, tasks: TaskBuffer | None = None
) -> Step:
    """One step of one world: `(state, observation, reward, done, info)`.

    A world whose episode is over stays as it is, with reward 0, until it is reset.

    **Arguments:**

    - `action`: a `PointAction`, `BboxAction` or `MaskAction`.
    - `tasks`: the buffer that the episode began with. Needed where the step may go to another
      pair or show demonstrations; otherwise the state holds all there is to know.
    """
    check_step(state, action, config, tasks, batch=False)
    return _step(state, action, tasks, config=config)


def batch_step(
    states: ArcState, actions: Action, config: JaxArcConfig, *, tasks: TaskBuffer | None = None
) -> Step:
    """`arc_step` of many worlds at once; `actions` is one object with a leading axis."""
    check_step(states, actions, config, tasks, batch=True)
    return _batch_step(states, actions, tasks, config=config)


@partial(jax.jit, static_argnames="config")
def _step(state, action, tasks, *, config):
    return _one_world(config)(state, action, tasks)


@partial(jax.jit, static_argnames="config")
def _batch_step(states, actions, tasks, *, config):
    lanes = states.lanes(lanes_for(states.numbers.shape[0]))
    after, outcome = advance(lanes, _fill_lanes(actions, lanes), config, tasks)
    worlds, shown, *told = _report(after, actions, outcome, config, tasks)
    draw(shown, config)
    return worlds.packed(), shown, *told


def draw(seen: ArcObservation, config: JaxArcConfig) -> None:
    """Print the first world's grid, where the configuration asks for it."""
    if config.visualization.enabled:
        from jaxarc.utils.visualization._callbacks import draw_first_world

        draw_first_world(seen.grid[0])


def _fill_lanes(actions: Action, lanes: World) -> Action:
    """Actions for all lanes, those to spare too: what they do is dropped."""
    actions = actions.packed() if isinstance(actions, MaskAction) else actions
    return from_lanes(to_lanes(actions, lanes.done.shape[0]))


def _report(lanes: World, actions: Action, outcome: Outcome, config, tasks) -> LaneStep:
    """The worlds after a step, worlds first, and what is told of it."""
    worlds = actions.operation.shape[0]
    after, outcome = worlds_of((lanes, outcome), worlds)
    shown = observe(after, config, tasks)
    reward = outcome.reward
    if config.environment.debug_level > 0:
        reward = check.require(action_is_good(actions, config), reward, what_is_good(config))
    info = StepInfo(
        outcome.terminated,
        outcome.truncated,
        outcome.success,
        outcome.valid,
        outcome.similarity,
        outcome.score,
        shown,
    )
    return after, shown, reward, after.done, info


@cache
def _one_world(config: JaxArcConfig) -> Any:
    """The step of one world; under `vmap`, the step of many, not many steps of one."""

    @jax.custom_batching.custom_vmap
    def step(state, action, tasks):
        one = jax.tree.map(lambda leaf: leaf[None], (state, action))
        return jax.tree.map(lambda leaf: leaf[0], _batch_step(*one, tasks, config=config))

    @step.def_vmap
    def steps(axis_size, in_batched, state, action, tasks):
        if any(jax.tree.leaves(in_batched[2])):
            raise ConfigError("the task buffer is shared by all worlds: do not map over it")
        full = jax.tree.map(
            lambda leaf, batched: (
                leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape))
            ),
            (state, action),
            (in_batched[0], in_batched[1]),
        )
        result = _batch_step(*full, tasks, config=config)
        return result, jax.tree.map(lambda _: True, result)

    return step


def _onto_canvas(task: JaxArcTask, canvas: tuple[int, int]) -> JaxArcTask:
    """The task's arrays cut or padded to the canvas."""

    def fit(leaf):
        if leaf.ndim < 3:
            return leaf
        leaf = leaf[:, : canvas[0], : canvas[1]]
        missing = [(0, 0), (0, canvas[0] - leaf.shape[1]), (0, canvas[1] - leaf.shape[2])]
        return jnp.pad(leaf, missing)

    return jax.tree.map(fit, task)


def lane_step(lanes: World, actions: Action, config: JaxArcConfig, tasks: TaskBuffer) -> LaneStep:
    """One step with automatic reset, where worlds come last: what a rollout does.

    There may be more lanes than worlds that act: `jaxarc.bitgrid.lanes_for` says why. Gives the
    next worlds, worlds last, and the rest as `batch_step` gives it; the observation is that of the
    next worlds, a fresh one where an episode ended.
    """
    after, outcome = advance(lanes, _fill_lanes(actions, lanes), config, tasks)
    _, _, reward, done, info = _report(after, actions, outcome, config, tasks)
    fresh = restart(after, config, tasks)
    shown = observe(worlds_of(fresh, actions.operation.shape[0]), config, tasks)
    return fresh, shown, reward, done, info


def worlds_of(lanes: Any, worlds: int) -> Any:
    """The worlds that lanes carry, worlds first; lanes to spare are dropped."""
    return from_lanes(jax.tree.map(lambda leaf: leaf[..., :worlds], lanes))
