"""Checks of actions and states inside compiled code. What happens is `worldloom.check`'s mode."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs._state import ArcState
from jaxarc.envs.structured_actions import Action, BboxAction, PointAction
from jaxarc.operations._table import has_id
from worldloom import check


def action_is_good(action: Action, config: JaxArcConfig) -> Bool[Array, "*batch"]:
    """Whether the operation is allowed and every coordinate lies on the canvas."""
    height, width = config.canvas
    good = has_id(action.operation, config.operations)
    rows, columns = (), ()
    if isinstance(action, PointAction):
        rows, columns = (action.row,), (action.col,)
    elif isinstance(action, BboxAction):
        rows, columns = (action.r1, action.r2), (action.c1, action.c2)
    for places, side in ((rows, height), (columns, width)):
        for place in places:
            good = good & (place >= 0) & (place < side)
    return good


def what_is_good(config: JaxArcConfig) -> str:
    """The message for an action that is not."""
    height, width = config.canvas
    ids = config.operations
    whole = ids == tuple(range(len(ids)))
    allowed = f"0 to {len(ids) - 1}" if whole else ", ".join(map(str, ids))
    return (
        f"bad action: operation must be one of {allowed}, "
        f"rows 0 to {height - 1}, columns 0 to {width - 1}"
    )


class JAXErrorHandler:
    """Checks that work inside `jit` and `vmap`; each returns its first argument.

    What a failed check does is set by the environment variable `EQX_ON_ERROR` or, at any time,
    by `worldloom.check.set_mode`.
    """

    @staticmethod
    def validate_action(action: Action, config: JaxArcConfig) -> Action:
        """Check that the operation is allowed and every coordinate lies on the canvas."""
        return check.require(action_is_good(action, config), action, what_is_good(config))

    @staticmethod
    def validate_state_consistency(state: ArcState) -> ArcState:
        """Check that sizes fit the canvas, padding is empty and the similarity is one."""
        height, width = state.canvas
        sizes = (state.height >= 1) & (state.height <= height)
        sizes = sizes & (state.width >= 1) & (state.width <= width)
        state = check.require(
            sizes, state, f"inconsistent state: grids have 1 to {height} rows, 1 to {width} columns"
        )
        stray = (state.working_grid > 0) & ~state.working_grid_mask
        state = check.require(
            ~jnp.any(stray, axis=(-2, -1)), state, "inconsistent state: a padding cell has a colour"
        )
        similarity = (state.similarity >= 0) & (state.similarity <= 1)
        state = check.require(
            similarity, state, "inconsistent state: similarity must lie in 0 to 1"
        )
        return check.require(
            state.step_count >= 0, state, "inconsistent state: the step count is negative"
        )
