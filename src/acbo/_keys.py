"""Random keys where the caller gave none."""

from __future__ import annotations

import logging
from typing import Any

import jax

import worldloom as wl

_log = logging.getLogger("acbo")


def key_and_seed(key: Any, what: str) -> tuple[Any, int | None]:
    """The key that was given; or a fresh one and its seed, which is logged to `acbo`.

    `jax.random.key(seed)` in place of no key makes the same again.
    """
    if key is not None:
        return key, None
    seed = wl.fresh_seed()
    _log.info("%s: no key was given; jax.random.key(%d) makes the same again", what, seed)
    return jax.random.key(seed), seed
