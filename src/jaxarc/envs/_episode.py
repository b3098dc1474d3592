"""How an episode begins, goes on, and begins again. Worlds come last in every array here."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt32

from jaxarc.bitgrid import PLANES, count, equal, on_active_lanes, to_lanes
from jaxarc.data import TaskBuffer
from jaxarc.data._buffer import pair_at
from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs._options import ConfigError
from jaxarc.envs._pairs import PairControl, attempts_at, go_to_pair, is_open
from jaxarc.envs._reward import Transition
from jaxarc.envs._state import World, empty_history, record
from jaxarc.envs.structured_actions import Action
from jaxarc.operations import Board, apply_operation, operation_id
from jaxarc.operations._apply import area
from jaxarc.operations._table import has_id

SUBMIT = operation_id("submit")
BLOCK = 128  # worlds that go to another pair at a time
ENDING = 16  # one world in so many begins anew at a time; under random actions one in 26 does

# What a new episode draws, its numbers apart, and what it sets to 0.
_DRAWN = ("grid", "clip", "clip_mask", "pair", "similarity", "key", "action_history")
_DRAWN_NUMBERS = (
    *("input_height", "input_width", "target_height", "target_width"),
    *("task_index", "pair_index"),
)
_CLEARED = ("step_count", "solved_demos", "solved_tests", "attempts", "done")


class Outcome(eqx.Module):
    """What one step did, for each world."""

    reward: Float32[Array, " lanes"]
    terminated: Bool[Array, " lanes"]
    truncated: Bool[Array, " lanes"]
    success: Bool[Array, " lanes"]
    valid: Bool[Array, " lanes"]
    similarity: Float32[Array, " lanes"]
    score: Float32[Array, " lanes"]


def compare(
    grid: UInt32[Array, "4 rows lanes"],
    height: Int32[Array, " lanes"],
    width: Int32[Array, " lanes"],
    target: UInt32[Array, "4 rows lanes"],
    target_height: Int32[Array, " lanes"],
    target_width: Int32[Array, " lanes"],
) -> tuple[Float32[Array, " lanes"], Bool[Array, " lanes"]]:
    """Similarity of a grid and its target, and whether they are the same in shape and cells.

    Similarity is the number of cells that agree over the number of cells that at least one of
    the two has. A hidden target, of size 0, agrees with nothing.
    """
    rows = grid.shape[1]
    shared_height = jnp.minimum(height, target_height)
    shared_width = jnp.minimum(width, target_width)
    agree = count(equal(grid, target) & area(rows, shared_height, shared_width))
    either = height * width + target_height * target_width - shared_height * shared_width
    return agree.astype(jnp.float32) / either.astype(jnp.float32), agree == either


def begin(
    keys: Key[Array, " lanes"],
    config: JaxArcConfig,
    tasks: TaskBuffer,
    *,
    task: Int32[Array, " lanes"] | None = None,
    pair: Int32[Array, " lanes"] | None = None,
) -> World:
    """Fresh episodes: a random task and, in train mode, a random demonstration, unless given."""
    own, spent = jax.random.key_data(jax.vmap(jax.random.split, out_axes=1)(keys))
    return _place(Drawn(own.T, spent[:, 0], spent[:, 1]), config, tasks, task=task, pair=pair)


class Drawn(NamedTuple):
    """What chance gives a new episode: the words of its world's next key, and two random words."""

    key: UInt32[Array, "2 lanes"]
    for_task: UInt32[Array, " lanes"]
    for_pair: UInt32[Array, " lanes"]


def draw_next(key: UInt32[Array, "2 lanes"]) -> Drawn:
    """What the next episode of each world draws, by the generator xoroshiro64**.

    The first key of a world comes from `jax.random`, so worlds begin at unrelated places. From
    there on an episode needs two words, for which the generator of `jax.random` would be a tenth
    of the program of a step.
    """
    a, b = key
    words = []
    for _ in range(2):
        words.append(_turn(a * jnp.uint32(0x9E3779BB), 5) * jnp.uint32(5))
        b = b ^ a
        a, b = _turn(a, 26) ^ b ^ (b << 9), _turn(b, 13)
    return Drawn(jnp.stack([a, b]), *words)


def _turn(word: UInt32[Array, " lanes"], bits: int) -> UInt32[Array, " lanes"]:
    return (word << bits) | (word >> (32 - bits))


def _place(
    drawn: Drawn,
    config: JaxArcConfig,
    tasks: TaskBuffer,
    *,
    task: Int32[Array, " lanes"] | None = None,
    pair: Int32[Array, " lanes"] | None = None,
) -> World:
    """Fresh episodes of what was drawn."""
    own, for_task, for_pair = drawn
    lanes = for_task.shape
    testing = config.environment.episode_mode == "test"
    if task is None:
        task = _below(for_task, jnp.uint32(tasks.num_tasks))
    if pair is None and testing:
        pair = jnp.zeros(lanes, jnp.int32)
    elif pair is None:
        pair = _below(for_pair, tasks.num_demos[task].astype(jnp.uint32))
    empty = jnp.zeros((4, config.rows, *lanes), jnp.uint32)
    none, no, no_bits = jnp.zeros(lanes, jnp.int32), jnp.zeros(lanes, bool), empty[0, 0]
    state = World(
        grid=empty,
        height=none,
        width=none,
        clip=empty,
        clip_mask=empty[0],
        pair=jnp.concatenate([empty, empty]),
        input_height=none,
        input_width=none,
        target_height=none,
        target_width=none,
        similarity=jnp.zeros(lanes, jnp.float32),
        task_index=task,
        pair_index=pair,
        on_test_pair=jnp.full(lanes, testing),
        step_count=none,
        solved_demos=no_bits,
        solved_tests=no_bits,
        attempts=no_bits,
        done=no,
        key=own,
        action_history=empty_history(config, lanes[0]),
        canvas=config.canvas,
    )
    return place_pair(state, tasks)


def _below(word: UInt32[Array, " lanes"], limit: UInt32[Array, ...]) -> Int32[Array, " lanes"]:
    """A number under `limit` from 32 random bits: the upper word of their product."""
    high, low = word >> 16, word & 0xFFFF
    upper, lower = limit >> 16, limit & 0xFFFF
    middle = high * lower + (low * lower >> 16)  # at most 2^32 - 2^16
    middle_low = (middle & 0xFFFF) + low * upper
    return (high * upper + (middle >> 16) + (middle_low >> 16)).astype(jnp.int32)


def place_pair(state: World, tasks: TaskBuffer) -> World:
    """Put the pair that the state's indices name on the board, the grid a copy of its input."""
    pair = to_lanes(pair_at(tasks, state.task_index, state.pair_index, state.on_test_pair))
    grid, target = pair.grids[:PLANES], pair.grids[PLANES:]
    height, width, target_height, target_width = pair.sizes.astype(jnp.int32)
    similarity, _ = compare(grid, height, width, target, target_height, target_width)
    return dataclasses.replace(
        state,
        grid=grid,
        height=height,
        width=width,
        pair=pair.grids,
        input_height=height,
        input_width=width,
        target_height=target_height,
        target_width=target_width,
        similarity=jnp.where(state.on_test_pair, 0, similarity),
    )


def advance(
    state: World, action: Action, config: JaxArcConfig, tasks: TaskBuffer | None
) -> tuple[World, Outcome]:
    """One step of every world. A world that is done stays as it is, with reward 0."""
    setting = config.environment
    testing = setting.episode_mode == "test"
    changes_pairs = testing or setting.pair_controls
    if changes_pairs and tasks is None:
        raise ConfigError(
            "episode_mode='test' and pair_controls=True go from pair to pair, which needs the "
            "tasks at every step: use jaxarc.make(...), or give tasks=... to arc_step and "
            "batch_step"
        )
    live = ~state.done
    valid = has_id(action.operation, config.operations) & live
    operation = jnp.where(valid, action.operation, -1)

    board = apply_operation(
        operation,
        action.to_lanes(*config.canvas),
        Board(state.grid, state.height, state.width, state.clip, state.clip_mask),
        state.pair[:PLANES],
        state.input_height,
        state.input_width,
    )
    target = (state.pair[PLANES:], state.target_height, state.target_width)
    similarity, exact = compare(board.grid, board.height, board.width, *target)
    similarity = jnp.where(state.on_test_pair, 0, similarity)

    handed_in = operation == SUBMIT
    here = jnp.uint32(1) << state.pair_index.astype(jnp.uint32)
    on_test = state.on_test_pair
    attempt = handed_in & on_test & is_open(state, setting.max_attempts)
    # Of a valid step only: a grid may equal its target from the start.
    demo_solved = exact & valid & ~on_test & ((state.solved_demos & here) == 0)
    test_solved = exact & attempt
    success = demo_solved | test_solved
    after = dataclasses.replace(
        state,
        grid=board.grid,
        height=board.height,
        width=board.width,
        clip=board.clipboard,
        clip_mask=board.filled,
        similarity=similarity,
        step_count=state.step_count + live.astype(jnp.int32),
        solved_demos=jnp.where(demo_solved, state.solved_demos | here, state.solved_demos),
        solved_tests=jnp.where(test_solved, state.solved_tests | here, state.solved_tests),
        attempts=jnp.where(attempt, attempts_at(state) + state.attempts, state.attempts),
        action_history=record(
            state.action_history,
            action,
            jnp.where(live, state.step_count, setting.max_episode_steps),
            state.pair_index,
            valid,
            config,
        ),
    )

    score = success.astype(jnp.float32)
    if changes_pairs:
        assert tasks is not None
        control = PairControl.after(after, operation, config, tasks)
        ended, score = control.ended, control.score
        after = on_active_lanes(
            lambda old, to: place_pair(go_to_pair(old, to), tasks),
            (after, control),
            control.goes & live,
            otherwise=after,
            block=BLOCK,
        )
        similarity = jnp.where(control.goes, state.similarity, similarity)
    else:
        ended = handed_in | success
    terminated = ended & live
    truncated = (after.step_count >= setting.max_episode_steps) & live & ~terminated
    after = dataclasses.replace(after, done=state.done | terminated | truncated)

    submitted = jnp.where(on_test, attempt, handed_in)
    transition = Transition(state.similarity, similarity, success, submitted)
    earned = reward_of(config, transition)
    earned = jnp.where(valid, earned, jnp.minimum(earned, 0))
    reward = jnp.where(live, earned, 0)
    return after, Outcome(reward, terminated, truncated, success, valid, similarity, score)


def reward_of(config: JaxArcConfig, transition: Transition) -> Float32[Array, " lanes"]:
    """What the configuration's reward says, refused where it is not a number for each world."""
    earned: Any = config.reward(transition)
    worlds = transition.success.shape
    kind, shape = getattr(earned, "dtype", None), getattr(earned, "shape", None)
    if kind is None or not jnp.issubdtype(kind, jnp.floating) or shape != worlds:
        raise ConfigError(
            f"JaxArcConfig(reward={config.reward!r}): it gave {type(earned).__name__} of type "
            f"{kind} and shape {shape}; expected floats, one a world, of shape {worlds}"
        )
    return earned.astype(jnp.float32)


def restart(state: World, config: JaxArcConfig, tasks: TaskBuffer) -> World:
    """Fresh episodes where one is done. The others cost nothing."""

    def drawn_of(world: World) -> tuple[dict[str, Array], Int32[Array, "6 lanes"]]:
        # The numbers in one array, so that they are scattered together.
        numbers = jnp.stack([getattr(world, name) for name in _DRAWN_NUMBERS])
        return {name: getattr(world, name) for name in _DRAWN}, numbers

    lanes = state.done.shape[0]
    drawn, numbers = on_active_lanes(
        lambda key: drawn_of(_place(draw_next(key), config, tasks)),
        (state.key,),
        state.done,
        otherwise=drawn_of(state),
        block=max(8, lanes // ENDING),
    )
    drawn |= zip(_DRAWN_NUMBERS, numbers, strict=True)
    cleared = {}
    for name in _CLEARED:
        old = getattr(state, name)
        cleared[name] = jnp.where(state.done, jnp.zeros_like(old), old)
    testing = config.environment.episode_mode == "test"
    return dataclasses.replace(
        state,
        **drawn,
        **cleared,
        height=jnp.where(state.done, drawn["input_height"], state.height),
        width=jnp.where(state.done, drawn["input_width"], state.width),
        on_test_pair=jnp.where(state.done, testing, state.on_test_pair),
    )
