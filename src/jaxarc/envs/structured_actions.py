"""Actions: an operation and the cells it is about, as a point, a box or a mask.

Fields are scalars for one world, or have a leading batch axis for many.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from jaxarc.bitgrid import Box, cell, pack_mask, rectangle, to_lanes, unpack_mask
from jaxarc.data._index import saturated
from worldloom._errors import WorldloomError


class ActionError(WorldloomError, TypeError):
    """Something that is not an action was given as one."""


def _integer(value: Any) -> Array:
    value = value if isinstance(value, jax.Array) else np.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.integer):
        raise ActionError(f"operations and coordinates are integers, got {value.dtype}")
    return saturated(value)


def _mask(value: Any) -> Array:
    value = jnp.asarray(value)
    if value.dtype not in (jnp.bool_, jnp.uint32):
        raise ActionError(
            f"a selection is cells, of type bool, or their bits, uint32 a row; got {value.dtype}"
        )
    return value


def _on_canvas(words: UInt32[Array, rows * lanes], height: int, width: int):
    """Drop the cells that a word has room for and the canvas has not."""
    side = lambda length: jnp.full(words.shape[1:], length, jnp.int32)  # noqa: E731
    return words & rectangle(words.shape[0], Box(side(0), side(height), side(0), side(width)))


class PointAction(eqx.Module):
    """An operation on one cell. A cell outside the canvas selects nothing."""

    operation: Int32[Array, "*batch"] = eqx.field(converter=_integer)
    row: Int32[Array, "*batch"] = eqx.field(converter=_integer)
    col: Int32[Array, "*batch"] = eqx.field(converter=_integer)

    def to_lanes(self, height: int, width: int) -> UInt32[Array, rows * batch]:
        """The selection as a bit mask."""
        return _on_canvas(cell(max(height, width), self.row, self.col), height, width)

    def to_selection_mask(self, grid_shape: tuple[int, int]) -> Bool[Array, ...]:
        """The selected cells of a canvas of this shape."""
        return _as_cells(self, grid_shape)


class BboxAction(eqx.Module):
    """An operation on a box: corners in any order, both included, cut at the canvas."""

    operation: Int32[Array, "*batch"] = eqx.field(converter=_integer)
    r1: Int32[Array, "*batch"] = eqx.field(converter=_integer)
    c1: Int32[Array, "*batch"] = eqx.field(converter=_integer)
    r2: Int32[Array, "*batch"] = eqx.field(converter=_integer)
    c2: Int32[Array, "*batch"] = eqx.field(converter=_integer)

    def to_lanes(self, height: int, width: int) -> UInt32[Array, rows * batch]:
        """The selection as a bit mask."""
        box = Box(
            jnp.minimum(self.r1, self.r2),
            jnp.maximum(self.r1, self.r2) + 1,
            jnp.minimum(self.c1, self.c2),
            jnp.maximum(self.c1, self.c2) + 1,
        )
        return _on_canvas(rectangle(max(height, width), box), height, width)

    def to_selection_mask(self, grid_shape: tuple[int, int]) -> Bool[Array, ...]:
        """The selected cells of a canvas of this shape."""
        return _as_cells(self, grid_shape)


class MaskAction(eqx.Module):
    """An operation on any set of cells.

    `selection` has the shape of the canvas; or it is the same mask as bits, a word a row, as
    `jaxarc.bitgrid.pack_mask` makes it, in an eighth of the memory.
    """

    operation: Int32[Array, "*batch"] = eqx.field(converter=_integer)
    selection: Bool[Array, "*batch height width"] | UInt32[Array, "*batch rows"] = eqx.field(
        converter=_mask
    )

    def packed(self) -> MaskAction:
        """The same action, its mask as bits."""
        if self.selection.dtype != bool:
            return self
        return MaskAction(self.operation, pack_mask(self.selection))

    def to_lanes(self, height: int, width: int) -> UInt32[Array, rows * batch]:
        """The selection as a bit mask."""
        given = self.selection
        if given.dtype == bool and given.shape[-2:] != (height, width):
            shape = " x ".join(map(str, given.shape[-2:]))
            raise ActionError(f"the mask has {shape} cells, the canvas {height} x {width}")
        if given.dtype != bool and given.shape[-1] != max(height, width):
            raise ActionError(
                f"the mask has {given.shape[-1]} words, one a row; a canvas of "
                f"{height} x {width} has {max(height, width)}"
            )
        words = self.packed().selection
        words = to_lanes(words) if self.operation.ndim else words
        return words if given.dtype == bool else _on_canvas(words, height, width)

    def to_selection_mask(self, grid_shape: tuple[int, int]) -> Bool[Array, ...]:
        """The selected cells of a canvas of this shape."""
        return _as_cells(self, grid_shape)


Action: TypeAlias = PointAction | BboxAction | MaskAction

FORMATS: dict[str, type[PointAction] | type[BboxAction] | type[MaskAction]] = {
    "point": PointAction,
    "bbox": BboxAction,
    "mask": MaskAction,
}


def _as_cells(action: Action, grid_shape: tuple[int, int]) -> Bool[Array, ...]:
    words = action.to_lanes(*grid_shape)
    words = jnp.moveaxis(words, -1, 0) if action.operation.ndim else words
    return unpack_mask(words, *grid_shape)


def check_any_action(action: Any) -> None:
    """Refuse what is not an action, and show what one looks like."""
    if not isinstance(action, tuple(FORMATS.values())):
        raise ActionError(
            f"an action is PointAction(operation=0, row=5, col=5), BboxAction(operation=0, r1=3, "
            f"c1=3, r2=7, c2=7) or MaskAction(operation=0, selection=mask), all from "
            f"jaxarc.envs.structured_actions; got {type(action).__name__}"
        )
