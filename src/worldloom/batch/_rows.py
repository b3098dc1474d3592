"""The batch axis of a tree of arrays: found, checked, resized."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from worldloom.batch._errors import BatchError


def is_array(leaf: Any) -> bool:
    """An array, or the shape and dtype of one."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


def axes_of(args: tuple[Any, ...], in_axes: Any) -> Any:
    """`in_axes` with one entry a leaf of `args`, checked against them.

    Leaves that are not arrays have no axis, whatever `in_axes` says.
    """
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    try:
        axes = jax.tree.broadcast(in_axes, args, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise BatchError(
            f"in_axes={in_axes!r} does not match the arguments: expected an axis or None for "
            f"each, or one for all. {error}"
        ) from error
    sizes: dict[str, int] = {}

    def check(path: Any, leaf: Any, axis: Any) -> int | None:
        if axis is None or not is_array(leaf):
            return None
        name = f"args{jax.tree_util.keystr(path)}"
        if not isinstance(axis, int) or not -leaf.ndim <= axis < leaf.ndim:
            raise BatchError(f"{name} has shape {leaf.shape}: in_axes={axis!r} is no axis of it.")
        sizes[name] = leaf.shape[axis]
        return axis % leaf.ndim

    axes = jax.tree_util.tree_map_with_path(check, args, axes, is_leaf=lambda x: x is None)
    if not sizes:
        raise BatchError("no argument is batched: in_axes gives no array an axis.")
    if len(set(sizes.values())) > 1:
        described = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise BatchError(f"the batched axes have different sizes ({described}). Check in_axes.")
    return axes


def abstract(args: Any, axes: Any, size: int) -> Any:
    """Shapes and dtypes of `args` for a batch of `size`. Leaves that are not arrays stay."""

    def resized(leaf: Any, axis: int | None) -> Any:
        if not is_array(leaf):
            return leaf
        shape = list(leaf.shape)
        if axis is not None:
            shape[axis] = size
        # What JAX makes of a NumPy array: float64 is float32 unless x64 is enabled.
        typed = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
        return jax.ShapeDtypeStruct(tuple(shape), typed.dtype)

    return jax.tree.map(resized, args, axes, is_leaf=lambda x: x is None)


def concrete(args: Any, axes: Any, size: int) -> Any:
    """`args` as a batch of `size`, by taking its rows again and again."""

    def resized(path: Any, leaf: Any, axis: int | None) -> Any:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            raise BatchError(
                f"measure=True runs the function, but args{jax.tree_util.keystr(path)} is only a "
                "shape. Give arrays with typical values, of any batch size."
            )
        if axis is None or not is_array(leaf):
            return leaf
        rows = np.arange(size) % leaf.shape[axis]
        return jnp.take(jnp.asarray(leaf), rows, axis=axis)

    return jax.tree_util.tree_map_with_path(resized, args, axes, is_leaf=lambda x: x is None)


def rows_of(tree: Any, name: str) -> int:
    """How many rows the arrays of `tree` have, all of them the same."""
    first: tuple[str, int] | None = None
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        here = name + jax.tree_util.keystr(path)
        if not is_array(leaf) or leaf.ndim == 0:
            raise BatchError(
                f"{here} is {leaf!r}, which has no rows. Bind what all rows share to the "
                "function: jax.tree_util.Partial(fn, shared)."
            )
        if first is None:
            first = here, leaf.shape[0]
        elif leaf.shape[0] != first[1]:
            raise BatchError(
                f"{here} has {leaf.shape[0]} rows but {first[0]} has {first[1]}: the leading axes "
                "must be the same."
            )
    if first is None:
        raise BatchError(f"{name} holds no array.")
    return first[1]
