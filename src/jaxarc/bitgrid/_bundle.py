"""Many small arrays as one: each array that a loop fills, or pads, is a kernel to compile."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree


def bundle(tree: PyTree) -> tuple[list[Array], Callable[[list[Array]], PyTree]]:
    """The leaves of a tree, those with one number a lane stacked by type; and the way back."""
    leaves, structure = jax.tree.flatten(tree)
    groups: dict[object, list[int]] = {}
    for i, leaf in enumerate(leaves):
        groups.setdefault(leaf.dtype if leaf.ndim == 1 else i, []).append(i)
    members = list(groups.values())

    def unbundle(arrays: list[Array]) -> PyTree:
        found = {}
        for some, array in zip(members, arrays, strict=True):
            found |= {some[0]: array} if len(some) == 1 else dict(zip(some, array, strict=True))
        return jax.tree.unflatten(structure, [found[i] for i in range(len(leaves))])

    arrays = [
        leaves[some[0]] if len(some) == 1 else jnp.stack([leaves[i] for i in some])
        for some in members
    ]
    return arrays, unbundle
