"""Progress of a run, drawn by the host between chunks."""

from __future__ import annotations

import time
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Something that shows how far a run has come. It costs the compiled program nothing."""

    def start(self, done: int, length: int) -> None:
        """The run begins, with `done` of `length` steps behind it."""
        ...

    def update(self, done: int) -> None:
        """So many steps are done."""
        ...

    def stop(self) -> None:
        """The run has ended, well or not."""
        ...


class NoProgress:
    """Show nothing."""

    def start(self, done: int, length: int) -> None:
        """Show nothing."""

    def update(self, done: int) -> None:
        """Show nothing."""

    def stop(self) -> None:
        """Show nothing."""


class ProgressBar:
    """A bar on the terminal with steps done, rate, and time left.

    **Arguments:**

    - `label`: what stands before the bar.
    - `delay`: seconds before it appears. A run shorter than that shows no bar.
    - `console`: a `rich.console.Console`; by default standard error.
    """

    def __init__(self, label: str = "run", *, delay: float = 0.5, console: Any = None):
        self._label = label
        self._delay = delay
        self._console = console
        self._bar: Any = None

    def start(self, done: int, length: int) -> None:
        """Note the time; the bar is drawn once `delay` has passed."""
        self._began = time.monotonic()
        self._first, self._length = done, length

    def update(self, done: int) -> None:
        """Draw the bar, no more than ten times a second."""
        seconds = time.monotonic() - self._began
        if self._bar is None and seconds < self._delay:
            return
        if self._bar is None:
            self._bar = self._draw()
        rate = (done - self._first) / seconds
        self._bar.update(self._task, completed=done, rate=f"{_short(rate)} steps/s")

    def stop(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _draw(self) -> Any:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console or Console(stderr=True),
            refresh_per_second=10,
        )
        bar.start()
        self._task = bar.add_task(self._label, total=self._length, completed=self._first, rate="")
        return bar


def _short(number: float) -> str:
    """Three digits and a unit: 12.3 k."""
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number:.3g}"
