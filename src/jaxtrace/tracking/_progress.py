"""Progress of a run, in the form that users give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import worldloom as wl


class Callback:
    """A function of the part that is done, as a progress meter."""

    def __init__(self, function: Callable[[float], Any]):
        self._function = function

    def start(self, done: int, length: int) -> None:
        """Note the length."""
        self._length = length

    def update(self, done: int) -> None:
        """Call the function."""
        self._function(done / self._length)

    def stop(self) -> None:
        """Nothing is left to do."""


def meter(progress: Any) -> Any:
    """What `worldloom.run` takes for progress, from what users give."""
    if progress is None:
        return False
    if isinstance(progress, bool | str | wl.Progress):
        return progress
    return Callback(progress)
