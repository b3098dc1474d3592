"""Agreement between the processes of one run. With a single process, nothing happens."""

from __future__ import annotations

import jax
import numpy as np


def barrier(name: str) -> None:
    """Wait until every process has come to the point called `name`."""
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices(name)


def agree(*values: int) -> tuple[int, ...]:
    """The values that the first process gave, on every process."""
    if jax.process_count() == 1:
        return values
    from jax.experimental import multihost_utils

    agreed = multihost_utils.broadcast_one_to_all(np.asarray(values, np.int32))
    return tuple(int(value) for value in agreed)


def gather(array: jax.Array) -> np.ndarray:
    """The whole of an array on the host, whichever processes hold its parts."""
    if array.is_fully_addressable:
        return np.asarray(array)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(array, tiled=True))
