"""Agreement between the processes of one run. With a single process, nothing happens."""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from worldloom._errors import WorldloomError


class DisagreementError(WorldloomError, ValueError):
    """The processes of one run were told different things."""


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


def require_same(facts: Mapping[str, Any]) -> None:
    """Raise in every process unless all of them were told the same.

    To be called first, by all processes alike: processes that differ may wait for each other in
    different places, for ever.

    **Arguments:**

    - `facts`: names and values that JSON can hold, such as the options of a command.

    **Raises:** `DisagreementError`, which names what differs, with the values of two processes.

    ```python
    from worldloom import mesh

    mesh.require_same({"seed": 0, "length": 100})
    ```
    """
    if count() == 1:
        return
    text = json.dumps(facts, default=repr, sort_keys=True).encode()
    if len(set(share(hashlib.sha256(text).digest()))) == 1:
        return
    told = [json.loads(one) for one in share(text)]
    for number, other in enumerate(told[1:], start=1):
        for name in dict.fromkeys([*told[0], *other]):
            first, second = (one.get(name, "nothing") for one in (told[0], other))
            if first != second:
                raise DisagreementError(
                    f"the processes of this run disagree: {name} is {first} in process 0 and "
                    f"{second} in process {number}. Start all with the same options and data, or "
                    "put work that each does for itself into `with worldloom.mesh.alone():`"
                )


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
