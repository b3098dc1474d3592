"""Loading into a template: every leaf compared first, then placed as the template says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from worldloom._way import way
from worldloom.store._errors import Flaw, MismatchError
from worldloom.store._leaves import PLAIN, Leaf, as_keys, is_key

_SHOWN = 8


def template_leaves(like: Any) -> dict[str, Any]:
    """The leaves of a template by path."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(like)}


def check(name: str, leaves: Sequence[Leaf], like: Any) -> None:
    """Raise one `MismatchError` that lists every leaf of the file that does not fit `like`."""
    wanted = template_leaves(like)
    found = {leaf.path: leaf for leaf in leaves}
    complaints = [
        f"{path or 'the root'}: not in the file; the template has {_text(leaf)}"
        for path, leaf in wanted.items()
        if path not in found
    ]
    for path, leaf in found.items():
        have = _leaf_text(leaf)
        if path not in wanted:
            complaints.append(f"{path or 'the root'}: the file has {have}; not in the template")
        elif have != (want := _text(wanted[path])):
            complaints.append(f"{path or 'the root'}: the file has {have}; the template has {want}")
    if complaints:
        shown = complaints[:_SHOWN]
        if len(complaints) > _SHOWN:
            shown.append(f"... and {len(complaints) - _SHOWN} more")
        raise MismatchError(
            f"{name} does not fit the template in {len(complaints)} leaves:\n  "
            + "\n  ".join(shown)
        )


def _text(leaf: Any) -> str:
    """What a template leaf asks for: equal texts fit."""
    if is_key(leaf):
        return f"keys {leaf.dtype}{list(leaf.shape)}"
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic):
        return f"{leaf.dtype.name}{list(leaf.shape)}"
    if type(leaf) in PLAIN:
        return f"a Python {type(leaf).__name__}"
    return "a static leaf"


def _leaf_text(leaf: Leaf) -> str:
    if leaf.kind == "key":
        keys = abstract_keys(leaf)
        return f"keys {keys.dtype}{list(keys.shape)}"
    if leaf.kind in ("array", "scalar"):
        return f"{leaf.dtype}{list(leaf.shape)}"
    if leaf.kind == "value":
        return f"a Python {type(leaf.value).__name__}"
    return "a static leaf"


def abstract_keys(leaf: Leaf) -> jax.ShapeDtypeStruct:
    """Shape and dtype of the keys that a stored key leaf will become."""
    try:
        return jax.eval_shape(
            lambda data: jax.random.wrap_key_data(data, impl=leaf.note),
            jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),
        )
    except (TypeError, ValueError) as error:
        raise Flaw(
            f"leaf {leaf.path} has key data {leaf.dtype}{list(leaf.shape)}, which are no keys of "
            f"{leaf.note!r} ({error})"
        ) from error


def fill(like: Any, leaves: Sequence[Leaf], arrays: dict[int, np.ndarray]) -> Any:
    """The tree of `like` with the checked content of the file. Lets go of `arrays` one by one."""
    numbers = {leaf.path: i for i, leaf in enumerate(leaves)}

    def one(path: Any, wanted: Any) -> Any:
        number = numbers[jax.tree_util.keystr(path)]
        leaf = leaves[number]
        if leaf.kind == "static":
            return wanted
        if leaf.kind == "value":
            return leaf.value
        return _place(arrays.pop(number), leaf, wanted)

    return jax.tree.map_with_path(one, like)


def _place(array: np.ndarray, leaf: Leaf, wanted: Any) -> Any:
    if isinstance(wanted, np.generic):
        return array[()]
    if isinstance(wanted, np.ndarray):
        return array

    def finish(data: np.ndarray) -> Any:
        return as_keys(data, leaf.note) if leaf.kind == "key" else data

    # An array that its owner never pinned to a device must not come back pinned: jit would
    # compile once more for it.
    free = isinstance(wanted, jax.Array) and not wanted.committed
    if free or wanted.sharding is None:
        placed = jnp.asarray(finish(array))
    else:
        placed = jax.make_array_from_callback(
            wanted.shape, wanted.sharding, lambda index: finish(np.asarray(array[index]))
        )
    if placed.dtype != wanted.dtype:
        raise MismatchError(
            f"Leaf {leaf.path} is {wanted.dtype}, which JAX turned into {placed.dtype}. "
            "Enable 64-bit types: "
            + way('jax.config.update("jax_enable_x64", True).', "set JAX_ENABLE_X64=1.")
        )
    return placed
