"""Numbers of tasks and pairs: one that does not exist is refused, not clamped or wrapped.

JAX clamps an index that is too large and wraps a negative one, so the pair of another task would
be played. Where values can be looked at, a bad one is an `UnknownTaskError`; inside `jit` it is a
failed check of `worldloom.check`.
"""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

from jaxarc.data._parse import UnknownTaskError
from worldloom import check

_LEAST, _MOST = np.iinfo(np.int32).min, np.iinfo(np.int32).max


def task_number(index: Any, count: int, where: str) -> int:
    """The number of one of `count` tasks, checked; `where` opens the message of the error."""
    try:
        number = operator.index(index)
    except TypeError:
        number = -1
    if isinstance(index, bool) or not 0 <= number < count:
        raise UnknownTaskError(f"{where} has tasks 0 to {count - 1}, no task {index!r}")
    return number


def saturated(given: Any) -> Array:
    """Integers as an int32 array; those that an int32 cannot hold become its least or its most.

    A cast alone would take 2^32 + 3 for 3.
    """
    if not isinstance(given, jax.Array):
        given = np.clip(np.asarray(given).astype(np.int64), _LEAST, _MOST)
    elif given.dtype.itemsize == 8:
        given = jnp.clip(given, _LEAST, _MOST)
    return jnp.asarray(given).astype(jnp.int32)


def whole_numbers(name: str, given: Any) -> Int32[Array, ...]:
    """An argument of integers as an array; anything else is refused."""
    kind = given.dtype if isinstance(given, jax.Array) else np.asarray(given).dtype
    if not jnp.issubdtype(kind, jnp.integer):
        raise UnknownTaskError(f"{name}={given!r:.80}: expected integers, got {kind}")
    return saturated(given)


def in_range(name: str, numbers: Any, limit: Any, what: str, *, guarded: Any = None) -> Any:
    """Refuse numbers that are not 0 to `limit - 1`; gives `guarded`, by default the numbers.

    **Arguments:**

    - `name`: of the argument that holds the numbers.
    - `limit`: one for all numbers, or one for each.
    - `what`: they count, such as "tasks".
    - `guarded`: what a failed check inside `jit` poisons.
    """
    guarded = numbers if guarded is None else guarded
    if isinstance(numbers, jax.core.Tracer) or isinstance(limit, jax.core.Tracer):
        good = (numbers >= 0) & (numbers < limit)
        return check.require(good, guarded, f"{name}: there are no such {what}")
    numbers, limit = np.broadcast_arrays(numbers, limit)
    bad = np.argwhere((numbers < 0) | (numbers >= limit))
    if len(bad):
        at = tuple(bad[0].tolist())
        world = f" in world {', '.join(map(str, at))}" if numbers.size > 1 else ""
        there = f"{what} are 0 to {limit[at] - 1}" if limit[at] > 0 else f"there are no {what}"
        raise UnknownTaskError(f"{name}={numbers[at]}{world}: {there}")
    return guarded
