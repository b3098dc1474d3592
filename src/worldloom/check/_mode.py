"""What happens when a check fails: one word, for the whole process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from worldloom.check._errors import CheckUsageError
from worldloom.check._host import wait_for_programs

MODES = ("raise", "nan", "breakpoint", "off")


def _valid(mode: str, source: str) -> str:
    if mode not in MODES:
        raise CheckUsageError(
            f"{source} is {mode!r}; expected one of {', '.join(map(repr, MODES))}"
        )
    return mode


# One cell, not one a thread: checks fail on threads of XLA, which belong to nobody.
_current = [_valid(os.environ.get("EQX_ON_ERROR", "raise"), "environment variable EQX_ON_ERROR")]


def mode() -> str:
    """The mode in force: `"raise"`, `"nan"`, `"breakpoint"` or `"off"`.

    At the start of a process it is that of the environment variable `EQX_ON_ERROR`.
    """
    return _current[0]


def set_mode(mode: str) -> None:
    """Change what failed checks do from now on, in programs already compiled too.

    Waits for programs that are running, so that they end in the mode they were started in.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import check

    root = jax.jit(lambda x: jnp.sqrt(check.require(x >= 0, x, "no root of a negative number")))
    check.set_mode("nan")
    assert jnp.isnan(root(jnp.float32(-1.0)))
    check.set_mode("raise")
    ```
    """
    _valid(mode, "mode")
    wait_for_programs()
    _current[0] = mode


@contextlib.contextmanager
def using(mode: str) -> Iterator[None]:
    """`set_mode` for the length of a `with` block.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import check

    @jax.vmap
    def root(x):
        return jnp.sqrt(check.require(x >= 0, x, "no root of a negative number"))

    with check.using("nan"):
        print(root(jnp.array([4.0, -1.0, 9.0])))  # [ 2. nan  3.]
    ```
    """
    before = _current[0]
    set_mode(mode)
    try:
        yield
    finally:
        set_mode(before)
