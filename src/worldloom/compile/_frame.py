"""A pytree taken apart: its arrays, and a hashable frame that holds everything else."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.tree_util as jtu

_HOLE = object()


def is_traced(leaf: Any) -> bool:
    """Whether a compiled function takes `leaf` as data: an array, a number, or a shape."""
    return eqx.is_array_like(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


@dataclasses.dataclass(frozen=True)
class Frame:
    """A pytree without its arrays. Equal frames can share a compiled program."""

    structure: Any
    others: tuple[Any, ...]

    def fill(self, arrays: list[Any]) -> Any:
        """Put arrays back where `take_apart` took them from."""
        rest = iter(arrays)
        leaves = [next(rest) if leaf is _HOLE else leaf for leaf in self.others]
        return jtu.tree_unflatten(self.structure, leaves)

    def names(self, prefix: str) -> list[str]:
        """A path for each array, in the order in which `take_apart` lists them."""
        numbered = jtu.tree_unflatten(self.structure, list(range(len(self.others))))
        paths = {leaf: jtu.keystr(path) for path, leaf in jtu.tree_leaves_with_path(numbered)}
        return [prefix + paths[i] for i, leaf in enumerate(self.others) if leaf is _HOLE]


def take_apart(tree: Any) -> tuple[list[Any], Frame]:
    """Split a pytree into the list of its arrays and the frame around them."""
    leaves, structure = jtu.tree_flatten(tree)
    arrays = [leaf for leaf in leaves if is_traced(leaf)]
    return arrays, Frame(structure, tuple(_HOLE if is_traced(x) else x for x in leaves))
