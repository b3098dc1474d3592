"""A comparison as a table for the console and as a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from worldloom._extras import import_extra
from worldloom.bench._result import figure
from worldloom.store._files import replacing

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

    from worldloom.bench._result import Comparison, Timing


def draw_table(comparison: Comparison) -> Group:
    """One row a variant; below, what failed or was spoiled, and the machine."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    with_rate = any(timing.items is not None for timing in comparison.timings)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    if comparison.title:
        table.title, table.title_justify = Text(comparison.title, "bold"), "left"
    table.add_column("variant", overflow="fold", min_width=10)
    for heading in ("best", "median", "CPU", "compile"):
        table.add_column(heading, justify="right", no_wrap=True)
    if with_rate:
        table.add_column(f"{comparison.unit}\n/s", justify="right", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)

    notes = []
    for timing in comparison.timings:
        if timing.error:
            table.add_row(Text(timing.name), Text("failed", "red"))
            notes.append(Text(f"{timing.name} failed: {_last_line(timing.error)}", "red"))
            continue
        table.add_row(*_row(comparison, timing, with_rate))
        if timing.recompiled:
            message = f"{timing.name}: {timing.recompiled} programs were built while the clock ran"
            notes.append(Text(message, "yellow"))
    return Group(table, *notes, Text(str(comparison.machine), "dim"))


def draw_bars(comparison: Comparison, path: Path) -> Path:
    """Horizontal bars of the ratio, with its interval; logarithmic where ratios span decades."""
    purpose = "drawing a comparison"
    figures = import_extra("matplotlib.figure", extra="plot", purpose=purpose)
    import_extra("matplotlib.backends.backend_agg", extra="plot", purpose=purpose)
    timings = [timing for timing in comparison.timings if not timing.error]
    ratios = [comparison.ratio(timing.name) for timing in timings]

    canvas = figures.Figure(figsize=(8, 1.2 + 0.5 * len(timings)), layout="constrained")
    axes = canvas.add_subplot()
    values = [ratio.value for ratio in ratios]
    errors = [[r.value - r.low for r in ratios], [r.high - r.value for r in ratios]]
    colours = ["#8a8f98" if t.name == comparison.baseline else "#3b6fd4" for t in timings]
    bars = axes.barh([t.name for t in timings], values, xerr=errors, color=colours, height=0.6)
    labels = [
        f"{figure(ratio.value)}x   {duration(timing.median)}"
        for ratio, timing in zip(ratios, timings, strict=True)
    ]
    axes.bar_label(bars, labels, padding=6)
    axes.invert_yaxis()
    if max(values) / min(values) > 30:
        axes.set_xscale("log")
    axes.margins(x=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"speed, times {comparison.baseline}")
    if comparison.title:
        axes.set_title(comparison.title, loc="left")
    with replacing(path) as hidden:
        canvas.savefig(hidden, dpi=150, format="png")
    return path


def as_text(renderable: RenderableType, *, width: int = 120) -> str:
    """What the console would show, without colours."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def duration(seconds: float | int) -> str:
    """Three digits and the unit that fits: `12.3 us`, `4.56 ms`, `78.9 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{figure(seconds / size)} {unit}"
    return f"{figure(seconds / 1e-9)} ns"


def magnitude(value: float | int) -> str:
    """Three digits and a prefix: `12.3 k`, `4.56 M`, `7.89 G`."""
    for prefix, size in ((" T", 1e12), (" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if value >= size:
            return figure(value / size) + prefix
    return figure(value)


def _row(comparison: Comparison, timing: Timing, with_rate: bool) -> list[RenderableType]:
    from rich.text import Text

    cells: list[RenderableType] = [Text(timing.name)]
    cells += [duration(timing.best), duration(timing.median), duration(timing.busy)]
    cells.append(duration(timing.compiling) if timing.compiling else "")
    if with_rate:
        cells.append("" if timing.rate is None else magnitude(timing.rate))
    if timing.name == comparison.baseline:
        cells.append(Text("baseline", "dim"))
    elif comparison[comparison.baseline].error:
        cells.append("")
    else:
        cells.append(Text(str(comparison.ratio(timing.name)), "bold"))
    return cells


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]
