"""What a failed check raises, and how it gets out of XLA in one piece."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from worldloom._errors import WorldloomError


class CheckError(WorldloomError, RuntimeError):
    """A `require` did not hold.

    **Attributes:**

    - `message`: the words given to `require`.
    - `indices`: which worlds failed, one a row: outermost `vmap` first, then the axes of the
      predicate. A check of a single world has one row without entries.
    - `text`: everything, as printed.
    """

    def __init__(self, message: str, indices: Int[np.ndarray, "failed axes"], text: str):
        super().__init__(text)
        self.message = message
        self.indices = indices
        self.text = text

    @property
    def worlds(self) -> tuple[tuple[int, ...], ...]:
        """The same indices as tuples: `((1,), (3,))`."""
        return tuple(map(tuple, self.indices.tolist()))


class CheckUsageError(WorldloomError, ValueError):
    """`require` or a mode was given something that it cannot work with."""


# The first call of a compiled function raises the one, later calls the other.
_FROM_JAX = (jax.errors.JaxRuntimeError, ValueError)

# XLA flattens an exception of the host into a string. What it was made of waits here; the
# exception itself would keep the frames it passed through alive, and their arrays.
_recent: collections.deque[tuple[str, Any, str]] = collections.deque(maxlen=8)


def remember(error: CheckError) -> CheckError:
    """Keep what `error` says until `failure_in` asks for it."""
    _recent.append((error.message, error.indices, error.text))
    return error


def failure_in(error: BaseException) -> CheckError | None:
    """The failed check behind an error that JAX raised, or `None` if it was something else.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import check

    root = jax.jit(lambda x: jnp.sqrt(check.require(x >= 0, x, "no root of a negative number")))
    try:
        root(jnp.float32(-1.0)).block_until_ready()
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        assert check.failure_in(error).message == "no root of a negative number"
    ```
    """
    if isinstance(error, CheckError):
        return error
    if not isinstance(error, _FROM_JAX):
        return None
    text = str(error)
    for message, indices, known in reversed(_recent):
        if known in text:
            return CheckError(message, indices, known)
    return None


@contextlib.contextmanager
def reraise() -> Iterator[None]:
    """Raise failed checks as `CheckError`, without the pages that XLA wraps round them.

    Results may be computed after the call that asks for them returns: wait for them inside.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import check

    root = jax.jit(lambda x: jnp.sqrt(check.require(x >= 0, x, "no root of a negative number")))
    try:
        with check.reraise():
            root(jnp.float32(-1.0)).block_until_ready()
    except check.CheckError as error:
        print(error)
    ```
    """
    try:
        yield
    except _FROM_JAX as error:
        failure = failure_in(error)
        if failure is None:
            raise
        raise failure from None
