"""Charts drawn as SVG and HTML: no library, crisp at any size, right in dark and light."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from worldloom.report._axis import Axis, Box, tick_label
from worldloom.report._section import Asset, Fragment, ReportError, caption, escape

_SERIES_COLOURS = 6
_POINTS_LIMIT = 800


@dataclasses.dataclass(frozen=True)
class LineChart:
    """Lines over a common axis.

    **Arguments:**

    - `series`: for each line its heights, or a pair of places and heights, by name.
    - `title`: what the chart shows.
    - `x_label`, `y_label`: what the axes count.
    - `x_scale`, `y_scale`: `"linear"` or `"log"`.
    - `caption`: a line below.

    ```python
    from worldloom import report

    chart = report.LineChart({"loss": [3.0, 1.0, 0.5]}, title="Training", x_label="epoch")
    assert "<svg" in chart.render().html
    ```
    """

    series: Mapping[str, Any]
    title: str
    x_label: str = ""
    y_label: str = ""
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    caption: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.series) <= _SERIES_COLOURS:
            raise ReportError(
                f"LineChart: {len(self.series)} series; expected 1 to {_SERIES_COLOURS}"
            )
        for name, data in self.series.items():
            x, y = _places(data)
            if x.ndim != 1 or x.shape != y.shape or not x.size:
                raise ReportError(
                    f"LineChart: series {name!r} has places {list(x.shape)} and heights "
                    f"{list(y.shape)}; expected two equally long lists, not empty"
                )
            for scale, values, axis in ((self.x_scale, x, "x"), (self.y_scale, y, "y")):
                if scale == "log" and np.any(values <= 0):
                    raise ReportError(
                        f"LineChart: series {name!r} has {axis} = {values.min():g}, which has no "
                        "place on a log scale"
                    )

    def render(self) -> Fragment:
        """Two drawings, one for wide and one for narrow screens, of which one is shown."""
        lines = {name: _thin(*_places(data)) for name, data in self.series.items()}
        legend = "".join(
            f'<li class="series-{number}">{escape(name)}</li>' for number, name in enumerate(lines)
        )
        legend = f'<ul class="legend">{legend}</ul>' if len(lines) > 1 else ""
        drawings = self._draw(lines, 760, 340, "wide") + self._draw(lines, 380, 290, "narrow")
        return Fragment(
            f'<figure class="chart"><h4>{escape(self.title)}</h4>{legend}{drawings}'
            f"{caption(self.caption)}</figure>",
            (Asset.load("chart.css"),),
        )

    def _draw(self, lines: dict, width: int, height: int, size: str) -> str:
        xs = np.concatenate([x for x, _ in lines.values()])
        ys = np.concatenate([y for _, y in lines.values()])
        x_axis = Axis.fit(xs, self.x_scale, wanted=8 if size == "wide" else 4, padded=False)
        y_axis = Axis.fit(ys, self.y_scale, wanted=5, padded=True)
        left = 16 + 7.2 * max(len(label) for _, label in y_axis.ticks)
        box = Box(left, width - 14, height - (46 if self.x_label else 28), 26)
        parts = [_grid(x_axis, y_axis, box)]
        if self.y_label:
            parts.append(f'<text class="label" x="0" y="12">{escape(self.y_label)}</text>')
        if self.x_label:
            middle = (box.left + box.right) / 2
            text = f'<text class="label" text-anchor="middle" x="{middle:.1f}" y="{height - 4}">'
            parts.append(f"{text}{escape(self.x_label)}</text>")
        for number, (x, y) in enumerate(lines.values()):
            points = zip(box.across(x_axis.place(x)), box.up(y_axis.place(y)), strict=True)
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points if math.isfinite(py))
            parts.append(f'<polyline class="series-{number}" points="{path}"/>')
        about = f"{self.title}. {self._summary(lines)}"
        return (
            f'<svg class="{size}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(about)}">{"".join(parts)}</svg>'
        )

    def _summary(self, lines: dict) -> str:
        told = [f"{name} goes from {y[0]:.3g} to {y[-1]:.3g}" for name, (_, y) in lines.items()]
        return "; ".join(told) + "."


@dataclasses.dataclass(frozen=True)
class BarChart:
    """Horizontal bars.

    **Arguments:**

    - `bars`: the length of each bar by name; zero or more.
    - `title`: what the chart shows.
    - `values`: what to write at each bar; its length by default.
    - `caption`: a line below.
    - `muted`: names of bars to draw in grey, such as a baseline.
    """

    bars: Mapping[str, float | int]
    title: str
    values: Sequence[str] | None = None
    caption: str = ""
    muted: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.bars:
            raise ReportError("BarChart: bars is empty; give at least one")
        for name, length in self.bars.items():
            if not (length >= 0 and math.isfinite(length)):
                raise ReportError(f"BarChart: bar {name!r} is {length}; expected zero or more")
        if self.values is not None and len(self.values) != len(self.bars):
            raise ReportError(f"BarChart: {len(self.values)} values for {len(self.bars)} bars")

    def render(self) -> Fragment:
        """A list whose items are bars, so that it reads well without seeing it."""
        longest = max(self.bars.values()) or 1
        values = self.values or [tick_label(length) for length in self.bars.values()]
        items = "".join(
            f"<li{' class=muted' if name in self.muted else ''}><span>{escape(name)}</span>"
            f'<i style="--share: {length / longest:.5f}"></i><b>{escape(value)}</b></li>'
            for (name, length), value in zip(self.bars.items(), values, strict=True)
        )
        return Fragment(
            f'<figure class="chart"><h4>{escape(self.title)}</h4><ul class="bars">{items}</ul>'
            f"{caption(self.caption)}</figure>",
            (Asset.load("chart.css"),),
        )


def _grid(x_axis: Axis, y_axis: Axis, box: Box) -> str:
    parts = []
    for value, label in y_axis.ticks:
        y = box.up(float(y_axis.place(value)))
        parts.append(
            f'<line x1="{box.left:.1f}" x2="{box.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text text-anchor="end" x="{box.left - 8:.1f}" y="{y + 4:.1f}">{label}</text>'
        )
    for value, label in x_axis.ticks:
        x = box.across(float(x_axis.place(value)))
        parts.append(
            f'<text text-anchor="middle" x="{x:.1f}" y="{box.bottom + 19:.1f}">{label}</text>'
        )
    return f'<g class="grid">{"".join(parts)}</g>'


def _places(data: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(data, tuple) and len(data) == 2:
        return np.asarray(data[0], float), np.asarray(data[1], float)
    y = np.asarray(data, float)
    return np.arange(len(y), dtype=float), y


def _thin(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most so many points as a screen can show; the lowest and highest of each run are kept."""
    if len(x) <= _POINTS_LIMIT:
        return x, y
    kept = {0, len(x) - 1}
    for run in np.array_split(np.arange(len(x)), _POINTS_LIMIT // 2):
        kept |= {int(run[np.argmin(y[run])]), int(run[np.argmax(y[run])])}
    order = np.array(sorted(kept))
    return x[order], y[order]
