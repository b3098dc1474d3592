"""A batch size that gives way when memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax

from worldloom.batch._errors import BatchError, BatchMemoryError

Result = TypeVar("Result")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on the host or on a device."""
    return isinstance(error, MemoryError) or (
        isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)
    )


class AdaptiveBatch:
    """A batch size that is halved when memory runs out, and grows back after successes.

    Sizes are powers of two, so that few programs are compiled. After a failure the next larger
    size is tried again when `patience` batches have succeeded, and each further failure doubles
    that number: a size that never fits is tried less and less.

    **Arguments:**

    - `start`: the size to begin with, rounded down to a power of two.
    - `largest`: the size never to exceed; `start` if not given.
    - `patience`: batches that must succeed before the size is doubled.

    Give it to `chunked_map`, or use it in a loop of your own:

    ```python
    from worldloom import batch

    sizes = batch.AdaptiveBatch(1024)
    size, result = sizes.attempt(lambda size: list(range(size)))
    assert size == len(result) == 1024
    ```
    """

    def __init__(self, start: int, *, largest: int | None = None, patience: int = 8) -> None:
        largest = start if largest is None else largest
        if not 1 <= start <= largest or patience < 1:
            raise BatchError(
                "expected 1 <= start <= largest and patience from 1 up, got "
                f"start={start}, largest={largest}, patience={patience}."
            )
        self._size = _power_of_two(start)
        self._largest = _power_of_two(largest)
        self._patience = patience
        self._successes = 0
        self._failures = 0

    @property
    def size(self) -> int:
        """The size of the next batch."""
        return self._size

    @property
    def failures(self) -> int:
        """How often memory ran out so far."""
        return self._failures

    def attempt(
        self, fn: Callable[[int], Result], *, limit: int | None = None
    ) -> tuple[int, Result]:
        """The size that fitted, and `fn(size)`, computed to the end.

        `limit` bounds the size of this one batch, for the last rows of a data set. When a batch
        of one does not fit either, it raises `BatchMemoryError`; other errors pass through.
        """
        while True:
            size = self._size if limit is None else min(self._size, limit)
            try:
                result = jax.block_until_ready(fn(size))
            except (jax.errors.JaxRuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if size == 1:
                    raise BatchMemoryError(
                        f"a batch of 1 does not fit into memory: {error}"
                    ) from error
                self._shrink(size)
                continue
            self._succeed()
            return size, result

    def _shrink(self, failed: int) -> None:
        self._size = _power_of_two(failed - 1)
        self._failures += 1
        self._successes = 0

    def _succeed(self) -> None:
        self._successes += 1
        wait = self._patience * 2 ** max(self._failures - 1, 0)
        if self._size < self._largest and self._successes >= wait:
            self._size *= 2
            self._successes = 0


def _power_of_two(number: int) -> int:
    """The largest power of two that is not larger than `number`."""
    return 1 << (number.bit_length() - 1)
