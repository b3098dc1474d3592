"""The state of a world: the board, the pair on it, and a few counters."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8, UInt16, UInt32

from jaxarc.bitgrid import unpack, unpack_mask
from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs.structured_actions import (
    FORMATS,
    Action,
    ActionError,
    BboxAction,
    PointAction,
)


class ArcState(eqx.Module):
    """One world, or, with a leading axis on every array, many.

    Grids are bits (`jaxarc.bitgrid`), 4 x 30 words each. The state holds the pair that is being
    played, 1 KB, and no other data of the task: those stay in the task buffer, shared by all
    worlds. At 30 x 30 a world takes 2.1 KB, its history apart.

    `working_grid`, `clipboard` and so on show the bits as cells.
    """

    grid: UInt32[Array, ...]
    height: Int32[Array, "*batch"]
    width: Int32[Array, "*batch"]
    clip: UInt32[Array, ...]
    clip_mask: UInt32[Array, ...]
    input: UInt32[Array, ...]
    input_height: Int32[Array, "*batch"]
    input_width: Int32[Array, "*batch"]
    target: UInt32[Array, ...]
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
    key: Key[Array, "*batch"]
    action_history: UInt8[Array, ...] | UInt16[Array, ...] | None
    """One record a step: operation, selection, timestamp, pair, valid; see `history_fields`."""
    canvas: tuple[int, int] = eqx.field(static=True)

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
        return unpack(self.input, *self.canvas)

    @property
    def target_grid(self) -> UInt8[Array, "*batch height width"]:
        """The cells of the pair's output."""
        return unpack(self.target, *self.canvas)


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
    selection_format = config.action.selection_format
    if not isinstance(action, FORMATS[selection_format]):
        raise ActionError(
            f"the history keeps {selection_format!r} actions, got {type(action).__name__}: "
            f"set UnifiedActionConfig(selection_format=...) to the actions you use, "
            f"or EnvironmentConfig(record_history=False)"
        )
    fields = [action.operation, *_selection_fields(action, config), step, pair, valid]
    row = jnp.stack([field.astype(history.dtype) for field in fields])
    return history.at[step, :, jnp.arange(step.shape[0])].set(row.T, mode="drop")


def _selection_fields(action: Action, config: JaxArcConfig) -> list[Array]:
    if isinstance(action, PointAction):
        return [action.row, action.col]
    if isinstance(action, BboxAction):
        return [action.r1, action.c1, action.r2, action.c2]
    bits = jnp.iinfo(history_type(config)).bits
    height, width = config.canvas
    words = action.to_lanes(height, width)[:height]
    parts = [words >> shift for shift in range(0, width, bits)]
    return [part[row] for row in range(height) for part in parts]


def typed_key(key: Array) -> Array:
    """A key of `jax.random.key`, made of one of `jax.random.PRNGKey` where needed."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return jax.random.wrap_key_data(key)
