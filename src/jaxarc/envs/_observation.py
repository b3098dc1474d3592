"""What an agent sees."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int32, UInt32

from jaxarc.bitgrid import PLANES, unpack, unpack_mask
from jaxarc.data import TaskBuffer
from jaxarc.data._buffer import pair_at
from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs._options import ConfigError
from jaxarc.envs._state import World
from jaxarc.operations import NUM_OPERATIONS


class ArcObservation(eqx.Module):
    """The working grid, and what `ObservationConfig` asks for; other fields are `None`.

    Cells are 0 ... 9, and -1 outside of a grid.
    """

    grid: Int8[Array, "*batch height width"]
    input: Int8[Array, "*batch height width"] | None
    clipboard: Int8[Array, "*batch height width"] | None
    demo_inputs: Int8[Array, "*batch demos height width"] | None
    demo_outputs: Int8[Array, "*batch demos height width"] | None
    step: Int32[Array, "*batch"] | None
    allowed_operations: Bool[Array, "*batch 42"] | None


def visible(
    grid: UInt32[Array, "*batch 4 rows"],
    height: Int32[Array, "*batch"],
    width: Int32[Array, "*batch"],
    canvas: tuple[int, int],
) -> Int8[Array, "*batch height width"]:
    """The cells of a bit grid, -1 outside its size; worlds first."""
    ones = (1,) * height.ndim
    row = jnp.arange(canvas[0]).reshape((*ones, -1, 1))
    column = jnp.arange(canvas[1]).reshape((*ones, 1, -1))
    inside = (row < height[..., None, None]) & (column < width[..., None, None])
    return jnp.where(inside, unpack(grid, *canvas).astype(jnp.int8), -1)


def action_mask(config: JaxArcConfig) -> Bool[Array, " 42"]:
    """Which operations may be used."""
    return jnp.isin(jnp.arange(NUM_OPERATIONS), jnp.array(config.operations, jnp.int32))


def observe(state: World, config: JaxArcConfig, tasks: TaskBuffer | None) -> ArcObservation:
    """The observation of a batch of worlds, worlds first."""
    asked = config.observation
    worlds = state.height.shape
    clipboard = None
    if asked.clipboard:
        filled = unpack_mask(state.clip_mask, *state.canvas)
        cells = unpack(state.clip, *state.canvas).astype(jnp.int8)
        clipboard = jnp.where(filled, cells, -1)
    demo_inputs = demo_outputs = None
    if asked.demos:
        demo_inputs, demo_outputs = _demos(state, config, tasks)
    return ArcObservation(
        grid=visible(state.grid, state.height, state.width, state.canvas),
        input=None if not asked.input else _input(state),
        clipboard=clipboard,
        demo_inputs=demo_inputs,
        demo_outputs=demo_outputs,
        step=state.step_count if asked.step else None,
        allowed_operations=jnp.broadcast_to(action_mask(config), (*worlds, NUM_OPERATIONS))
        if asked.allowed_operations
        else None,
    )


def _input(state: World) -> Int8[Array, "worlds height width"]:
    planes = state.pair[..., :PLANES, :]
    return visible(planes, state.input_height, state.input_width, state.canvas)


def _demos(state, config, tasks):
    """The first demonstrations of each world's task; missing ones are -1 everywhere."""
    if tasks is None:
        raise ConfigError(
            "ObservationConfig(demos=...) needs the tasks at every step: use jaxarc.make(...), "
            "or give tasks=... to arc_step and batch_step"
        )
    index = state.task_index[..., None]
    number = jnp.arange(config.observation.demos, dtype=jnp.int32)
    number = jnp.broadcast_to(number, (*index.shape[:-1], config.observation.demos))
    exists = number < tasks.num_demos[index]
    index = jnp.broadcast_to(index, number.shape)
    pairs = pair_at(tasks, index, jnp.where(exists, number, 0), False)

    def cells(grid, size):
        size = jnp.where(exists[..., None], size.astype(jnp.int32), 0)
        return visible(grid, size[..., 0], size[..., 1], state.canvas)

    return cells(pairs.input, pairs.input_size), cells(pairs.output, pairs.output_size)
