"""A record of benchmarks as a page of documentation: written from the numbers, never typed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from worldloom.bench._overview import (
    CASE_COLUMNS,
    case_rows,
    figure_row,
    growth_columns,
    growth_rows,
    without_empty,
)

if TYPE_CHECKING:
    from worldloom.bench._record import Case, Findings, Record


def page(record: Record) -> str:
    """The whole page."""
    return "\n".join(_lines(record)).rstrip() + "\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; a column without a single entry is left out."""
    names, body = without_empty(headings, rows)
    lines = [names, ["---"] * len(names)]
    lines += [[cell.replace("|", "\\|") for cell in row] for row in body]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def _lines(record: Record) -> Iterator[str]:
    yield "# Performance"
    yield ""
    yield "<!-- Written by `worldloom bench --page`. A change by hand fails a test. -->"
    yield ""
    yield "Ratios of work done in the same run, moments apart: the median over rounds, and in"
    yield "brackets its 95 % bootstrap interval. Above 1, ours is faster. Every call is waited for."
    yield ""
    yield from _circumstances(record)
    naive = [
        (case, found.script)
        for findings in record.groups.values()
        for found in findings
        for case in found.cases
        if case.naive
    ]
    if naive:
        yield "## Against the naive version of the same code"
        yield ""
        yield "What the same person would write first, measured in the same run."
        yield ""
        yield from table(
            (*CASE_COLUMNS, "script"),
            ((*_rows(case)[0], f"`{script}`") for case, script in naive),
        )
    for group, findings in record.groups.items():
        yield f"## {group}"
        yield ""
        yield from _group(findings)
    yield "## Again"
    yield ""
    yield "```bash"
    yield "worldloom bench --quick            # under ten minutes, nothing is installed"
    yield "worldloom bench --rivals           # everything; rivals get environments of their own"
    yield "```"
    yield ""
    yield "One script: `python benchmarks/NAME.py`, with `--quick`, `--alone` and `--rounds`."


def _rows(case: Case) -> list[tuple[str, ...]]:
    return list(case_rows(case))


def _group(findings: list[Findings]) -> Iterator[str]:
    for found in findings:
        rows = [
            row
            for case in found.cases
            for row in _rows(case)[1 if case.naive else 0 :]  # the naive one stands above
        ]
        if not (rows or found.growths or found.figures):
            continue
        yield f"### `{found.script}`"
        yield ""
        if rows:
            yield from table(CASE_COLUMNS, rows)
        for growth in found.growths:
            yield f"{growth.comparison.title}:"
            yield ""
            yield from table(growth_columns(growth), growth_rows(growth))
        if found.figures:
            rows = [figure_row(one, found.quiet) for one in found.figures]
            yield from table(("figure", "measured", "promised at most"), rows)
        failures = {
            f"{case.title}, {name}": why.strip().splitlines()[-1]
            for case in found.cases
            for name, why in case.comparison.failures.items()
        }
        for name, why in failures.items():
            yield f"- {name} failed: {why}"
        if failures:
            yield ""


def _circumstances(record: Record) -> Iterator[str]:
    """The machine, the versions, and everything that makes the figures less sure."""
    if not record.findings:
        return
    machine = record.findings[0].machine
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    loads = [f.machine.load for f in record.findings if f.machine.load is not None]
    rounds = [
        len(timing.wall)
        for found in record.findings
        for entry in (*found.cases, *found.growths)
        for timing in entry.comparison.timings
        if not timing.error
    ]
    days = sorted({found.created[:10] for found in record.findings})
    yield from table(
        ("", "measured on"),
        [
            ("processor", f"{machine.cpu}, {machine.cores} cores"),
            ("memory", f"{machine.memory / 2**30:.0f} GiB"),
            ("system, devices", f"{machine.system}; {machine.devices}"),
            ("versions", versions),
            ("day", " to ".join(dict.fromkeys((days[0], days[-1])))),
            ("rounds", _span(rounds)),
            ("load before each script", _span(loads)),
        ],
    )
    notes = []
    if quick := sorted(found.script for found in record.findings if found.quick):
        every = len(quick) == len(record.findings)
        which = "everything was" if every else ", ".join(f"`{n}`" for n in quick) + " was"
        notes.append(f"{which} measured with `--quick`: few rounds, small sizes")
    busy = [found for found in record.findings if not found.quiet]
    if busy:
        notes.append(
            f"the machine was busy before {len(busy)} of {len(record.findings)} scripts: go by the "
            "ratios of a CPU second, which that disturbs less"
        )
    if alone := [found for found in record.findings if found.alone]:
        notes.append(f"{len(alone)} scripts ran without rivals")
    if notes:
        text = "; ".join(notes) + "."
        yield "**How sure these figures are.** " + text[0].upper() + text[1:]
        yield ""
    for script, why in record.failed.items():
        yield f"- `{script}` failed: {why}"
    if record.failed:
        yield ""


def _span(values: list[int] | list[float]) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
