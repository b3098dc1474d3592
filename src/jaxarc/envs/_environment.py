"""`make`: a configuration and a set of tasks, bound together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float32

from jaxarc.bitgrid import from_lanes, lanes_for
from jaxarc.data import TaskBuffer, TaskSet, load
from jaxarc.data._index import in_range, whole_numbers
from jaxarc.envs._config import EnvironmentConfig, JaxArcConfig
from jaxarc.envs._doors import (
    check_actions,
    check_config,
    check_counts,
    check_step,
    number_of_worlds,
    one_key,
)
from jaxarc.envs._episode import begin
from jaxarc.envs._observation import ArcObservation, action_mask, observe
from jaxarc.envs._options import ConfigError
from jaxarc.envs._spread import begin_spread, devices_for, end_spread, step_spread
from jaxarc.envs._state import AnyKey, ArcState, World
from jaxarc.envs.functional import Step, StepInfo, draw, lane_step, worlds_of
from jaxarc.envs.structured_actions import (
    Action,
    BboxAction,
    MaskAction,
    PointAction,
)
from worldloom import mesh

Policy = Callable[[Any, ArcObservation, Array], Action]


class Rollout(eqx.Module):
    """What a rollout keeps of every step; arrays are `[length, worlds, ...]`."""

    action: Action
    reward: Float32[Array, "*length worlds"]
    terminated: Bool[Array, "*length worlds"]
    truncated: Bool[Array, "*length worlds"]
    success: Bool[Array, "*length worlds"]
    observation: ArcObservation | None
    """What the policy saw; `None` unless asked for."""


@dataclasses.dataclass(frozen=True, eq=False)
class Environment:
    """Tasks and a configuration. Made by `jaxarc.make`.

    Observation: `ArcObservation`. Action: point, box or mask, as configured. Reward: that of
    the configuration's reward object. An episode terminates when its grid is handed in or
    solved, and is truncated after `max_episode_steps`; then the world begins a new one, drawn
    at random, by itself. In test mode it plays all test pairs of a task, see `docs/arc`.

    ```python
    import jax
    import jaxarc

    env = jaxarc.make("AGI1-train")
    state, obs = env.reset(jax.random.key(0), worlds=16)
    action = env.random_action(jax.random.key(1), worlds=16)
    state, obs, reward, done, info = env.step(state, action)
    ```
    """

    tasks: TaskSet
    config: JaxArcConfig
    buffer: TaskBuffer

    def reset(
        self, key: AnyKey, *, worlds: int, task: Any = None
    ) -> tuple[ArcState, ArcObservation]:
        """Begin episodes in many worlds: of random tasks, or of those with the numbers given.

        **Arguments:**

        - `task`: a number for each world. One that does not exist is an `UnknownTaskError`;
          inside `jit`, a failed check of `worldloom.check`.
        """
        worlds = number_of_worlds(worlds)
        keys = jax.random.split(one_key(key), worlds)
        if task is None:
            return _reset(keys, None, self.buffer, config=self.config)
        task = whole_numbers("task", task)
        if task.shape != (worlds,):
            raise ConfigError(f"task must hold {worlds} numbers, one a world, got {task.shape}")
        count = self.buffer.num_tasks
        if not isinstance(task, jax.core.Tracer):
            in_range("task", task, count, "tasks")
        states, shown = _reset(keys, task, self.buffer, config=self.config)
        return in_range("task", task, count, "tasks", guarded=states), shown

    def step(self, states: ArcState, actions: Action) -> Step:
        """One step of every world; where an episode ends, a new one begins.

        The observation is that of the new episode; `info.final_observation` is the last one of
        the old.
        """
        check_step(states, actions, self.config, None, batch=True)
        return _step(states, actions, self.buffer, config=self.config)

    def rollout(
        self,
        policy: Policy,
        params: Any,
        key: AnyKey,
        length: int,
        *,
        worlds: int = 1024,
        observations: bool = False,
        **options: Any,
    ) -> tuple[ArcState, Rollout]:
        """Let a policy act for `length` steps in many worlds, in one compiled loop.

        **Arguments:**

        - `policy`: `policy(params, observation, key) -> action`, for all worlds at once.
        - `observations`: also keep what the policy saw, 900 bytes a world and step.
        - `options`: any option of `worldloom.run`: `progress`, `checkpoint`, `sink`, ...

        **Returns:** the last states, worlds first, and the `Rollout`.
        """
        from worldloom import Every, run

        step, start = ready(self, policy, params, key, worlds=worlds, observations=observations)
        result = run(step, start, length=length, save=Every(), **options)
        lanes, _ = result.state
        return step.end(lanes, worlds), result.records

    def random_action(self, key: AnyKey, *, worlds: int) -> Action:
        """Actions drawn at random from the allowed operations and from all selections."""
        return random_action(self.config, number_of_worlds(worlds), one_key(key))

    @property
    def action_mask(self) -> Bool[Array, " 42"]:
        """Which operations may be used."""
        return action_mask(self.config)


class RolloutStep(eqx.Module):
    """One step of a rollout. The carry holds the worlds, last, and what each of them sees."""

    policy: Policy
    params: Any
    key: Array
    tasks: TaskBuffer
    config: JaxArcConfig = eqx.field(static=True)
    devices: Mesh = eqx.field(static=True)
    observations: bool = eqx.field(static=True)

    def __call__(self, carry: tuple[World, ArcObservation], t: Array) -> tuple[Any, Rollout]:
        carry, kept, _ = self.take(carry, t)
        return carry, kept

    def take(
        self, carry: tuple[World, ArcObservation], t: Array
    ) -> tuple[tuple[World, ArcObservation], Rollout, StepInfo]:
        """The next carry, what a rollout keeps of the step, and what else is known of it."""
        lanes, seen = carry
        action = self.policy(self.params, seen, jax.random.fold_in(self.key, t))
        check_actions(action, seen.grid.shape[:1], self.config)
        action = action.packed() if isinstance(action, MaskAction) else action
        lanes, shown, reward, _, info = step_spread(
            lanes, action, self.config, self.tasks, self.devices
        )
        draw(info.final_observation, self.config)
        kept = Rollout(
            action,
            reward,
            info.terminated,
            info.truncated,
            info.success,
            seen if self.observations else None,
        )
        return (lanes, shown), kept, info

    def end(self, lanes: World, worlds: int) -> ArcState:
        """The states of a rollout that has ended, worlds first."""
        return _end_rollout(lanes, worlds=worlds, devices=self.devices)


def ready(
    env: Environment, policy: Policy, params: Any, key: AnyKey, *, worlds: int, observations: bool
) -> tuple[RolloutStep, tuple[World, ArcObservation]]:
    """The step of a rollout and its first carry, spread over the devices."""
    worlds = number_of_worlds(worlds)
    devices = devices_for(worlds)
    first, acting = jax.random.split(one_key(key))
    keys = mesh.shard(jax.random.split(first, worlds), devices)
    tasks = mesh.replicate(env.buffer, devices)
    start = _begin_rollout(keys, tasks, config=env.config, devices=devices)
    params, acting = mesh.replicate((params, acting), devices)
    return RolloutStep(policy, params, acting, tasks, env.config, devices, observations), start


@partial(jax.jit, static_argnames="config")
def _reset(keys, task, tasks, *, config):
    worlds = from_lanes(begin(keys, config, tasks, task=task))
    return worlds.packed(), observe(worlds, config, tasks)


@partial(jax.jit, static_argnames=("config", "devices"))
def _begin_rollout(keys, tasks, *, config, devices):
    return begin_spread(keys, config, tasks, devices)


@partial(jax.jit, static_argnames=("worlds", "devices"))
def _end_rollout(lanes, *, worlds, devices):
    return end_spread(lanes, worlds, devices)


@partial(jax.jit, static_argnames="config")
def _step(states, actions, tasks, *, config):
    worlds = states.numbers.shape[0]
    lanes = states.lanes(lanes_for(worlds))
    lanes, shown, reward, done, info = lane_step(lanes, actions, config, tasks)
    draw(info.final_observation, config)
    return worlds_of(lanes, worlds).packed(), shown, reward, done, info


@partial(jax.jit, static_argnames=("config", "worlds"))
def random_action(config: JaxArcConfig, worlds: int, key: Array) -> Action:
    """Random allowed operations on random selections, one a world."""
    height, width = config.canvas
    of_operation, *of_place = jax.random.split(key, 5)
    ids = jnp.array(config.operations, jnp.int32)
    operation = ids[jax.random.randint(of_operation, (worlds,), 0, len(config.operations))]
    draw = lambda key, side: jax.random.randint(key, (worlds,), 0, side, jnp.int32)  # noqa: E731
    match config.action.selection_format:
        case "point":
            return PointAction(operation, draw(of_place[0], height), draw(of_place[1], width))
        case "bbox":
            corners = [draw(k, side) for k, side in zip(of_place, (height, width) * 2, strict=True)]
            return BboxAction(operation, *corners)
        case _:
            cells = jax.random.bernoulli(of_place[0], 0.1, (worlds, height, width))
            return MaskAction(operation, cells)


def make(
    name: str | TaskSet,
    *,
    ids: Iterable[str] | None = None,
    subset: str | None = None,
    config: JaxArcConfig | None = None,
    version: str | None = None,
) -> Environment:
    """An environment by the name of its tasks.

    **Arguments:**

    - `name`: a data set, as `jaxarc.data.load` knows it (`"AGI1-train"`, `"AGI2-eval"`, ...),
      or tasks of your own.
    - `ids`: only these tasks.
    - `subset`: a named subset, such as `"up-to-10x10"`.
    - `config`: the configuration. Without one: point actions, 100 steps, no history, and test
      mode for the evaluation sets.
    - `version`: of the data.

    ```python
    import jaxarc

    env = jaxarc.make("AGI1-train", ids=["007bbfb7", "00d62c1b"])
    assert env.buffer.num_tasks == 2
    ```
    """
    tasks = name if isinstance(name, TaskSet) else load(name, version=version)
    if ids is not None:
        tasks = tasks.filter(ids=ids)
    if subset is not None:
        tasks = tasks.subset(subset)
    if config is None:
        mode = "test" if tasks.tags == ("eval",) else "train"
        plain = EnvironmentConfig(record_history=False, episode_mode=mode)
        config = JaxArcConfig(environment=plain)
    check_config(config)
    counts = np.array([(len(task.demos), len(task.tests)) for task in tasks.tasks], np.int32)
    demos, tests = counts.reshape(-1, 2).T
    check_counts(demos, tests, config, tasks.ids)
    height, width = config.canvas
    return Environment(tasks, config, tasks.buffer(height=height, width=width))
