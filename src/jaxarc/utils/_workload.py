"""The work that the helpers measure: colour 0 on cells below one another, as the guides have it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from jaxarc.envs import BboxAction, JaxArcConfig, MaskAction, PointAction
from jaxarc.envs.structured_actions import Action


def guide_action(config: JaxArcConfig, step: Int32[Array, ""] | int, shape: Any = ()) -> Action:
    """The action of a step, in the format of the configuration, for worlds of any shape."""
    height, width = config.canvas
    full = lambda value: jnp.broadcast_to(jnp.asarray(value, jnp.int32), shape)  # noqa: E731
    operation, row, col = full(0), full((step % 10 + 5) % height), full(5 % width)
    match config.action.selection_format:
        case "point":
            return PointAction(operation, row, col)
        case "bbox":
            return BboxAction(operation, row, col, row, col)
        case _:
            cells = PointAction(operation, row, col).to_selection_mask((height, width))
            return MaskAction(operation, cells)


def program_bytes(program: jax.stages.Compiled) -> int:
    """Arguments, results and temporaries of a compiled program, as XLA counts them."""
    needs: Any = program.memory_analysis()
    return (
        needs.argument_size_in_bytes
        + needs.output_size_in_bytes
        + needs.temp_size_in_bytes
        - needs.alias_size_in_bytes
    )
