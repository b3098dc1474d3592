"""The processor's cores, and one device of JAX for each."""

from __future__ import annotations

import contextlib
import os
import sys


def usable_cores() -> int:
    """How many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_every_core() -> None:
    """Show JAX one CPU device a core, unless it was told otherwise or is running already.

    `jaxarc` does this when it is imported, so that its rollouts use the whole processor. It leaves
    alone what the user has set: `JAX_NUM_CPU_DEVICES`, `jax_num_cpu_devices`, or
    `--xla_force_host_platform_device_count` in `XLA_FLAGS`.
    """
    import jax

    from worldloom.mesh._devices import use_cpu_devices
    from worldloom.mesh._errors import StartError

    told = jax.config.jax_num_cpu_devices != -1  # pyright: ignore[reportAttributeAccessIssue]
    if told or "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    with contextlib.suppress(StartError):  # JAX is running: its devices are as they are
        use_cpu_devices(usable_cores())
