"""One call of the host for all worlds: the primitive under `check` and `watch`.

`jax.pure_callback` and `jax.debug.callback` could do this, but:

- a call through them costs about 120 us, mostly for moving arguments to a device and back
  (here: about 15 us, and the host gets NumPy arrays);
- `jax.debug.callback` is unrolled under `vmap`, one call a world;
- in a program over several devices they call from one device alone. If that call raises, the
  others wait for it in their next collective operation until XLA ends the process. Here every
  device calls, so that all of them stop.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

# Programs in flight may be about to call. Nothing to wait for before the first was lowered; and
# asking JAX for its arrays would start its backends.
_lowered = [False]

_host_call = Primitive("worldloom_host_call")
_host_call.multiple_results = True


def host_call(
    call: Callable[..., Sequence[np.ndarray]],
    results: Sequence[jax.ShapeDtypeStruct],
    mask: Any,
    *operands: Any,
    effect: bool,
) -> list[Any]:
    """Call `call(mask, *operands)` on the host with NumPy arrays, in a branch on any of `mask`.

    Under `vmap` it is called once for all worlds. Each level puts an axis in front of every
    operand, of size one where the operand is the same for all worlds, and in front of every
    result.

    **Arguments:**

    - `call`: takes read-only NumPy arrays, returns the results as NumPy arrays.
    - `results`: shapes and dtypes of the results, for one world.
    - `mask`: which worlds want the call. A mask of one element is known to be true where the
      branch is taken, and is not sent: sending it costs every step half a microsecond.
    - `effect`: whether the call is there for what it does. If not, it is removed where nobody
      uses its results, and it runs on every device; if so, it is never removed, and it runs
      once. An effect costs about 100 us each time the program is started from Python.
    """
    operands = tuple(jnp.asarray(operand) for operand in (mask, *operands))
    shapes = tuple((tuple(result.shape), jnp.dtype(result.dtype)) for result in results)
    return _host_call.bind(*operands, call=call, results=shapes, effect=effect)


def wait_for_programs() -> None:
    """Wait until every program that was started has made its calls."""
    if _lowered[0]:
        for array in jax.live_arrays():
            if not array.is_deleted():
                # An error stays with the array: whoever uses the array meets it.
                with contextlib.suppress(jax.errors.JaxRuntimeError, ValueError):
                    array.block_until_ready()


@functools.cache
def _debug_effect() -> Any:
    """The effect of `jax.debug.callback`, which every transformation of JAX knows to keep."""
    return jax.make_jaxpr(lambda: jax.debug.callback(lambda: None))().effects


@_host_call.def_impl
def _eager(*operands: Any, call: Any, results: Any, effect: bool) -> list[Any]:
    return [jnp.asarray(result) for result in call(*map(np.asarray, operands))]


@_host_call.def_effectful_abstract_eval
def _abstract(*operands: Any, call: Any, results: Any, effect: bool) -> tuple[Any, Any]:
    avals = [jax.core.ShapedArray(shape, dtype) for shape, dtype in results]
    return avals, _debug_effect() if effect else set()


def _batched(operands: Any, axes: Any, *, call: Any, results: Any, effect: bool) -> Any:
    (size,) = {x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None}
    operands = [
        x[None] if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    ]
    results = tuple(((size, *shape), dtype) for shape, dtype in results)
    outs = _host_call.bind(*operands, call=call, results=results, effect=effect)
    return outs, [0] * len(outs)


batching.primitive_batchers[_host_call] = _batched


def _lower(ctx: Any, *operands: Any, call: Any, results: Any, effect: bool) -> Any:
    _lowered[0] = True
    axis_context = ctx.module_context.axis_context
    if effect and not (
        isinstance(axis_context, mlir.ShardingContext) and axis_context.num_devices == 1
    ):
        shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in results]

        def once(*operands: Any) -> Any:
            return io_callback(lambda *xs: call(*map(np.asarray, xs)), shapes, *operands)

        return mlir.lower_fun(once, multiple_results=True)(ctx, *operands)
    shape = ctx.avals_in[0].shape
    if math.prod(shape) == 1:
        call = functools.partial(call, np.ones(shape, bool))
        ctx = ctx.replace(avals_in=ctx.avals_in[1:])
        operands = operands[1:]
    outs, _, _ = mlir.emit_python_callback(
        ctx,
        call,
        None,
        list(operands),
        ctx.avals_in,
        ctx.avals_out,
        has_side_effect=effect,
        returns_token=False,
    )
    return outs


mlir.register_lowering(_host_call, _lower)
