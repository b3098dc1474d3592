"""A value that is made when it is first needed, and dropped when nobody needs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from worldloom.store._errors import ArgumentError

T = TypeVar("T")


class LazyLoader(Generic[T]):
    """Calls `func` at the first `get`, keeps the result, and drops it after a time of idling.

    There is no background thread: an idle value goes at the next use of any method or at
    `sweep`, whichever comes first. "Idle" is the time since the last `get`. Safe to use from
    several threads; `func` never runs twice at once. If it raises, nothing is kept and the
    next `get` tries again.

    **Arguments:**

    - `func`: makes the value.
    - `max_idle_time`: seconds without a `get` after which the value is dropped. `None`: never.
    - `clock`: a function that gives the time in seconds.

    ```python
    from worldloom import store

    loader = store.LazyLoader(lambda: list(range(1000)), max_idle_time=300.0)
    assert not loader.loaded
    assert loader.get()[5] == 5 and loader.loaded
    loader.drop()
    assert not loader.loaded
    ```
    """

    def __init__(
        self,
        func: Callable[[], T],
        *,
        max_idle_time: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        if max_idle_time is not None and not max_idle_time > 0:
            raise ArgumentError(f"max_idle_time is {max_idle_time}; it must be positive or None.")
        self._func = func
        self._max_idle_time = max_idle_time
        self._clock = clock
        self._value: tuple[T] | None = None
        self._last_used = 0.0
        self._lock = threading.Lock()
        self._loading = threading.RLock()

    def get(self) -> T:
        """The value, loaded now if it is not there."""
        if (kept := self._kept()) is not None:
            return kept[0]
        with self._loading:  # one thread loads, the others wait here for its result
            if (kept := self._kept()) is not None:
                return kept[0]
            value = self._func()
            with self._lock:
                self._value = (value,)
                self._last_used = self._clock()
            return value

    @property
    def loaded(self) -> bool:
        """Is the value in memory? Asking does not count as use."""
        self.sweep()
        with self._lock:
            return self._value is not None

    def drop(self) -> None:
        """Let go of the value now; whoever still holds it keeps it alive."""
        with self._lock:
            self._value = None

    def sweep(self) -> bool:
        """Drop the value if it idled too long; was it dropped?"""
        with self._lock:
            return self._expire()

    def _kept(self) -> tuple[T] | None:
        with self._lock:
            self._expire()
            if self._value is not None:
                self._last_used = self._clock()
            return self._value

    def _expire(self) -> bool:
        if self._value is None or self._max_idle_time is None:
            return False
        if self._clock() - self._last_used <= self._max_idle_time:
            return False
        self._value = None
        return True
