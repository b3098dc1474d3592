"""The one table that the demo ends with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich import box
from rich.table import Table

from worldloom import report
from worldloom.bench import Comparison
from worldloom.bench._draw import magnitude

_HEADINGS = ("system", "what ran", "a second", "against", "times faster", "what came out")


@dataclasses.dataclass(frozen=True)
class Line:
    """What a chapter of the demo did, how fast, and against what."""

    system: str
    work: str
    """How much was done: `1,024 worlds x 120 steps`."""
    comparison: Comparison
    """Of the system with the naive version of the same work, its baseline, in this run."""
    ours: str
    """Our name in the comparison."""
    found: str
    """What came out."""

    def cells(self) -> tuple[str, ...]:
        """The line as text, in the order of the headings."""
        ratio = self.comparison.ratio(self.ours)
        rate = self.comparison[self.ours].rate or 0.0
        return (
            self.system,
            self.work,
            f"{magnitude(rate)} {self.comparison.unit}",
            self.comparison.baseline,
            f"{ratio.value:,.0f}x ({ratio.low:,.0f}-{ratio.high:,.0f})",
            self.found,
        )


def for_console(lines: Sequence[Line]) -> Table:
    """All lines, to be printed."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in _HEADINGS:
        right = heading in ("a second", "times faster")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for line in lines:
        table.add_row(*line.cells())
    return table


def add_to(page: report.Report, lines: Sequence[Line]) -> None:
    """All lines, as a section of the page."""
    page.section(
        "All of it in one table",
        "Each system against the naive version of the same work, both measured in this run, in "
        "turn; in brackets the 95 % interval.",
    )
    page.add(report.Table(list(_HEADINGS), [list(line.cells()) for line in lines]))
