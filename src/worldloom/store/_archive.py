"""One pytree in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from worldloom._way import way
from worldloom.store import _template
from worldloom.store._errors import ArgumentError, MismatchError, UnstorableError
from worldloom.store._files import atomic_write
from worldloom.store._format import Box, Reader, open_reader, write
from worldloom.store._join import read_leaves
from worldloom.store._leaves import Leaf, as_keys, describe, elements
from worldloom.store._manifest import Manifest, checked_meta
from worldloom.store._tree import put_together, take_apart


def save(
    path: str | os.PathLike[str],
    tree: PyTree,
    *,
    meta: Mapping[str, Any] | None = None,
    level: int = 3,
) -> None:
    """Write a pytree to one compressed, checksummed file; atomically, and without pickle.

    Stored are arrays (NumPy, JAX, typed random keys) and plain Python values (`bool`, `int`,
    `float`, `complex`, `str`). Other leaves, such as functions, are left out: `load` takes them
    from its template. A file of that name is replaced when the new one is complete on disk;
    until then, whatever happens, the old one stays.

    **Arguments:**

    - `path`: the file. Its folder must exist.
    - `tree`: any pytree. Dictionary keys must be `str`, `int` or `bool`.
    - `meta`: a mapping of JSON values to keep beside the tree; see `read_meta`.
    - `level`: zstd level, 1 (fast) to 22 (small).

    ```python
    import numpy as np
    from worldloom import store

    store.save("state.loom", {"cells": np.zeros((8, 8), np.uint8), "edits": 3}, meta={"run": 1})
    assert store.load("state.loom")["edits"] == 3
    ```
    """
    check_level(level)
    structure, found = take_apart(tree)
    leaves = tuple(describe(name, leaf) for name, leaf in found)
    for name, leaf in found:
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            raise UnstorableError(
                f"Leaf {name} is spread over several processes. Use store.Snapshots, "
                "which writes a file from each."
            )
    manifest = Manifest(structure, leaves, (), checked_meta(meta))

    def boxes() -> Iterator[Box]:
        for number, leaf in enumerate(leaves):
            if leaf.has_data:
                yield Box(number, (0,) * len(leaf.shape), elements(found[number][1]))

    with atomic_write(Path(path)) as file:
        write(file, manifest, boxes(), level)


def check_level(level: int) -> None:
    """Raise unless `level` is a zstd level."""
    if not 1 <= level <= 22:
        raise ArgumentError(f"level is {level}; zstd levels are 1 (fast) to 22 (small).")


def load(
    path: str | os.PathLike[str], like: PyTree | None = None, *, max_bytes: int | None = None
) -> PyTree:
    """Read what `save` wrote.

    Without `like`, the tree is plain: dicts, lists, tuples, `None`, NumPy arrays, random keys
    and Python values. A module, a named tuple or another registered class comes back as a dict
    of its parts. A leaf that was left out is an error that names it.

    With `like`, the tree has the structure of `like`. Leaf paths, dtypes and shapes are
    compared with it before any data are read, and one error lists all differences. JAX arrays
    are placed with the sharding of their counterpart; a NumPy array in `like` gives a NumPy
    array; Python values come from the file and must have the type of their counterpart;
    anything else in `like` (functions, ...) is put into the result as it is.

    **Arguments:**

    - `path`: the file.
    - `like`: a template. `jax.ShapeDtypeStruct` leaves will do, as `jax.eval_shape` gives them.
    - `max_bytes`: refuse a file whose arrays need more than this. Default: what this process can
      have now, by the free memory of the machine, its container, and its limits. Lower it for
      files from strangers.

    ```python
    import jax.numpy as jnp
    from worldloom import store

    weights = jnp.arange(4.0)
    store.save("weights.loom", weights)
    assert (store.load("weights.loom", like=jnp.zeros(4)) == weights).all()
    ```
    """
    with open_reader(Path(path)) as reader:
        if like is None:
            return _plain_tree(reader, max_bytes)
        manifest = reader.manifest
        with reader.naming_flaws():
            _template.check(repr(str(path)), manifest.leaves, like)
        arrays = read_leaves([reader], max_bytes=max_bytes, copied=True)
        return _template.fill(like, manifest.leaves, arrays)


def _plain_tree(reader: Reader, max_bytes: int | None) -> Any:
    manifest = reader.manifest
    for leaf in manifest.leaves:
        if leaf.kind == "static":
            raise MismatchError(
                f"Leaf {leaf.path} of {str(reader.path)!r} is a {leaf.note}, which was left out."
                + way(" Pass a template: load(path, like=...).")
            )
    with reader.naming_flaws():
        put_together(manifest.tree, list(manifest.leaves))  # before anything is allocated
        for leaf in manifest.leaves:
            if leaf.kind == "key":
                _template.abstract_keys(leaf)
    arrays = read_leaves([reader], max_bytes=max_bytes, copied=False)
    values = [_plain_leaf(leaf, arrays.get(i)) for i, leaf in enumerate(manifest.leaves)]
    return put_together(manifest.tree, values)


def _plain_leaf(leaf: Leaf, array: np.ndarray | None) -> Any:
    if array is None:
        return leaf.value
    if leaf.kind == "key":
        return as_keys(array, leaf.note)
    return array[()] if leaf.kind == "scalar" else array


def read_meta(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The `meta` mapping of a file; no array is read.

    Tuples come back as lists, as JSON has it.
    """
    with open_reader(Path(path)) as reader:
        return reader.manifest.meta


@dataclass(frozen=True)
class LeafInfo:
    """One row of `inspect`.

    - `path`: place in the tree, as `jax.tree_util.keystr` writes it.
    - `kind`: `"array"`, `"scalar"` (NumPy scalar), `"key"`, `"value"` or `"static"` (left out).
    - `dtype`, `shape`: of the stored elements (for keys: of the key data); empty without data.
    - `nbytes`, `stored`: bytes of the elements, and of their frames in this file.
    """

    path: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    stored: int


def inspect(path: str | os.PathLike[str]) -> list[LeafInfo]:
    """What a file holds, leaf by leaf, without decompressing anything."""
    with open_reader(Path(path)) as reader:
        manifest = reader.manifest
    stored = [0] * len(manifest.leaves)
    for part in manifest.parts:
        stored[part.leaf] += part.stored
    return [
        LeafInfo(leaf.path, leaf.kind, leaf.dtype, leaf.shape, leaf.nbytes, size)
        for leaf, size in zip(manifest.leaves, stored, strict=True)
    ]
