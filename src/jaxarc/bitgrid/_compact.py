"""Rare, expensive work on the lanes that need it, and on no others.

Under `vmap` a `cond` runs both branches for every world. Here the worlds that need the work
are gathered into blocks, and the work runs once a block; no world, no block, no cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Bool, Float32, PyTree


def on_active_lanes(
    function: Callable[..., PyTree],
    arguments: tuple[PyTree, ...],
    active: Bool[Array, " lanes"],
    *,
    otherwise: PyTree,
    block: int,
) -> PyTree:
    """`function(*arguments)` in the active lanes, `otherwise` in the rest.

    **Arguments:**

    - `function`: takes and returns pytrees of arrays whose last axis is lanes; each lane of
      the result depends on that lane alone. It is called with `block` lanes.
    - `arguments`: its arguments, with all lanes.
    - `active`: the lanes to work on.
    - `otherwise`: a pytree like the result, with all lanes.
    - `block`: lanes gathered at a time. Where it holds them all, nothing is gathered.
    """
    lanes = active.shape[0]
    if block >= lanes:
        return _on_all(function, arguments, active, otherwise)
    place = _count_before(active.astype(jnp.float32)).astype(jnp.int32)
    total = place[-1] + active[-1].astype(jnp.int32)
    # Lane numbers of the active lanes, then numbers that no lane has, each of them once: indices
    # that are known to differ and not to be negative make scatters quicker to run and to compile.
    number = np.arange(lanes, dtype=np.int32)
    queue = jnp.asarray(np.arange(lanes, 2 * lanes + block, dtype=np.int32))
    queue = _put(queue, jnp.where(active, place, lanes + block + number)[:, None], number)

    def work(carry):
        start, result = carry
        picked = jax.lax.dynamic_slice(
            queue[:, None], (start, 0), (block, 1), allow_negative_indices=False
        )
        # In a column, the numbers are cut out once for gather and scatter. The branches are the
        # same: any branch keeps the gather out of the function's loops, which XLA could not
        # vectorise with a gather in them.
        gathered = jax.lax.cond(start < total, _take, _take, arguments, picked)
        done = function(*gathered)
        result = jax.tree.map(lambda old, new: _put(old, picked, new), result, done)
        return start + block, result

    start = jnp.int32(0)
    return jax.lax.while_loop(lambda carry: carry[0] < total, work, (start, otherwise))[1]


def _on_all(function, arguments, active, otherwise):
    """The same for few lanes: the work runs in all of them, if any needs it.

    `otherwise` stays out of the branch, so that no copy of it is made to be written over.
    """
    shapes = jax.eval_shape(function, *arguments)
    nothing = lambda *_: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)  # noqa: E731
    done = jax.lax.cond(jnp.any(active), function, nothing, *arguments)
    return jax.tree.map(lambda new, old: jnp.where(active, new, old), done, otherwise)


def _count_before(counts: Float32[Array, " n"]) -> Float32[Array, " n"]:
    """The sum of all earlier counts. As products of matrices, which XLA need not compile.

    Exact below 2^24.
    """
    n = counts.shape[0]
    size = min(n, max(64, math.isqrt(n)))
    groups = jnp.pad(counts, (0, -n % size)).reshape(-1, size)
    product = partial(jnp.matmul, precision="highest")
    place = product(groups, np.triu(np.ones((size, size), np.float32), 1))
    if n > size:
        sums = product(groups, np.ones((size, size), np.float32))
        place = place + product(np.tri(groups.shape[0], k=-1, dtype=np.float32), sums)
    return place.reshape(-1)[:n]


def _put(old, lanes, new):
    """`old` with `new` in these lanes; those that do not exist are dropped."""
    at = old.at[..., lanes[:, 0]]
    return at.set(_lanes_last(new), mode="drop", unique_indices=True, wrap_negative_indices=False)


def _take(tree, lanes):
    take = partial(jnp.take, indices=lanes[:, 0], axis=-1, mode="clip")
    return jax.tree.map(lambda leaf: _lanes_last(take(leaf)), tree)


def _lanes_last(array):
    """The same, next to each other in memory what is next to each other in lanes.

    XLA would rather have what it gathers and scatters world by world, and then so is all that the
    function does with it: slower, and with larger loops to compile.
    """
    if array.ndim < 2:
        return array
    return with_layout_constraint(array, Layout(tuple(range(array.ndim))))
