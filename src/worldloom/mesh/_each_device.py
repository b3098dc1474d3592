"""One copy of a function a device, each on its own rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax.sharding import Mesh, PartitionSpec

from worldloom.mesh._devices import AXIS
from worldloom.mesh._errors import MeshError


def each_device(
    fn: Callable[..., Any], mesh: Mesh, *, in_axes: Any = 0, out_axes: Any = 0
) -> Callable[..., Any]:
    """`fn` run once on each device, on that device's part of the batch.

    `fn` takes and returns batches, as a step does. Without it XLA decides how to split a
    program, and a loop or a sort may bring all rows to all devices; with it nothing moves
    between devices unless `fn` asks by `jax.lax.psum(x, mesh.AXIS)` or another collective. Call
    the result under `jax.jit`.

    **Arguments:**

    - `fn`: a function of batches. Arrays bound to it (a `jax.tree_util.Partial`, an
      `eqx.Module`) are shared by all devices.
    - `in_axes`: as for `jax.vmap`: the axis of each argument that is split, `None` for an
      argument that every device gets whole; or a tree of those.
    - `out_axes`: likewise for the result. `None` says that the devices agree on the value, as
      they do after a `psum`; it is not checked.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import mesh

    devices = mesh.worlds_mesh()
    step = jax.jit(mesh.each_device(lambda x, t: x + t, devices, in_axes=(0, None)))
    x = step(mesh.shard(jnp.zeros(8), devices), jnp.float32(1))
    ```
    """

    def call(*args: Any) -> Any:
        specs = _specs(in_axes, "in_axes")
        if isinstance(specs, tuple) and len(specs) != len(args):
            raise MeshError(
                f"in_axes has {len(specs)} entries but the function was called with "
                f"{len(args)} arguments."
            )
        specs = specs if isinstance(specs, tuple) else (specs,) * len(args)
        bound, static_fn = eqx.partition(fn, eqx.is_array)
        arrays, static_args = eqx.partition(args, eqx.is_array)

        def one_device(bound: Any, arrays: Any) -> Any:
            return eqx.combine(bound, static_fn)(*eqx.combine(arrays, static_args))

        # check_vma would ask that every loop inside `fn` marks which carries differ between
        # devices: code that knows nothing of devices does not.
        return jax.shard_map(
            one_device,
            mesh=mesh,
            in_specs=(PartitionSpec(), specs),
            out_specs=_specs(out_axes, "out_axes"),
            check_vma=False,
        )(bound, arrays)

    return call


def _specs(axes: Any, name: str) -> Any:
    """A tree of axes as a tree of partition specs. Lists count as tuples."""

    def spec(axis: Any) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        if not isinstance(axis, int) or isinstance(axis, bool) or axis < 0:
            raise MeshError(f"{name} holds {axis!r}: expected None or an axis number from 0 up.")
        return PartitionSpec(*[None] * axis, AXIS)

    axes = tuple(axes) if isinstance(axes, list) else axes
    return jax.tree.map(spec, axes, is_leaf=lambda x: x is None)
