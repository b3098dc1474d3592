"""Counting compilations by the name of the function, as JAX itself reports them."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
from collections.abc import Iterator

import jax

from worldloom._errors import WorldloomError
from worldloom.compile._explain import reason_number, reasons_since

_COMPILED = "/jax/core/compile/backend_compile_duration"
_CACHE_HIT = "/jax/compilation_cache/cache_hits"


class RecompileError(WorldloomError, RuntimeError):
    """Something was compiled where nothing should be."""


@dataclasses.dataclass
class Compiles:
    """What was compiled while [`worldloom.count_compiles`][] watched."""

    compiled: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """How often each function was compiled, by name."""

    loaded: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """How often each was loaded from the persistent cache instead."""

    seconds: float = 0.0
    """Time spent on both."""

    @property
    def total(self) -> int:
        """Number of compilations, without the programs loaded from the persistent cache."""
        return self.compiled.total()


@contextlib.contextmanager
def count_compiles() -> Iterator[Compiles]:
    """Count what XLA compiles inside the `with` block.

    ```python
    import jax
    import jax.numpy as jnp
    import worldloom as wl

    double = jax.jit(lambda x: 2 * x)
    x = jnp.ones(3)
    double(x)
    with wl.count_compiles() as compiles:
        double(x)
    assert compiles.total == 0
    ```
    """
    result = Compiles()
    here = threading.local()

    def on_event(event: str, **_: str | int) -> None:
        if event == _CACHE_HIT:
            here.hit = True

    def on_duration(event: str, duration_secs: float, **details: str | int) -> None:
        if event == _COMPILED:
            # JAX reports a cache hit, on the same thread, just before the compilation it spared.
            hit, here.hit = getattr(here, "hit", False), False
            name = str(details.get("fun_name", "?"))
            (result.loaded if hit else result.compiled)[name] += 1
            result.seconds += duration_secs

    jax.monitoring.register_event_listener(on_event)
    jax.monitoring.register_event_duration_secs_listener(on_duration)
    try:
        yield result
    finally:
        jax.monitoring.unregister_event_duration_listener(on_duration)
        jax.monitoring.unregister_event_listener(on_event)


@contextlib.contextmanager
def no_compiles() -> Iterator[Compiles]:
    """Raise `RecompileError` if anything compiles inside the `with` block.

    Loading from the persistent cache counts: it means that a program was built anew. The error
    names the functions, and says why for those made with [`worldloom.compiled`][].
    """
    before = reason_number()
    with count_compiles() as compiles:
        yield compiles
    built = compiles.compiled + compiles.loaded
    if built:
        lines = [f"  {name}: {count}x" for name, count in built.most_common()]
        lines += [f"  {reason}" for reason in reasons_since(before)]
        raise RecompileError("expected no compilation, but these ran:\n" + "\n".join(lines))
