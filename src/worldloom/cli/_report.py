"""`worldloom report`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from worldloom.cli._command import Command, UsageError
from worldloom.cli._output import OutputFile


@dataclasses.dataclass(frozen=True)
class MakeReport:
    """What `worldloom report` does."""

    files: Annotated[
        tuple[Path, ...],
        tyro.conf.arg(metavar="[FILE ...]", help_behavior_hint=""),
        tyro.conf.Positional,
    ] = ()
    """Comparisons as JSON: what `bench.compare(...).to_json(FILE)` wrote."""

    out: Annotated[Path, OutputFile()] = Path("report.html")
    """The page to write."""

    title: str = "Benchmarks"
    """The heading of the page."""


def run(config: MakeReport) -> None:
    """Read every file, then write the page and print its path."""
    if not config.files:
        raise UsageError("give one or more JSON files, as in: worldloom report out/*.json")
    from worldloom import bench, report

    for file in config.files:
        if not file.is_file():
            raise UsageError(f"there is no file {str(file)!r}")
    comparisons = [bench.Comparison.from_json(file) for file in config.files]
    # The page tells of the machine that measured, which need not be this one.
    page = report.Report(config.title, machine=comparisons[0].machine)
    for file, comparison in zip(config.files, comparisons, strict=True):
        page.section(comparison.title or file.stem)
        page.add(
            report.Benchmark(comparison, caption=f"{comparison.created}, {comparison.machine}")
        )
    print(page.save(config.out))


COMMAND = Command(
    "report",
    "Make one self-contained HTML page from benchmark results.",
    MakeReport,
    run,
    examples=(
        ("worldloom report out/speed.json", "writes report.html"),
        ("worldloom report out/*.json --out speed.html --title 'This week'", "one page for all"),
    ),
)
