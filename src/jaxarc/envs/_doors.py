"""What is refused before anything is computed: keys, numbers of worlds, states, actions, tasks.

Only shapes and kinds are looked at, so a step waits for nothing. `one_key` and `key_of_each` also
give the keys in the form that states hold.
"""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxarc.data import BadTaskError, JaxArcTask, TaskBuffer, TaskSet
from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs._options import ConfigError
from jaxarc.envs._pairs import MAX_DEMOS, MAX_TESTS
from jaxarc.envs._state import AnyKey, ArcState, history_fields, typed_key
from jaxarc.envs.structured_actions import Action, ActionError, MaskAction, check_any_action
from worldloom.compile import unhashable_part


def one_key(key: AnyKey) -> jax.Array:
    """A single key, as states hold it."""
    made = typed_key(key)
    if made.ndim:
        raise ConfigError(
            f"key: expected one key, got {made.shape[0]}, shape {made.shape}; "
            "jax.vmap or batch_reset take a key for each world"
        )
    return made


def key_of_each(keys: AnyKey) -> jax.Array:
    """A key for each world, as states hold them."""
    made = typed_key(keys)
    if made.ndim != 1 or not made.size:
        raise ConfigError(
            f"keys: expected a key for each world, got the shape {made.shape}; "
            "make them with jax.random.split(key, worlds)"
        )
    return made


def number_of_worlds(worlds: Any) -> int:
    """How many worlds: 1 or more."""
    try:
        count = operator.index(worlds)
    except TypeError:
        count = 0
    if isinstance(worlds, bool) or count < 1:
        raise ConfigError(f"worlds={worlds!r}: expected an integer, 1 or more")
    return count


def check_step(states: Any, actions: Any, config: JaxArcConfig, tasks: Any, *, batch: bool) -> None:
    """Refuse what a step cannot take: one world where many are due, actions for other worlds."""
    check_any_action(actions)
    if not isinstance(states, ArcState):
        raise ConfigError(
            f"state: expected the state that a reset or a step gave, got {type(states).__name__}; "
            "both give it first, then the observation"
        )
    worlds = states.numbers.shape[:-1]
    if batch and len(worlds) != 1:
        raise ConfigError(
            "this step takes many worlds, and the state holds "
            f"{'one: use arc_step' if not worlds else f'the shape {worlds}: use jax.vmap'}"
        )
    if not batch and worlds:
        raise ConfigError(
            f"arc_step takes one world, and the state holds {worlds[0]}: use batch_step"
        )
    if states.canvas != config.canvas:
        raise ConfigError(
            f"the state has a canvas of {_by(states.canvas)}, the configuration one of "
            f"{_by(config.canvas)}: step with the configuration of the reset"
        )
    kept = 0 if states.action_history is None else states.action_history.shape[-1]
    asked = history_fields(config) if config.environment.record_history else 0
    if kept != asked:
        raise ConfigError(
            f"the state keeps {kept or 'no'} numbers of every action, the configuration "
            f"{asked or 'none'}: step with the record_history and selection_format of the reset"
        )
    check_actions(actions, worlds, config)
    if tasks is not None:
        check_buffer(tasks, config)


def check_actions(actions: Action, worlds: tuple[int, ...], config: JaxArcConfig) -> None:
    """Refuse actions that are not one a world, and masks that are not those of the canvas."""
    check_any_action(actions)
    for name, field in vars(actions).items():
        shape = np.shape(field)
        if name == "selection":
            continue
        if shape != worlds:
            raise ActionError(
                f"{type(actions).__name__}({name}=...) has the shape {shape}, the worlds have "
                f"{worlds}: {_how_many(worlds)}"
            )
    if isinstance(actions, MaskAction):
        height, width = config.canvas
        bits = actions.selection.dtype == jnp.uint32
        cells = (config.rows,) if bits else (height, width)
        if actions.selection.shape != (*worlds, *cells):
            raise ActionError(
                f"MaskAction(selection=...) has the shape {actions.selection.shape}; expected "
                f"{(*worlds, *cells)}: {_how_many(worlds)}, on a canvas of {_by(config.canvas)}"
            )


def _how_many(worlds: tuple[int, ...]) -> str:
    return f"give one action a world, {worlds[0]} in all" if worlds else "give one action"


def _by(sides: tuple[int, ...]) -> str:
    return " x ".join(map(str, sides))


def check_buffer(tasks: Any, config: JaxArcConfig) -> None:
    """Refuse tasks that are no buffer, or one for another canvas."""
    if not isinstance(tasks, TaskBuffer):
        raise ConfigError(
            f"tasks: expected a buffer of tasks, got {type(tasks).__name__}; "
            "TaskSet.buffer() and TaskBuffer.from_task(task) make one"
        )
    if (tasks.height, tasks.width) != config.canvas:
        height, width = config.canvas
        raise ConfigError(
            f"the tasks are packed for a canvas of {tasks.height} x {tasks.width}, "
            f"the configuration has {height} x {width}: pack them with "
            f".buffer(height={height}, width={width})"
        )


def check_config(config: Any) -> None:
    """Refuse a configuration that cannot be static in `jit`, with the part that has no hash."""
    if not isinstance(config, JaxArcConfig):
        raise ConfigError(f"config: expected a JaxArcConfig, got {type(config).__name__}")
    try:
        hash(config)
    except TypeError as error:
        raise ConfigError(
            f"{unhashable_part(config, 'config')}, which has no hash: a configuration is fixed, "
            "so make it of frozen dataclasses and tuples"
        ) from error


def check_tasks(tasks: Any, config: JaxArcConfig) -> None:
    """Refuse tasks that a reset cannot play: other kinds, too large, too few or too many pairs."""
    check_config(config)
    if isinstance(tasks, JaxArcTask):
        _check_task_fits(tasks, config)
        counts = (tasks.num_train_pairs[None], tasks.num_test_pairs[None])
    elif isinstance(tasks, TaskSet):
        raise ConfigError(
            "task_data: expected a task or a buffer of tasks, got a TaskSet: give its .buffer()"
        )
    else:
        check_buffer(tasks, config)
        counts = (tasks.num_demos, tasks.num_tests)
    if not any(isinstance(count, jax.core.Tracer) for count in counts):
        demos, tests = map(np.asarray, counts)
        check_counts(demos, tests, config)


def check_counts(
    demos: np.ndarray, tests: np.ndarray, config: JaxArcConfig, ids: tuple[str, ...] | None = None
) -> None:
    """Refuse tasks without a pair to play, or with more than a state counts."""
    controls = config.environment.pair_controls
    testing = config.environment.episode_mode == "test"
    for counts, kind, mode, needed, most in (
        (demos, "demonstrations", "train mode", controls or not testing, MAX_DEMOS),
        (tests, "test pairs", "test mode", controls or testing, MAX_TESTS),
    ):
        counted = controls or (testing and kind == "test pairs")
        bad = (needed & (counts < 1)) | (counted & (counts > most))
        if bad.any():
            place = int(bad.argmax())
            who = repr(ids[place]) if ids is not None else place
            rule = f"{'pair_controls=True' if controls else mode} needs 1"
            raise BadTaskError(
                f"task {who} has {counts[place]} {kind}; {rule}"
                + (f" to {most} {kind}" if counted else " or more")
            )


def _check_task_fits(task: JaxArcTask, config: JaxArcConfig) -> None:
    """Refuse a task that does not fit the canvas, where it can be looked at."""
    height, width = config.canvas
    masks = (
        task.input_masks_examples,
        task.output_masks_examples,
        task.test_input_masks,
        task.true_test_output_masks,
    )
    for mask in masks:
        if isinstance(mask, jax.core.Tracer):
            return
        cells = np.asarray(mask)
        if cells[:, height:].any() or cells[:, :, width:].any():
            raise BadTaskError(
                f"a grid of the task is larger than the canvas of {height} x {width}: "
                f"make UnifiedDatasetConfig(max_grid_height=..., max_grid_width=...) larger"
            )
