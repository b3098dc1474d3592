"""What chances of a run depend on: the key that was given, or one that is drawn here."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import worldloom as wl
from jaxtrace._errors import TrackError

if TYPE_CHECKING:
    from jaxtrace.tracking._tracker import Tracker


def resolve(key: Any, *, chance: bool) -> tuple[Array, int | None]:
    """The key of a run, and the number that makes it again.

    **Arguments:**

    - `key`: a number, a `jax.random.key`, or `None` to draw one.
    - `chance`: whether anything is drawn with it at all. If not there is no number to tell.
    """
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key, None
    if key is None:
        key = wl.fresh_seed() if chance else 0
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not 0 <= key < 2**32:
        raise TrackError(
            f"key={key!r}: expected a whole number from 0 to 2**32 - 1, or a jax.random.key"
        )
    return jax.random.key(int(key)), int(key) if chance else None


def recall(tracker: Tracker, checkpoint: wl.Checkpoint | str | Path, *, resume: bool) -> Any:
    """A tracker with the key of the run that goes on, if it drew its own, and a checkpoint.

    The checkpoint keeps the number of the key with the run.
    """
    if not isinstance(checkpoint, wl.Checkpoint):
        checkpoint = wl.Checkpoint(checkpoint)
    if tracker.key_number is None or "key" in checkpoint.config:
        return tracker, checkpoint
    if tracker.key_drawn and resume:
        try:
            recorded = wl.read_run(checkpoint.folder).config.get("key")
        except wl.ResumeError:
            recorded = None
        if recorded is not None:
            tracker = dataclasses.replace(
                tracker, key=jax.random.key(recorded), key_number=recorded
            )
    config = {**checkpoint.config, "key": tracker.key_number}
    return tracker, dataclasses.replace(checkpoint, config=config)
