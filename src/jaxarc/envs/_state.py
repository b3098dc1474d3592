"""The state of a world: the board, the pair on it, and a few counters."""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8, UInt16, UInt32

from jaxarc.bitgrid import PLANES, to_lanes, unpack, unpack_mask
from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs._options import ConfigError
from jaxarc.envs.structured_actions import Action, BboxAction, PointAction
from worldloom._errors import WorldloomError

AnyKey: TypeAlias = Any
"""A key of `jax.random`, of any kind. What is none is refused by `typed_key`, with a sentence."""

GENERATOR = "threefry2x32"  # of the keys that states hold

# The numbers of a world in the order of `ArcState.numbers`; the two words of its key follow.
_NUMBERS = {
    "height": jnp.int32,
    "width": jnp.int32,
    "input_height": jnp.int32,
    "input_width": jnp.int32,
    "target_height": jnp.int32,
    "target_width": jnp.int32,
    "task_index": jnp.int32,
    "pair_index": jnp.int32,
    "on_test_pair": jnp.bool_,
    "step_count": jnp.int32,
    "solved_demos": jnp.uint32,
    "solved_tests": jnp.uint32,
    "attempts": jnp.uint32,
    "done": jnp.bool_,
}
_ARRAYS = ("grid", "clip", "clip_mask", "pair", "similarity", "action_history")


class NoTaskDataError(WorldloomError, AttributeError):
    """A state was asked for the data of its task."""


class World(eqx.Module):
    """A world, or many, with an array for every field: what a step computes with.

    The axis of worlds comes first in an `ArcState` that was taken apart, last in a loop.
    """

    grid: UInt32[Array, ...]
    height: Int32[Array, "*batch"]
    width: Int32[Array, "*batch"]
    clip: UInt32[Array, ...]
    clip_mask: UInt32[Array, ...]
    pair: UInt32[Array, ...]
    """Input and target, four planes each."""
    input_height: Int32[Array, "*batch"]
    input_width: Int32[Array, "*batch"]
    target_height: Int32[Array, "*batch"]
    target_width: Int32[Array, "*batch"]
    similarity: Float32[Array, "*batch"]
    task_index: Int32[Array, "*batch"]
    pair_index: Int32[Array, "*batch"]
    on_test_pair: Bool[Array, "*batch"]
    step_count: Int32[Array, "*batch"]
    solved_demos: UInt32[Array, "*batch"]
    """Bit `k` says whether demonstration `k` was solved in this episode."""
    solved_tests: UInt32[Array, "*batch"]
    attempts: UInt32[Array, "*batch"]
    """How often each test pair was handed in: four bits a pair."""
    done: Bool[Array, "*batch"]
    key: UInt32[Array, ...]
    """The two words of a key."""
    action_history: UInt8[Array, ...] | UInt16[Array, ...] | None
    canvas: tuple[int, int] = eqx.field(static=True)

    def packed(self) -> ArcState:
        """The state, where the axis of worlds comes first, or there is one world without it."""
        numbers = [_as_int(getattr(self, name)) for name in _NUMBERS]
        numbers += [_as_int(self.key[..., k]) for k in range(2)]
        place = np.arange(len(numbers)).reshape((1,) * self.height.ndim + (-1,))
        # Selected, not stacked: XLA:CPU runs a kernel for each part of a stack, and where ten or
        # more are ready at once it calls other threads, which takes longer than the whole step
        # of a world.
        row = jnp.zeros((*self.height.shape, len(numbers)), jnp.int32)
        for k, number in enumerate(numbers):
            row = jnp.where(place == k, number[..., None], row)
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return ArcState(**arrays, numbers=row, canvas=self.canvas)


class ArcState(eqx.Module):
    """One world, or, with a leading axis on every array, many.

    Grids are bits (`jaxarc.bitgrid`), 4 x 30 words each. The state holds the pair that is being
    played, 1 KB, and no other data of the task: those stay in the task buffer, shared by all
    worlds. At 30 x 30 a world takes 2.1 KB, its history apart.

    Sizes, counters and the key lie together in `numbers`: what JAX takes for a call from Python
    grows with the arrays that go in and come out. They are read by name (`state.step_count`), and
    `state.replace(step_count=0)` gives a state with another. `working_grid`, `clipboard` and so on
    show the bits as cells.
    """

    grid: UInt32[Array, ...]
    clip: UInt32[Array, ...]
    clip_mask: UInt32[Array, ...]
    pair: UInt32[Array, ...]
    """Input and target, four planes each."""
    similarity: Float32[Array, "*batch"]
    numbers: Int32[Array, "*batch 16"]
    action_history: UInt8[Array, ...] | UInt16[Array, ...] | None
    """One record a step: operation, selection, timestamp, pair, valid; see `history_fields`."""
    canvas: tuple[int, int] = eqx.field(static=True)

    @property
    def world(self) -> World:
        """The same, with an array for every field."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        numbers = jnp.moveaxis(self.numbers, -1, 0)
        return _apart(arrays, numbers, jnp.moveaxis(_words(numbers[-2:]), 0, -1), self.canvas)

    def lanes(self, count: int) -> World:
        """The same for many worlds, with worlds last, filled up to so many lanes."""
        arrays = to_lanes({name: getattr(self, name) for name in _ARRAYS}, count)
        numbers = to_lanes(self.numbers, count)
        return _apart(arrays, numbers, _words(numbers[-2:]), self.canvas)

    def replace(self, **fields: Any) -> ArcState:
        """The state with other values of some fields, such as `replace(done=..., grid=...)`.

        A value must have the type and the shape of the field, or be a number for all worlds.
        """
        world = self.world
        if "key" in fields:
            fields["key"] = jax.random.key_data(typed_key(fields["key"]))
        for name, value in fields.items():
            if not hasattr(world, name):
                names = ", ".join(field.name for field in dataclasses.fields(world))
                raise ValueError(f"a state has no field {name!r}; it has {names}")
            old = getattr(world, name)
            if not isinstance(old, jax.Array):
                continue
            if jnp.shape(value) not in ((), old.shape):
                raise ValueError(f"{name} has shape {jnp.shape(value)}; expected {old.shape}")
            fields[name] = jnp.broadcast_to(jnp.asarray(value, old.dtype), old.shape)
        return dataclasses.replace(world, **fields).packed()

    @property
    def height(self) -> Int32[Array, "*batch"]:
        """Rows of the grid."""
        return self._number("height")

    @property
    def width(self) -> Int32[Array, "*batch"]:
        """Columns of the grid."""
        return self._number("width")

    @property
    def input_height(self) -> Int32[Array, "*batch"]:
        """Rows of the pair's input."""
        return self._number("input_height")

    @property
    def input_width(self) -> Int32[Array, "*batch"]:
        """Columns of the pair's input."""
        return self._number("input_width")

    @property
    def target_height(self) -> Int32[Array, "*batch"]:
        """Rows of the pair's output; 0 where it is hidden."""
        return self._number("target_height")

    @property
    def target_width(self) -> Int32[Array, "*batch"]:
        """Columns of the pair's output; 0 where it is hidden."""
        return self._number("target_width")

    @property
    def task_index(self) -> Int32[Array, "*batch"]:
        """The task that is played."""
        return self._number("task_index")

    @property
    def pair_index(self) -> Int32[Array, "*batch"]:
        """The pair on the board, counted among demonstrations or among tests."""
        return self._number("pair_index")

    @property
    def on_test_pair(self) -> Bool[Array, "*batch"]:
        """Whether the pair on the board is a test pair."""
        return self._number("on_test_pair")

    @property
    def step_count(self) -> Int32[Array, "*batch"]:
        """Steps of this episode."""
        return self._number("step_count")

    @property
    def solved_demos(self) -> UInt32[Array, "*batch"]:
        """Bit `k` says whether demonstration `k` was solved in this episode."""
        return self._number("solved_demos")

    @property
    def solved_tests(self) -> UInt32[Array, "*batch"]:
        """Bit `k` says whether test pair `k` was solved in this episode."""
        return self._number("solved_tests")

    @property
    def attempts(self) -> UInt32[Array, "*batch"]:
        """How often each test pair was handed in: four bits a pair."""
        return self._number("attempts")

    @property
    def done(self) -> Bool[Array, "*batch"]:
        """Whether the episode is over."""
        return self._number("done")

    @property
    def key(self) -> Key[Array, "*batch"]:
        """What the next episode is drawn with."""
        return jax.random.wrap_key_data(_words(self.numbers[..., -2:]), impl=GENERATOR)

    @property
    def task_data(self) -> NoReturn:
        """Not here: a state holds the number of its task, `task_index`, and one pair."""
        raise NoTaskDataError(
            "a state holds no task data: call jaxarc.load_state_efficiently(path, parser, "
            "dummy_state) to load one, or parser.get_task_by_index(int(state.task_index)) for "
            "the task that it plays"
        )

    def _number(self, name: str) -> Array:
        return _as_kind(self.numbers[..., tuple(_NUMBERS).index(name)], name)

    @property
    def working_grid(self) -> UInt8[Array, "*batch height width"]:
        """The cells of the grid; padding is 0."""
        return unpack(self.grid, *self.canvas)

    @property
    def working_grid_mask(self) -> Bool[Array, "*batch height width"]:
        """The active area."""
        row = jnp.arange(self.canvas[0]).reshape((1,) * self.height.ndim + (-1, 1))
        column = jnp.arange(self.canvas[1]).reshape((1,) * self.height.ndim + (1, -1))
        return (row < self.height[..., None, None]) & (column < self.width[..., None, None])

    @property
    def clipboard(self) -> UInt8[Array, "*batch height width"]:
        """The cells of the clipboard, at the top left; cells that are not filled are 0."""
        return unpack(self.clip, *self.canvas)

    @property
    def clipboard_mask(self) -> Bool[Array, "*batch height width"]:
        """The filled cells of the clipboard."""
        return unpack_mask(self.clip_mask, *self.canvas)

    @property
    def input_grid(self) -> UInt8[Array, "*batch height width"]:
        """The cells of the pair's input."""
        return unpack(self.pair[..., :PLANES, :], *self.canvas)

    @property
    def target_grid(self) -> UInt8[Array, "*batch height width"]:
        """The cells of the pair's output."""
        return unpack(self.pair[..., PLANES:, :], *self.canvas)


def history_fields(config: JaxArcConfig) -> int:
    """Numbers in a record: operation, selection, timestamp, pair index, valid.

    A selection is 2 numbers for a point, 4 for a box; a mask is stored as bits.
    """
    bits = jnp.iinfo(history_type(config)).bits
    height, width = config.canvas
    selection = {"point": 2, "bbox": 4, "mask": height * -(-width // bits)}
    return 4 + selection[config.action.selection_format]


def history_type(config: JaxArcConfig):
    """The smallest integers that hold a record."""
    return jnp.uint8 if config.environment.max_episode_steps <= 256 else jnp.uint16


def empty_history(config: JaxArcConfig, worlds: int) -> Array | None:
    """Records of no action, worlds last; `None` where the configuration keeps none."""
    if not config.environment.record_history:
        return None
    shape = (config.environment.max_episode_steps, history_fields(config), worlds)
    return jnp.zeros(shape, history_type(config))


def record(
    history: Array | None,
    action: Action,
    step: Int32[Array, " lanes"],
    pair: Int32[Array, " lanes"],
    valid: Bool[Array, " lanes"],
    config: JaxArcConfig,
) -> Array | None:
    """Write each world's action into its row `step`; a row past the end is dropped."""
    if history is None:
        return None
    # What a field cannot hold becomes its largest number; a cast would make another number of it.
    most = jnp.uint32(jnp.iinfo(history.dtype).max)
    fields = [action.operation, *_selection_fields(action, config), step, pair, valid]
    fields = [jnp.minimum(field.astype(jnp.uint32), most) for field in fields]
    row = jnp.stack([field.astype(history.dtype) for field in fields])
    return history.at[step, :, jnp.arange(step.shape[0])].set(row.T, mode="drop")


def _selection_fields(action: Action, config: JaxArcConfig) -> list[Array]:
    """The selection in the form that the configuration keeps.

    A point is a box of one cell, and both are masks. What the form has no room for, such as a
    mask among points, is left out: its fields are the largest number, which no cell has.
    """
    kept = config.action.selection_format
    if kept == "point" and isinstance(action, PointAction):
        return [action.row, action.col]
    if kept == "bbox" and isinstance(action, PointAction):
        return [action.row, action.col, action.row, action.col]
    if kept == "bbox" and isinstance(action, BboxAction):
        return [action.r1, action.c1, action.r2, action.c2]
    if kept != "mask":
        return [jnp.full_like(action.operation, -1)] * (2 if kept == "point" else 4)
    bits = jnp.iinfo(history_type(config)).bits
    height, width = config.canvas
    words = action.to_lanes(height, width)[:height]
    parts = [(words >> shift) & ((1 << bits) - 1) for shift in range(0, width, bits)]
    return [part[row] for row in range(height) for part in parts]


def typed_key(key: AnyKey) -> Array:
    """Keys of any kind (`jax.random.PRNGKey`, another generator) as keys that states hold."""
    if isinstance(key, np.ndarray) and key.dtype == np.uint32:
        key = jnp.asarray(key)
    if not isinstance(key, jax.Array):
        raise _no_key(f"{key!r:.80}")
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        found = f"an array of {key.dtype} of shape {key.shape}"
        if key.dtype != jnp.uint32:
            raise _no_key(found)
        try:
            key = jax.random.wrap_key_data(key)
        except (TypeError, ValueError) as error:
            raise _no_key(found) from error
    if str(jax.random.key_impl(key)) == GENERATOR:
        return key
    draw = jnp.vectorize(lambda one: jax.random.bits(one, (2,)), signature="()->(n)")
    return jax.random.wrap_key_data(draw(key), impl=GENERATOR)


def _no_key(found: str) -> ConfigError:
    return ConfigError(f"key: expected a key, such as jax.random.key(0), got {found}")


def _words(numbers: Int32[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    return jax.lax.bitcast_convert_type(numbers, jnp.uint32)


def _as_kind(number: Int32[Array, "*shape"], name: str) -> Array:
    kind = _NUMBERS[name]
    return _words(number) if kind is jnp.uint32 else number.astype(kind)


def _apart(arrays: dict[str, Any], numbers: Array, key: Array, canvas: tuple[int, int]) -> World:
    """A world from its arrays and its numbers, `[16, ...]`."""
    fields = {name: _as_kind(numbers[k], name) for k, name in enumerate(_NUMBERS)}
    return World(**arrays, **fields, key=key, canvas=canvas)


def _as_int(number: Array) -> Int32[Array, "*shape"]:
    if number.dtype == jnp.uint32:
        return jax.lax.bitcast_convert_type(number, jnp.int32)
    return number.astype(jnp.int32)
