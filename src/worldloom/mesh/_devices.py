"""Devices: how many the host offers, and the one axis that worlds are spread over."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from worldloom.mesh._errors import MeshError, StartError

AXIS = "worlds"
"""Name of the mesh axis that worlds are split over, as used by `jax.lax.psum` and friends."""


def worlds_mesh(
    devices: Sequence[jax.Device] | None = None,  # pyright: ignore[reportInvalidTypeForm]
) -> Mesh:
    """A row of devices with the one axis `"worlds"`.

    **Arguments:**

    - `devices`: which devices, in order. All devices of all processes where not given.

    The axis is of type `Auto`: JAX moves data between devices where a program needs it, so a
    program written for one device runs unchanged.

    ```python
    from worldloom import mesh

    devices = mesh.worlds_mesh()
    assert devices.axis_names == ("worlds",)
    ```
    """
    chosen = list(jax.devices() if devices is None else devices)
    if not chosen:
        raise MeshError("devices is empty: a mesh needs at least one device.")
    if len(set(chosen)) != len(chosen):
        raise MeshError(f"devices names a device more than once: {chosen}.")
    return Mesh(np.array(chosen), (AXIS,), axis_types=(AxisType.Auto,))


def use_cpu_devices(count: int) -> None:
    """Show the host's processor to JAX as `count` devices. One a core is a good number.

    XLA runs many programs (gathers above all) on one core a device, so that two devices on two
    cores are up to twice as fast. Call it before the first computation: the number is fixed
    when JAX's backend starts.

    ```python
    from worldloom import mesh

    mesh.use_cpu_devices(2)
    ```
    """
    if count < 1:
        raise StartError(f"count must be at least 1, got {count}.")
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError as error:
        raise StartError(
            f"use_cpu_devices({count}) came too late: JAX's backend is already running with "
            f"{jax.local_device_count('cpu')} CPU device(s). Call it before the first "
            "computation, straight after the imports."
        ) from error
