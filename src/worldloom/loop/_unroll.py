"""`unroll`: the same steps and records as `run`, as one pure function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax import lax

from worldloom.loop._records import flatten_saves
from worldloom.loop._save import Final, Save


def unroll(
    step: Callable[[Any, Any], tuple[Any, Any]],
    state: Any,
    inputs: Any = None,
    *,
    length: int,
    save: Any = None,
    remat: bool = True,
) -> tuple[Any, Any]:
    """Take a state through `length` steps inside a function that is traced.

    Does what [`worldloom.run`][] does, without the host: no chunks, progress, sinks or checkpoints,
    and everything in memory. So it can be differentiated, compiled and mapped.

    **Arguments:**

    - `step`, `state`, `inputs`, `length`, `save`: as in `run`.
    - `remat`: compute steps again during the backward pass instead of keeping what they computed,
        so that a gradient keeps about `2 * sqrt(length)` states, not all that `length` steps made.

    **Returns:**

    The last state and the records.

    ```python
    import jax
    import jax.numpy as jnp
    import worldloom as wl

    def fall(y, t):
        return y - 0.1 * y, None

    height = lambda y: wl.unroll(fall, y, length=10)[0]
    assert jnp.allclose(jax.grad(height)(jnp.float32(3)), 0.9**10)
    ```
    """
    saves, _, tree = flatten_saves(save, length)

    def one(state, x):
        state, output = step(state, x)
        return state, tuple(_kept(save, state, output) for save in saves)

    body = jax.checkpoint(one) if remat else one
    xs = jnp.arange(length, dtype=jnp.int32) if inputs is None else inputs
    first = state
    if remat and length > 3:
        state, kept = _in_segments(body, state, xs, length)
    else:
        state, kept = lax.scan(body, state, xs)
    values = []
    for save, rows in zip(saves, kept, strict=True):
        if isinstance(save, Final):
            values.append(jtu.tree_map(lambda x: jnp.asarray(x)[None], save.of(state)))
            continue
        due = [n for n in range(1, length + 1) if save.rows(n) > save.rows(n - 1)]
        due += [length] * save.after(length)
        value = jtu.tree_map(lambda x, due=due: x[jnp.asarray(due, jnp.int32) - 1], rows)
        if save.initial and save.of is not None:
            value = jtu.tree_map(
                lambda a, b: jnp.concatenate([jnp.asarray(a)[None], b]), save.of(first), value
            )
        values.append(value)
    return state, jtu.tree_unflatten(tree, values)


def _kept(save: Save, state: Any, output: Any) -> Any:
    if isinstance(save, Final):
        return None
    return output if save.of is None else save.of(state)


def _in_segments(body: Callable, state: Any, xs: Any, length: int) -> tuple[Any, Any]:
    """A scan of scans: only the states between segments outlive the forward pass."""
    size = math.isqrt(length)
    whole = length // size * size
    head = jtu.tree_map(lambda x: x[:whole].reshape(length // size, size, *x.shape[1:]), xs)
    tail = jtu.tree_map(lambda x: x[whole:], xs)
    segment = jax.checkpoint(lambda state, xs: lax.scan(body, state, xs))
    state, kept = lax.scan(segment, state, head)
    kept = jtu.tree_map(lambda x: x.reshape(whole, *x.shape[2:]), kept)
    state, rest = lax.scan(body, state, tail)
    return state, jtu.tree_map(lambda a, b: jnp.concatenate([a, b]), kept, rest)
