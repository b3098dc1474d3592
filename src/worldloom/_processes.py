"""Agreement between the processes of one run. With a single process, nothing happens."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

import jax
import numpy as np

_alone = contextvars.ContextVar("alone", default=False)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A block in which this process waits for no other: its runs and files are its own.

    For work that processes share out among themselves, each part as if there were no others. Give
    each part files of its own.

    ```python
    import jax
    from worldloom import mesh

    parts = ["north", "south", "east", "west"]
    with mesh.alone():
        for part in parts[jax.process_index() :: jax.process_count()]:
            ...  # wl.run(..., checkpoint=wl.Checkpoint(f"runs/{part}"))
    ```
    """
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def count() -> int:
    """How many processes do together what is done here."""
    return 1 if _alone.get() else jax.process_count()


def index() -> int:
    """The number of this process among them."""
    return 0 if _alone.get() else jax.process_index()


def barrier(name: str) -> None:
    """Wait until every process has come to the point called `name`."""
    if count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices(name)


def agree(*values: int) -> tuple[int, ...]:
    """The values that the first process gave, on every process."""
    if count() == 1:
        return values
    from jax.experimental import multihost_utils

    agreed = multihost_utils.broadcast_one_to_all(np.asarray(values, np.int32))
    return tuple(int(value) for value in agreed)


def largest(*values: int) -> tuple[int, ...]:
    """The largest of what the processes gave, for each value."""
    if count() == 1:
        return values
    from jax.experimental import multihost_utils

    every = multihost_utils.process_allgather(np.asarray(values, np.int32))
    return tuple(int(value) for value in every.max(axis=0))


def share(data: bytes) -> list[bytes]:
    """What every process gives, in their order. It is a barrier, too."""
    if count() == 1:
        return [data]
    from jax.experimental import multihost_utils

    # A power of two: as the data grow, few programs have to be compiled.
    room = 1 << (largest(len(data))[0]).bit_length()
    padded = np.frombuffer(len(data).to_bytes(8, "little") + data.ljust(room, b"\0"), np.uint8)
    every = np.asarray(multihost_utils.process_allgather(padded), np.uint8)
    return [row[8 : 8 + int.from_bytes(row[:8].tobytes(), "little")].tobytes() for row in every]


def gather(array: jax.Array) -> np.ndarray:
    """The whole of an array on the host, whichever processes hold its parts."""
    if array.is_fully_addressable:
        return np.asarray(array)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(array, tiled=True))
