"""Arrays at the door: host values spread over devices, and brought back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from worldloom import _processes
from worldloom.mesh._devices import AXIS
from worldloom.mesh._errors import MeshError

Tree = TypeVar("Tree")


def shard(tree: Tree, mesh: Mesh) -> Tree:
    """Split the leading axis of every array of `tree` evenly over the devices of `mesh`.

    Arrays may be NumPy arrays (memory-mapped ones too), JAX arrays, and typed PRNG keys.
    Leaves that are not arrays are left alone. All arrays must have the same leading size, the
    number of worlds, and it must be a multiple of the number of devices.

    With many processes, each passes the same global value, so that the program reads the same
    however it is run. Each process only touches the rows of its own devices: a memory-mapped
    array larger than the memory of one host is fine.

    ```python
    import jax.numpy as jnp
    from worldloom import mesh

    state = mesh.shard({"x": jnp.arange(8.0)}, mesh.worlds_mesh())
    ```
    """
    _check_rows(tree, mesh)
    return _place_all(tree, NamedSharding(mesh, PartitionSpec(AXIS)))


def replicate(tree: Tree, mesh: Mesh) -> Tree:
    """Put a whole copy of every array of `tree` on each device of `mesh`.

    For data that every world shares: tasks, fields, parameters. Leaves that are not arrays are
    left alone. With many processes, each passes the same value.
    """
    return _place_all(tree, NamedSharding(mesh, PartitionSpec()))


def gather(tree: Tree) -> Tree:
    """The global value of every array of `tree` as NumPy, on every process.

    With many processes this is a collective: all of them must call it, in the same order.
    Typed PRNG keys come back as typed keys, since NumPy has none. Leaves that are not arrays
    are left alone.

    ```python
    import jax.numpy as jnp
    from worldloom import mesh

    state = mesh.shard(jnp.arange(8.0), mesh.worlds_mesh())
    assert mesh.gather(state).sum() == 28
    ```
    """
    return jax.tree.map(lambda leaf: _over_keys(leaf, _whole), tree)


def join(tree: Tree, axis: int = 0) -> Tree:
    """NumPy arrays of which each process holds a part, joined along `axis`, on every process.

    For what processes have computed apart, without a mesh. The parts come in the order of the
    processes and must have one shape. Like `gather`, a collective. Alone, a process gets back what
    it gave. The bits are those that were given, whatever JAX makes of the type.

    ```python
    import numpy as np
    from worldloom import mesh

    assert mesh.join(np.arange(3)).tolist() == [0, 1, 2]
    ```
    """

    def joined(part: Any) -> Any:
        part = np.asarray(part)
        if _processes.count() == 1:
            return part
        from jax.experimental import multihost_utils

        raw = np.frombuffer(part.tobytes(), np.uint8)
        every = np.asarray(multihost_utils.process_allgather(raw))
        parts = [np.frombuffer(row.tobytes(), part.dtype).reshape(part.shape) for row in every]
        return np.concatenate(parts, axis=axis)

    return jax.tree.map(joined, tree)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic)


def _place_all(tree: Tree, sharding: NamedSharding) -> Tree:
    return jax.tree.map(lambda leaf: _over_keys(leaf, lambda x: _place(x, sharding)), tree)


def _over_keys(leaf: Any, function: Callable[[Any], Any]) -> Any:
    """`function` of an array; of the words of a typed key; nothing else is touched."""
    if not _is_array(leaf):
        return leaf
    if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return function(leaf)
    words = function(jax.random.key_data(leaf))
    return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))


def _place(array: Any, sharding: NamedSharding) -> jax.Array:
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        return jax.device_put(array, sharding)
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    # device_put would compare the whole value between processes first.
    host = np.asanyarray(array)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def _whole(array: Any) -> np.ndarray:
    return _processes.gather(array) if isinstance(array, jax.Array) else np.asarray(array)


def _check_rows(tree: Any, mesh: Mesh) -> None:
    """Every array has the same leading size, and the devices divide it."""
    if AXIS not in mesh.axis_names:
        raise MeshError(
            f"mesh has the axes {mesh.axis_names}, none called {AXIS!r}. "
            "Make it with mesh.worlds_mesh()."
        )
    first: tuple[str, int] | None = None
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if not _is_array(leaf):
            continue
        name = jax.tree_util.keystr(path) or "tree"
        if leaf.ndim == 0:
            raise MeshError(
                f"{name} is a scalar and has no leading axis to split over devices. "
                "Use mesh.replicate for what all worlds share."
            )
        if first is None:
            first = name, leaf.shape[0]
        elif leaf.shape[0] != first[1]:
            raise MeshError(
                f"{name} has {leaf.shape[0]} rows but {first[0]} has {first[1]}: all arrays must "
                "have one row a world. Use mesh.replicate for what all worlds share."
            )
    devices = mesh.shape[AXIS]
    if first is not None and first[1] % devices:
        below = first[1] // devices * devices
        sizes = f"{below} or {below + devices}" if below else f"{devices}"
        raise MeshError(
            f"{first[1]} worlds cannot be split evenly over {devices} devices. "
            f"The nearest number of worlds that can: {sizes}."
        )
