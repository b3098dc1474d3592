"""A comparison of `worldloom.bench` on a page."""

from __future__ import annotations

import dataclasses

from worldloom.bench import Comparison
from worldloom.bench._draw import duration, magnitude
from worldloom.report._chart import BarChart
from worldloom.report._section import Fragment, escape
from worldloom.report._text import Table


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """The bars and the table of a [`worldloom.bench.Comparison`][]. What failed is named.

    **Arguments:**

    - `comparison`: what was measured.
    - `caption`: a line below the bars.
    """

    comparison: Comparison
    caption: str = ""

    def render(self) -> Fragment:
        """Bars of the speed, and below them the times."""
        found = self.comparison
        done = [timing for timing in found.timings if not timing.error]
        comparable = not found[found.baseline].error
        parts = []
        if done and comparable:
            ratios = {timing.name: found.ratio(timing.name) for timing in done}
            chart = BarChart(
                {name: ratio.value for name, ratio in ratios.items()},
                title=f"Speed, times {found.baseline}",
                values=[f"{_short(ratio.value)}x" for ratio in ratios.values()],
                caption=self.caption,
                muted=(found.baseline,),
            )
            parts.append(chart.render())
        parts.append(self._table(comparable).render())
        for name, error in found.failures.items():
            reason = escape(error.strip().splitlines()[-1])
            parts.append(Fragment(f"<p><strong>{escape(name)}</strong> failed: {reason}</p>"))
        assets = tuple(asset for part in parts for asset in part.assets)
        return Fragment("".join(part.html for part in parts), assets)

    def _table(self, comparable: bool) -> Table:
        """One row a variant; a column that would be empty is left out."""
        found = self.comparison
        done = [timing for timing in found.timings if not timing.error]
        columns = {
            "variant": [timing.name for timing in done],
            "best": [duration(timing.best) for timing in done],
            "median": [duration(timing.median) for timing in done],
            "compile": [duration(t.compiling) if t.compiling else "" for t in done],
            f"{found.unit}/s": [magnitude(t.rate) if t.rate else "" for t in done],
            f"x {found.baseline}": [str(found.ratio(t.name)) if comparable else "" for t in done],
        }
        kept = {name: cells for name, cells in columns.items() if any(cells)}
        return Table(list(kept), list(zip(*kept.values(), strict=True)))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
