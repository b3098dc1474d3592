"""A record of benchmarks as tables for the console and as one picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from worldloom._extras import import_extra
from worldloom.bench._draw import duration, magnitude
from worldloom.bench._result import figure
from worldloom.store._files import replacing

if TYPE_CHECKING:
    from rich.console import Group

    from worldloom.bench._record import Case, Figure, Growth, Record

CASE_COLUMNS = (
    "work",
    "ours",
    "against",
    "theirs",
    "ratio (95 %)",
    "a CPU second",
    "compile, ours / theirs",
    "memory, ours / theirs",
)


def speed(case: Case | Growth, name: str) -> str:
    """Items a second where the work is known, else the time of a call; or that it failed."""
    timing = case.comparison[name]
    if timing.error:
        return "failed"
    if timing.rate is None:
        return duration(timing.median)
    return f"{magnitude(timing.rate)} {case.comparison.unit}/s"


def case_rows(case: Case) -> Iterator[tuple[str, ...]]:
    """One row for each who is compared with us, under `CASE_COLUMNS`."""
    for other in case.others:
        ratio, busy = case.ratio(other), case.cpu_ratio(other)
        names = (case.ours, other)
        compiling = [case.compile_seconds(name) for name in names]
        memory = [case.memory.get(name) for name in names]
        yield (
            case.title,
            speed(case, case.ours),
            other + (" (naive)" if other == case.naive else ""),
            speed(case, other),
            "" if ratio is None else str(ratio),
            "" if busy is None else f"{figure(busy)}x",
            _pair([None if one is None else duration(one) for one in compiling]),
            _pair([None if one is None else size(one) for one in memory], case.memory_of),
        )


def growth_rows(growth: Growth) -> Iterator[tuple[str, ...]]:
    """Size, speed, speed in units of the first size, memory."""
    for name, at in growth.sizes.items():
        failed = name in growth.comparison.failures
        memory = growth.memory.get(name)
        yield (
            f"{at:,g}" if at < 1e6 else f"{at:,.0f}",
            speed(growth, name),
            "" if failed else str(growth.comparison.ratio(name)),
            "" if memory is None else size(memory),
        )


def growth_columns(growth: Growth) -> tuple[str, ...]:
    """Headings of `growth_rows`."""
    return growth.axis, "speed", "times the first", f"memory, {growth.memory_of}".strip(", ")


def figure_row(one: Figure, quiet: bool) -> tuple[str, ...]:
    """Name, number, and what was promised of it; a busy machine is no reason to call it broken."""
    held = ""
    if one.limit is not None:
        missed = "NOT KEPT" if quiet else "missed, on a busy machine"
        held = f"{figure(one.limit)}: {'kept' if one.value <= one.limit else missed}"
    return one.name, f"{figure(one.value)} {one.unit}".strip(), held


def without_empty(
    headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """A table without the columns that have not a single entry."""
    body = [list(row) for row in rows]
    used = [place for place, _ in enumerate(headings) if any(row[place] for row in body)]
    return [headings[p] for p in used], [[row[p] for p in used] for row in body]


def size(count: float | int) -> str:
    """Bytes as people write them: `2.30 KB`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= factor:
            return f"{figure(count / factor)} {unit}"
    return f"{count:.0f} B"


def tables(record: Record) -> Group:
    """One table a group, then growths and figures; below, what failed, and the machine."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def table(title: str, headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
        made = Table(box=box.SIMPLE_HEAD, title=Text(title, "bold"), title_justify="left")
        names, body = without_empty(headings, rows)
        for name in names:
            made.add_column(name, overflow="fold")
        for row in body:
            made.add_row(*map(Text, row))
        return made

    shown: list[Table | Text] = []
    for group, findings in record.groups.items():
        rows = [row for f in findings for case in f.cases for row in case_rows(case)]
        if rows:
            shown.append(table(group, CASE_COLUMNS, rows))
        for growth in (growth for f in findings for growth in f.growths):
            title = f"{group}: {growth.comparison.title}"
            shown.append(table(title, growth_columns(growth), list(growth_rows(growth))))
        figures = [figure_row(one, f.quiet) for f in findings for one in f.figures]
        if figures:
            shown.append(table(f"{group}: figures", ("", "measured", "promised at most"), figures))
    for script, why in record.failed.items():
        shown.append(Text(f"{script} failed: {why}", "red"))
    shown += [Text(str(found.machine), "dim") for found in record.findings[:1]]
    return Group(*shown)


def draw_overview(record: Record, path: Path) -> Path:
    """A panel of bars for each group, on a logarithmic scale, and one for each growth."""
    purpose = "drawing a record of benchmarks"
    figures = import_extra("matplotlib.figure", extra="plot", purpose=purpose)
    import_extra("matplotlib.backends.backend_agg", extra="plot", purpose=purpose)
    bars = {
        group: [
            (f"{case.title}\nagainst {other}", case.ratio(other))
            for found in findings
            for case in found.cases
            for other in case.others
            if case.ratio(other) is not None
        ]
        for group, findings in record.groups.items()
    }
    bars = {group: entries for group, entries in bars.items() if entries}
    growths = [growth for found in record.findings for growth in found.growths]
    heights = [0.8 + 0.42 * len(entries) for entries in bars.values()]
    heights += [2.6] * math.ceil(len(growths) / 2)
    canvas = figures.Figure(figsize=(11, max(sum(heights), 2)), layout="constrained")
    grid = canvas.add_gridspec(max(len(heights), 1), 2, height_ratios=heights or [1])
    for row, (group, entries) in enumerate(bars.items()):
        axes = canvas.add_subplot(grid[row, :])
        ratios = [ratio for _, ratio in entries if ratio is not None]
        values = [ratio.value for ratio in ratios]
        errors = [[r.value - r.low for r in ratios], [r.high - r.value for r in ratios]]
        colours = ["#3b6fd4" if value >= 1 else "#b0543c" for value in values]
        labels = [label for label, _ in entries]
        places = range(len(labels))
        lengths = [value - 1 for value in values]  # a bar begins at 1, where nothing is gained
        drawn = axes.barh(places, lengths, left=1, xerr=errors, color=colours, height=0.6)
        axes.set_yticks(places, labels, fontsize=7)
        axes.bar_label(drawn, [f"{figure(value)}x" for value in values], padding=6, fontsize=8)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda ratio, _: f"{ratio:g}x")
        axes.axvline(1, color="#444444", linewidth=0.8)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_title(f"{group}: ours, times the other", loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    for place, growth in enumerate(growths):
        axes = canvas.add_subplot(grid[len(bars) + place // 2, place % 2])
        good = [name for name in growth.sizes if name not in growth.comparison.failures]
        timings = [growth.comparison[name] for name in good]
        rates = [timing.rate or 1 / timing.median for timing in timings]
        axes.plot([growth.sizes[name] for name in good], rates, "o-", color="#3b6fd4")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
        axes.yaxis.set_major_formatter(lambda rate, _: magnitude(rate))
        axes.set_ylim(0, 1.1 * max(rates, default=1))
        axes.set_xlabel(growth.axis, fontsize=8)
        axes.set_ylabel(f"{growth.comparison.unit}/s", fontsize=8)
        axes.set_title(growth.comparison.title, loc="left", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    with replacing(path) as hidden:
        canvas.savefig(hidden, dpi=130, format="png")
    return path


def _pair(texts: list[str | None], of: str = "") -> str:
    if not any(texts):
        return ""
    words = " / ".join("-" if text is None else text for text in texts)
    return f"{words} ({of})" if of else words
