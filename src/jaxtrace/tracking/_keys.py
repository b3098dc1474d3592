"""What chances of a run depend on: the key that was given, or one that is drawn here."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import worldloom as wl
from jaxtrace._errors import TrackError


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
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not 0 <= key < 2**63:
        raise TrackError(f"key={key!r}: expected a whole number from 0 up, or a jax.random.key")
    return jax.random.key(int(key)), int(key) if chance else None
