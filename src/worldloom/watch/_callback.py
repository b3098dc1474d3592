"""Host callbacks that cannot break the program, and cost nothing when they are not due."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_any, unvmap_max
from jaxtyping import Array, ArrayLike, Bool, Int

from worldloom._errors import WorldloomError
from worldloom.check._host import host_call
from worldloom.watch._rate import Rate
from worldloom.watch._statistics import note_call, note_error, note_skip


class CallbackError(WorldloomError, ValueError):
    """`watch.callback` was given arguments that do not go together."""


def callback(
    func: Callable[..., object],
    *args: Any,
    name: str | None = None,
    when: Bool[ArrayLike, ""] = True,
    step: Int[ArrayLike, ""] | None = None,
    every: Int[ArrayLike, ""] | None = None,
    rate: Rate | None = None,
    batched: bool = False,
) -> Int[Array, ""]:
    """Call `func(*args)` on the host, from inside any JAX transformation.

    Nothing that `func` does reaches the program: its result is dropped; an exception is counted,
    logged (once a name, with its traceback) and otherwise ignored. Only `KeyboardInterrupt` and
    `SystemExit` stop the program, because they are meant to.

    **Arguments:**

    - `func`: any function. Calls within one step may come in any order.
    - `args`: pytrees. Arrays reach `func` as read-only NumPy arrays (random keys as their data),
      everything else as it is.
    - `name`: what statistics and logs call it; the name of `func` if not given.
    - `when`: a condition, decided on the device. Where it is false nothing is sent.
    - `step`, `every`: call in steps that `every` divides, decided on the device. `every` may be
      traced, so that another period compiles nothing.
    - `rate`: a budget of time. With `step` and `every`, it only measures, and what is returned is
      the new period. On its own, the host counts steps and decides, which costs a few
      microseconds a step.
    - `batched`: under `vmap`, call once with all worlds, each array with their axis in front,
      instead of once for each world that is due.

    **Returns:** the period from here on. Carry it to the next step if `rate` should adapt within
    one program; ignore it otherwise.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import watch

    seen = []

    @jax.jit
    def program(x):
        def step(x, t):
            watch.callback(lambda t, x: seen.append(float(x)), t, x, step=t, every=10)
            return x + 1.0, None

        return jax.lax.scan(step, x, jnp.arange(30))[0]

    program(jnp.float32(0.0)).block_until_ready()
    assert seen == [0.0, 10.0, 20.0]
    ```
    """
    if (step is None) != (every is None):
        raise CallbackError(
            "step and every belong together: the device calls in steps that `every` divides. "
            "Give both, or `rate` alone and the host counts"
        )
    if isinstance(every, int | np.integer) and every < 1:
        raise CallbackError(f"every is {every}; expected a period of 1 or more")
    if name is None:
        name = _name_of(func)
    leaves, structure = jax.tree.flatten(args)
    arrays = {i: _operand(x) for i, x in enumerate(leaves) if isinstance(x, jax.Array | np.ndarray)}
    fixed = {i: x for i, x in enumerate(leaves) if i not in arrays}
    site = _Site(func, name, structure, tuple(arrays), fixed, rate, batched, every is not None)

    period = jnp.asarray(1 if every is None else every, jnp.int32)
    due = jnp.asarray(when, jnp.bool_)
    if step is not None:
        due &= jnp.asarray(step, jnp.int32) % period == 0
    result = jax.ShapeDtypeStruct((), jnp.int32)

    def fire() -> Any:
        (after,) = host_call(site, [result], due, period, *arrays.values(), effect=True)
        return unvmap_max(after)

    def keep() -> Any:
        return unvmap_max(period)

    if rate is None or every is not None:
        return _branch(unvmap_any(due), fire, keep)

    def ask() -> Any:
        turn = jax.ShapeDtypeStruct((), jnp.bool_)
        (go,) = host_call(functools.partial(_ask, rate, name), [turn], True, effect=True)
        return _branch(go, fire, keep)

    return _branch(unvmap_any(due), ask, keep)


def _branch(pred: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    if isinstance(pred, jax.core.Tracer):
        return jax.lax.cond(pred, yes, no)
    return yes() if pred else no()


def _operand(x: Any) -> Any:
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(x)
    return jax.lax.stop_gradient(x)


def _name_of(func: Any) -> str:
    while isinstance(func, functools.partial):
        func = func.func
    if not isinstance(func, FunctionType):
        return getattr(func, "__qualname__", type(func).__qualname__)
    name = func.__qualname__.rpartition("<locals>.")[2]
    if name != "<lambda>":
        return name
    return f"<lambda> at {Path(func.__code__.co_filename).name}:{func.__code__.co_firstlineno}"


def _ask(rate: Rate, name: str, _: np.ndarray) -> tuple[np.ndarray]:
    due = rate.due()
    if not due:
        note_skip(name)
    return (np.asarray(due),)


@dataclasses.dataclass(frozen=True, eq=False)
class _Site:
    """The host's end of one callback: rebuilds arguments, calls, measures, never raises."""

    func: Callable[..., object]
    name: str
    structure: Any
    positions: tuple[int, ...]  # of the arrays among the leaves of the arguments
    fixed: dict[int, Any]  # the other leaves
    rate: Rate | None
    batched: bool
    device_decides: bool

    def __call__(
        self, due: np.ndarray, period: np.ndarray, *operands: np.ndarray
    ) -> tuple[np.ndarray]:
        started = time.perf_counter()
        if due.ndim == 0:
            self._call(operands)
            batch = ()
        else:
            batch = self._call_worlds(due, operands)
        if self.rate is None:
            return (np.broadcast_to(period, batch) if batch else period,)
        steps = int(period.max()) if self.device_decides else None
        after = self.rate.observe(time.perf_counter() - started, steps=steps)
        return (np.full(batch, after, np.int32),)

    def _call_worlds(self, due: np.ndarray, operands: Sequence[np.ndarray]) -> tuple[int, ...]:
        # Every array has the axes of the worlds in front, of size one where they share it.
        levels = due.ndim
        shapes = (x.shape[:levels] for x in (due, *operands))
        batch = tuple(map(max, zip(*shapes, strict=True)))
        if self.batched:
            self._call([_spread(x, batch) for x in operands])
        else:
            for world in map(tuple, np.argwhere(np.broadcast_to(due, batch)).tolist()):
                self._call([x[(*_clip(world, x.shape), ...)] for x in operands])
        return batch

    def _call(self, arrays: Sequence[np.ndarray]) -> None:
        leaves = self.fixed | dict(zip(self.positions, arrays, strict=True))
        started = time.perf_counter()
        try:
            self.func(*jax.tree.unflatten(self.structure, [leaves[i] for i in range(len(leaves))]))
        except Exception:
            note_error(self.name)
        note_call(self.name, time.perf_counter() - started)


def _spread(x: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    levels = len(batch)
    return x if x.shape[:levels] == batch else np.broadcast_to(x, batch + x.shape[levels:])


def _clip(world: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(min(i, n - 1) for i, n in zip(world, shape, strict=False))
