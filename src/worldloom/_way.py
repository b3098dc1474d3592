"""Advice in errors: in the words of the door that the reader came through."""

from __future__ import annotations

import contextlib
import contextvars
import re
from collections.abc import Collection, Iterator

_flags: contextvars.ContextVar[frozenset[str] | None] = contextvars.ContextVar(
    "flags", default=None
)


@contextlib.contextmanager
def at_shell(flags: Collection[str]) -> Iterator[None]:
    """A block that runs a command which has these flags, such as `"--out"`."""
    token = _flags.set(frozenset(flags))
    try:
        yield
    finally:
        _flags.reset(token)


def way(python: str, shell: str = "") -> str:
    """Words about what can be done: `python` for a program, `shell` for a command.

    Of a command, flags are named that it has; where it lacks one of them, the text is empty.

    **Arguments:**

    - `python`: such as `"; give times=[...]"`, with the punctuation that joins it to the sentence.
    - `shell`: such as `"; give --times 0 1 ..."`.

    ```python
    from worldloom._way import at_shell, way

    with at_shell(["--times"]):
        assert way("give times=[...]", "give --times") == "give --times"
        assert way("give steps=...", "give --steps") == ""
    ```
    """
    flags = _flags.get()
    if flags is None:
        return python
    return shell if flags.issuperset(re.findall(r"--[a-z][a-z-]*", shell)) else ""
