"""`compiled`: `jax.jit` for functions that take modules and configuration."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import jax
import jax.tree_util as jtu

from worldloom import check
from worldloom._errors import WorldloomError
from worldloom.compile._explain import Signature, explain
from worldloom.compile._frame import Frame, is_traced, take_apart

P = ParamSpec("P")
R = TypeVar("R")


class UnhashableStaticError(WorldloomError, TypeError):
    """A static argument cannot be a key, so that its program could never be found again."""


@dataclasses.dataclass(frozen=True)
class Compilation:
    """One tracing of a compiled function."""

    reason: str
    """Why it happened, in words."""

    signature: Signature
    """What the arguments looked like."""


@overload
def compiled(
    fn: Callable[P, R], *, static: Sequence[str] = (), donate: Sequence[str] = ()
) -> Compiled[P, R]: ...


@overload
def compiled(
    fn: None = None, *, static: Sequence[str] = (), donate: Sequence[str] = ()
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...


def compiled(fn: Any = None, *, static: Sequence[str] = (), donate: Sequence[str] = ()) -> Any:
    """Compile a function of arrays, modules and hashable configuration.

    Like `jax.jit`, and as cheap to call: `eqx.Module`s of arrays go to JAX's own dispatch as they
    are. Modules with other leaves (an activation function in `eqx.nn.MLP`) work too; those leaves
    become part of the program, which costs some microseconds a call.

    **Arguments:**

    - `fn`: the function. Left out, `compiled` is a decorator with options.
    - `static`: names of arguments that are configuration: hashable, part of the program.
    - `donate`: names of arguments whose memory the program may reuse. They are gone afterwards.

    **Returns:**

    A [`worldloom.Compiled`][]: call it like `fn`; `.warm_up(...)` compiles from shapes,
    `.explain()` says why it last compiled.

    ```python
    import dataclasses
    import jax.numpy as jnp
    import worldloom as wl

    @dataclasses.dataclass(frozen=True)
    class Config:
        power: int = 2

    @wl.compiled(static=("config",))
    def total(x, config):
        return jnp.sum(x**config.power)

    assert total(jnp.arange(3.0), Config()) == 5.0
    total(jnp.arange(4.0), Config())
    assert "x: f32[3] -> f32[4]" in total.explain()
    ```
    """
    if fn is None:
        return functools.partial(compiled, static=static, donate=donate)
    return Compiled(fn, static=static, donate=donate)


class Compiled(Generic[P, R]):
    """A function that is compiled once for each kind of argument: see [`worldloom.compiled`][]."""

    compilations: list[Compilation]
    """Every tracing so far, oldest first, each with its reason."""

    def __init__(
        self, fn: Callable[P, R], *, static: Sequence[str] = (), donate: Sequence[str] = ()
    ):
        functools.update_wrapper(self, fn)
        self._name = getattr(fn, "__name__", type(fn).__name__)
        self._static = tuple(static)
        self._parameters = inspect.signature(fn)
        names = list(self._parameters.parameters)
        for name in (*static, *donate):
            if name not in names:
                raise ValueError(
                    f"compiled({self._name}): no argument {name!r}; it takes {', '.join(names)}"
                )
        self._static_positions = frozenset(names.index(name) for name in self._static)
        self._donates = bool(donate)
        self._dispatch: Callable[P, R] | None = None
        self.compilations = []

        @functools.wraps(fn)
        def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            self._record(args, kwargs)
            return fn(*args, **kwargs)

        @functools.wraps(fn)
        def traced_apart(frame: Frame, arrays: list[Any]) -> R:
            args, kwargs = frame.fill(arrays)
            return cast(Any, traced)(
                *map(_unwrap, args), **{k: _unwrap(v) for k, v in kwargs.items()}
            )

        del traced_apart.__wrapped__  # its arguments are not those of `fn`
        self._jitted = jax.jit(
            traced, static_argnames=self._static or None, donate_argnames=tuple(donate) or None
        )
        self._jitted_apart = jax.jit(traced_apart, static_argnums=0)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the program for these arguments, building it if there is none yet."""
        try:
            return (self._dispatch or self._choose(args, kwargs))(*args, **kwargs)
        except (TypeError, ValueError, jax.errors.JaxRuntimeError) as error:
            if (failure := check.failure_in(error)) is not None:
                raise failure from None
            if self._dispatch is self._jitted and self._has_other_leaves(args, kwargs):
                return self._choose(args, kwargs)(*args, **kwargs)
            self._explain_unhashable(args, kwargs, error)
            raise

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Lowered:
        """Lower for these arguments, in which arrays may be `jax.ShapeDtypeStruct`s."""
        if self._has_other_leaves(args, kwargs):
            return self._jitted_apart.lower(*self._take_apart(args, kwargs))
        return self._jitted.lower(*args, **kwargs)

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Shapes of the result for these arguments; traced at most once for each kind of them."""
        return self._jitted.eval_shape(*args, **kwargs)

    def warm_up(self, *args: P.args, **kwargs: P.kwargs) -> float:
        """Compile from shapes alone, running nothing, and return the seconds it took.

        Arrays may be `jax.ShapeDtypeStruct`s. The next call with such arguments compiles nothing.
        """
        start = time.perf_counter()
        self.lower(*args, **kwargs).compile()
        return time.perf_counter() - start

    def explain(self) -> str:
        """Why the newest program was built, in words."""
        if not self.compilations:
            return f"{self._name}: never compiled"
        return self.compilations[-1].reason

    def _record(self, args: tuple, kwargs: dict) -> None:
        # Runs while JAX traces and never again, so that keeping books costs a call nothing.
        bound = self._parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        signature = Signature.of(bound.arguments, self._static)
        reason = explain(self._name, [c.signature for c in self.compilations], signature)
        self.compilations.append(Compilation(reason, signature))

    def _choose(self, args: tuple, kwargs: dict) -> Callable[P, R]:
        apart = self._has_other_leaves(args, kwargs)
        if apart and self._donates:
            raise TypeError(
                f"{self._name}: arguments with leaves that are not arrays cannot be donated; "
                "mark such fields with eqx.field(static=True)"
            )
        self._dispatch = self._call_apart if apart else self._jitted
        return self._dispatch

    def _call_apart(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._jitted_apart(*self._take_apart(args, kwargs))

    def _take_apart(self, args: tuple, kwargs: dict) -> tuple[Frame, list[Any]]:
        arrays, frame = take_apart(self._wrap(args, kwargs))
        return frame, arrays

    def _has_other_leaves(self, args: tuple, kwargs: dict) -> bool:
        leaves = jtu.tree_leaves(self._wrap(args, kwargs))
        return not all(is_traced(leaf) or isinstance(leaf, _Fixed) for leaf in leaves)

    def _wrap(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        fixed = self._static_positions
        return (
            tuple(_Fixed(a) if i in fixed else a for i, a in enumerate(args)),
            {k: _Fixed(v) if k in self._static else v for k, v in kwargs.items()},
        )

    def _explain_unhashable(self, args: tuple, kwargs: dict, cause: Exception) -> None:
        try:
            arguments = self._parameters.bind(*args, **kwargs).arguments
        except TypeError:
            return  # a wrong call: the original error says so best
        for name in self._static:
            if name in arguments and (where := unhashable_part(arguments[name], name)):
                raise UnhashableStaticError(
                    f"{self._name}: static argument {name!r} must be hashable, but {where}; "
                    "use tuples instead of lists and frozen dataclasses instead of dictionaries"
                ) from cause


@dataclasses.dataclass(frozen=True)
class _Fixed:
    """A static argument: one leaf, whatever it holds."""

    value: Any


def _unwrap(argument: Any) -> Any:
    return argument.value if isinstance(argument, _Fixed) else argument


def unhashable_part(value: Any, name: str = "value") -> str | None:
    """Say which part of `value` keeps it from being hashable, or `None` if it is.

    ```python
    from worldloom.compile import unhashable_part

    assert unhashable_part((1, "a")) is None
    assert unhashable_part((1, [2]), "sizes") == "sizes[1] is a list"
    ```
    """
    try:
        hash(value)
        return None
    except TypeError:
        pass
    parts: list[tuple[str, Any]] = []
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [(f"{name}.{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    elif isinstance(value, tuple):
        parts = [(f"{name}[{i}]", part) for i, part in enumerate(value)]
    for path, part in parts:
        if (where := unhashable_part(part, path)) is not None:
            return where
    if dataclasses.is_dataclass(value):
        return f"{name} is a {type(value).__name__}, a dataclass that is not frozen"
    return f"{name} is a {type(value).__name__}"
