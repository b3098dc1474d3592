"""Several processes that succeed together or fail together."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from worldloom import _processes
from worldloom.store._errors import MismatchError, StoreError
from worldloom.store._frames import raw_bytes
from worldloom.store._leaves import elements, is_array
from worldloom.store._manifest import Manifest, structure_of
from worldloom.store._shards import is_spread


@contextlib.contextmanager
def everyone(action: str) -> Iterator[None]:
    """A block that no process leaves before all are through; if it fails in one, in all.

    The process that failed raises its own error. The others raise a `StoreError` that names
    it, instead of waiting for ever for a process that is gone.
    """
    try:
        yield
    except Exception:
        _gather(np.uint8(1))
        raise
    failed = np.flatnonzero(_gather(np.uint8(0)))
    if failed.size:
        raise StoreError(f"Could not {action}: it failed in process {failed.tolist()}.")


def agree(manifest: Manifest, leaves: Sequence[Any]) -> None:
    """Raise in every process unless all have the same tree and the same values in it.

    Arrays that are spread over the processes are left out of the comparison.
    """
    if _processes.count() == 1:
        return
    digest = hashlib.sha256(structure_of(manifest))
    for leaf in leaves:
        if is_array(leaf) and not is_spread(leaf):
            digest.update(raw_bytes(elements(leaf)))
    digests = _gather(np.frombuffer(digest.digest(), np.uint8))
    different = np.flatnonzero((digests != digests[0]).any(axis=1))
    if different.size:
        raise MismatchError(
            f"Processes {different.tolist()} hold other values than process 0 in leaves that are "
            "not spread over the processes. Such leaves must be equal everywhere."
        )


def _gather(value: Any) -> np.ndarray:
    """The value of every process, along a new leading axis. Waits for all of them."""
    if _processes.count() == 1:
        return np.asarray(value)[None]
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(value))
