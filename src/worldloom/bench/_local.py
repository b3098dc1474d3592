"""Taking a sample of a function in this process."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax

from worldloom._errors import WorldloomError
from worldloom.compile import count_compiles


class UnfinishedWorkError(WorldloomError, RuntimeError):
    """A variant returned before its work was done, so that its times would be too short."""


class Sample(NamedTuple):
    """Some calls in a row: seconds on the wall, seconds of all cores, programs built."""

    wall: float
    cpu: float
    built: int


@runtime_checkable
class Subject(Protocol):
    """Something that can be timed: a function here, or a rival in another process."""

    @property
    def packages(self) -> Mapping[str, str]:
        """Versions of what is timed, where they are not this process's own."""
        ...

    def first(self) -> tuple[float, float | None]:
        """Call it for the first time; seconds of that, and seconds of them spent compiling."""
        ...

    def sample(self, repeats: int) -> Sample:
        """Time so many calls."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class LocalSubject:
    """A function of this process."""

    packages: Mapping[str, str] = {}

    def __init__(self, fn: Callable[..., Any], setup: Callable[[], Any] | None):
        self._fn = fn
        self._setup = setup

    def first(self) -> tuple[float, float | None]:
        """Call it once, and see that no array it made is still being computed."""
        with count_compiles() as compiles:
            wall = self._take(1)[0]
        pending = [array for array in jax.live_arrays() if not array.is_ready()]
        if pending:
            shape = pending[0].aval.str_short()
            raise UnfinishedWorkError(
                f"the variant returned while {len(pending)} of its arrays (one is {shape}) were "
                "still being computed: return them, so that they can be waited for"
            )
        return wall, compiles.seconds

    def sample(self, repeats: int) -> Sample:
        """Time so many calls, with the garbage collector off."""
        with count_compiles() as compiles, _no_garbage_collection():
            wall, cpu = self._take(repeats)
        return Sample(wall, cpu, compiles.compiled.total() + compiles.loaded.total())

    def close(self) -> None:
        """Nothing to let go of."""

    def _take(self, repeats: int) -> tuple[float, float]:
        if self._setup is not None:
            return self._take_with_setup(self._setup, repeats)
        fn, block = self._fn, jax.block_until_ready
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(repeats):
            block(fn())
        return time.perf_counter() - wall, time.process_time() - cpu

    def _take_with_setup(self, setup: Callable[[], Any], repeats: int) -> tuple[float, float]:
        wall_total = cpu_total = 0.0
        for _ in range(repeats):
            argument = jax.block_until_ready(setup())
            cpu, wall = time.process_time(), time.perf_counter()
            jax.block_until_ready(self._fn(argument))
            wall_total += time.perf_counter() - wall
            cpu_total += time.process_time() - cpu
        return wall_total, cpu_total


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
