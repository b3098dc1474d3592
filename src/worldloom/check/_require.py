"""`require`: identity with a condition, that stays a real branch under `vmap`."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_any, unvmap_max
from jaxtyping import Array, ArrayLike, Bool

from worldloom.check._errors import CheckUsageError
from worldloom.check._host import host_call
from worldloom.check._report import Report, user_frames

T = TypeVar("T")


def require(pred: Bool[ArrayLike, "*worlds"], value: T, message: str) -> T:
    """Return `value`, having checked that `pred` holds. Works inside any JAX transformation.

    Use what it returns: a check whose result nobody uses is removed with the other dead code.

    **Arguments:**

    - `pred`: what must be true. One boolean, or one a world: its axes are then the first axes
      of every floating-point array of `value`. Axes added by `vmap` are not counted.
    - `value`: any pytree with at least one array.
    - `message`: what went wrong, in words.

    **Returns:** `value`. If `pred` is false, the mode (see `set_mode`) decides:
    `"raise"` stops with a `CheckError` that lists the failing worlds; `"nan"` makes every
    floating-point array of the failing worlds, and of no other, NaN, and leaves integers,
    booleans and keys as they are; `"breakpoint"` opens the debugger first; `"off"` does
    nothing. Its derivative is that of the identity.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import check

    @jax.jit
    @jax.vmap
    def step(position):
        position = position + 1.0
        return check.require(position < 10.0, position, "a particle left the box")

    print(step(jnp.array([1.0, 2.0])))
    ```
    """
    pred = _as_boolean(pred)
    arrays, rest = eqx.partition(value, _is_guarded)
    named, structure = jax.tree_util.tree_flatten_with_path(arrays)
    leaves = [leaf for _, leaf in named]
    names = tuple(jax.tree_util.keystr(path) for path, _ in named)
    for name, leaf in zip(names, leaves, strict=True):
        if _has_nan(leaf) and leaf.shape[: pred.ndim] != pred.shape:
            raise CheckUsageError(
                f"pred has shape {pred.shape} and value{name} shape {leaf.shape}; the axes of "
                f"pred are worlds: they must be the first axes of every floating-point array"
            )
    report = Report(message, user_frames(), pred.ndim, structure, names)
    failed = jnp.logical_not(pred)
    any_failed = unvmap_any(failed)
    if not isinstance(any_failed, jax.core.Tracer):
        if not any_failed:
            return value
    elif not leaves:
        raise CheckUsageError(
            f"value is {value!r}, which holds no array; inside a compiled program a check "
            "hangs on an array that is used later"
        )
    leaves = _guard(report, any_failed, failed, leaves)
    return eqx.combine(jax.tree.unflatten(structure, leaves), rest)


def _as_boolean(pred: Any) -> Bool[Array, "*worlds"]:
    pred = jnp.asarray(pred)
    if pred.dtype != jnp.bool_:
        raise CheckUsageError(
            f"pred has dtype {pred.dtype}; expected booleans, true where all is well"
        )
    return pred


def _is_guarded(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray) and not jnp.issubdtype(
        leaf.dtype, jax.dtypes.extended
    )


def _has_nan(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _guard(report: Report, any_failed: Any, failed: Any, leaves: list[Any]) -> list[Any]:
    """The branch. Everything passes through it, so that nothing can be used unchecked."""

    def bad(failed: Any, leaves: list[Any]) -> list[Any]:
        poison, zero = _ask(report, failed, leaves)
        return _poisoned(poison, zero, leaves)

    if not isinstance(any_failed, jax.core.Tracer):
        return bad(failed, leaves)
    return jax.lax.cond(any_failed, bad, lambda _, leaves: leaves, failed, leaves)


@_guard.defjvp
def _guard_jvp(report: Report, primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
    return _guard(report, *primals), tangents[-1]


def _ask(report: Report, failed: Any, leaves: list[Any]) -> list[Any]:
    results = (
        jax.ShapeDtypeStruct(failed.shape, jnp.bool_),
        jax.ShapeDtypeStruct((), jnp.int32),
    )
    return host_call(report, results, failed, *leaves, effect=False)


def _poisoned(poison: Any, zero: Any, leaves: list[Any]) -> list[Any]:
    zero = unvmap_max(zero)

    def one(leaf: Any) -> Any:
        if _has_nan(leaf):
            where = poison.reshape(poison.shape + (1,) * (leaf.ndim - poison.ndim))
            nan = complex(np.nan, np.nan) if jnp.iscomplexobj(leaf) else np.nan
            return jnp.where(where, jnp.asarray(nan, leaf.dtype), leaf)
        # XLA cannot know that this is the identity, so it keeps the check of an integer.
        mask = zero.astype(leaf.dtype) if leaf.dtype != jnp.bool_ else zero != 0
        return leaf ^ mask

    return [one(leaf) for leaf in leaves]
