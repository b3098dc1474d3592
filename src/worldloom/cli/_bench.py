"""`worldloom bench`."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from worldloom import __version__
from worldloom._errors import WorldloomError
from worldloom.cli._as_command import as_command
from worldloom.cli._command import Command, UsageError
from worldloom.cli._output import OutputFile, OutputFolder

if TYPE_CHECKING:
    from worldloom.bench import Findings, Growth, Record
    from worldloom.report import Report


class NoCheckoutError(WorldloomError, FileNotFoundError):
    """A command needs files that only a checkout of the sources has."""


@dataclasses.dataclass(frozen=True)
class Bench:
    """What `worldloom bench` does."""

    names: Annotated[
        tuple[str, ...],
        tyro.conf.arg(metavar="[GROUP | SCRIPT ...]", help_behavior_hint=""),
        tyro.conf.Positional,
    ] = ()
    """Groups of scripts (`--list` shows them), or single scripts. All of them by default."""

    rivals: bool = False
    """Also run what others wrote: installed once, each into an environment of its own."""

    quick: bool = False
    """Few rounds and small sizes: everything in under ten minutes on two quiet cores."""

    out: Annotated[Path, OutputFolder()] = Path("out/bench")
    """Folder for the JSON, the picture and the report page."""

    list: bool = False
    """Print the groups and their scripts, and run nothing."""

    read: tuple[Path, ...] = ()
    """Run nothing: take the figures from JSON files that earlier runs wrote. Of a script that is in
    several of them, those in the last count."""

    page: Annotated[Path | None, OutputFile()] = None
    """Also write the figures as a page of Markdown."""


def run(config: Bench) -> int:
    """Run the chosen scripts one after the other and show what they found; 1 if one failed."""
    if config.read:
        return _show(_read(config.read), config)
    groups = find_groups()
    if config.list:
        print("\n".join(f"{group}: {' '.join(scripts)}" for group, scripts in groups.items()))
        return 0
    chosen = _choose(config.names, groups)
    record = _run(chosen, quick=config.quick, rivals=config.rivals)
    return _show(record, config)


def find_groups() -> dict[str, dict[str, Path]]:
    """The benchmark scripts of a checkout by group: of the one we are in, or that we come from."""
    source = Path(__file__).resolve().parents[3]
    for root in (Path.cwd(), source):
        folder = root / "benchmarks"
        scripts = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
        if scripts:
            break
    else:
        raise NoCheckoutError(
            "there is no folder `benchmarks` here, and none beside the package. The benchmark "
            "scripts are part of the source tree, not of the installed package: run this in a "
            f"checkout of the repository, or unpack worldloom-{__version__}.tar.gz (`pip download "
            f"--no-deps --no-binary :all: worldloom=={__version__}`) and run it in that folder. "
            "Figures of earlier runs are shown anywhere: worldloom bench --read record.json"
        )
    groups: dict[str, dict[str, Path]] = {}
    for path in scripts:
        groups.setdefault(_group_of(path), {})[path.stem] = path
    return dict(sorted(groups.items()))


def _group_of(path: Path) -> str:
    """What a script says in its constant `GROUP`, without running it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="GROUP")], value=ast.Constant(value=str(group))):
                return group
    raise UsageError(f'{path} says no group: add a line such as GROUP = "engine"')


def _choose(names: tuple[str, ...], groups: dict[str, dict[str, Path]]) -> dict[str, Path]:
    scripts = {name: path for group in groups.values() for name, path in group.items()}
    chosen: dict[str, Path] = {}
    for name in names or groups:
        if name not in groups and name not in scripts:
            nearest = difflib.get_close_matches(name, [*groups, *scripts], n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise UsageError(
                f"no benchmark {name!r}.{hint} Groups: {', '.join(groups)}. "
                f"Scripts: {', '.join(scripts)}"
            )
        chosen |= groups.get(name) or {name: scripts[name]}
    return chosen


def _run(scripts: dict[str, Path], *, quick: bool, rivals: bool) -> Record:
    from worldloom import bench

    flags = ["--quick"] * quick + ["--alone"] * (not rivals)
    record = bench.Record(())
    waiting = list(scripts)
    try:
        for name, path in scripts.items():
            print(f"== {name}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                found = Path(folder) / "found.json"
                code = _exit_code([str(path), *flags, "--record", str(found)])
                if found.is_file():
                    record = record.joined([bench.Record.from_json(found)])
                if code != 0 or not found.is_file():
                    why = f"exit code {code}" if code else "it wrote no record"
                    record = dataclasses.replace(record, failed={**record.failed, name: why})
            waiting.remove(name)
    except KeyboardInterrupt:  # what was measured until now is shown and kept
        stopped = dict.fromkeys(waiting, "stopped before its end")
        record = dataclasses.replace(record, failed={**record.failed, **stopped})
    return record


def _exit_code(words: list[str]) -> int:
    """How a script ends. If we are stopped, so is it, with everything that it started."""
    with _terminate_is_interrupt():
        script = subprocess.Popen([sys.executable, *words], start_new_session=True)
        try:
            return script.wait()
        except KeyboardInterrupt:
            os.killpg(script.pid, signal.SIGKILL)
            script.wait()
            raise


@contextlib.contextmanager
def _terminate_is_interrupt() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _read(paths: tuple[Path, ...]) -> Record:
    from worldloom import bench

    for path in paths:
        if not path.is_file():
            raise UsageError(f"there is no file {str(path)!r}")
    first, *others = map(bench.Record.from_json, paths)
    return first.joined(others)


def _show(record: Record, config: Bench) -> int:
    from rich.console import Console

    from worldloom.store._files import write_whole

    console = Console()
    console.width = max(console.width, 120)
    console.print(record)
    if len(config.read) != 1:
        print(record.to_json(config.out / "record.json"))
    if record.findings:
        print(record.plot(config.out / "record.png"))
        print(_report(record, config).save(config.out / "report.html"))
    if config.page is not None:
        print(write_whole(config.page, record.markdown().encode()))
    if record.failed:
        print(f"worldloom bench: failed: {', '.join(record.failed)}", file=sys.stderr)
    return 1 if record.failed else 0


def _report(record: Record, config: Bench) -> Report:
    """The page: the largest ratio of each group on top, then everything, group by group."""
    from worldloom import report
    from worldloom.bench._overview import CASE_COLUMNS, case_rows, figure_row, without_empty
    from worldloom.bench._result import figure

    page = report.Report(
        "How fast",
        subtitle="Ours against others and against the naive version of the same code, in turn.",
        machine=record.findings[0].machine,
    )
    for findings in record.groups.values():
        naive = [
            (ratio.value, case)
            for found in findings
            for case in found.cases
            if case.naive and (ratio := case.ratio(case.naive)) is not None
        ]
        if naive:
            value, case = max(naive, key=lambda entry: entry[0])
            words = f"times {case.naive}"
            command = as_command("worldloom bench", config)
            page.headline(f"{figure(value)}x", words, detail=case.title, command=command)
    for group, findings in record.groups.items():
        page.section(group, _circumstances(findings))
        rows = [row for found in findings for case in found.cases for row in case_rows(case)]
        if rows:
            page.add(report.Table(*without_empty(CASE_COLUMNS, rows)))
        for found in findings:
            for case in found.cases:
                page.add(report.Benchmark(case.comparison, caption=case.title))
            for growth in found.growths:
                page.add(*_growth(growth))
            if found.figures:
                rows = [figure_row(one, found.quiet) for one in found.figures]
                headings = ["figure", "measured", "promised at most"]
                page.add(report.Table(*without_empty(headings, rows)))
    if record.failed:
        page.section("Failed", "\n".join(f"- `{n}`: {why}" for n, why in record.failed.items()))
    return page


def _growth(growth: Growth) -> tuple:
    from worldloom import report
    from worldloom.bench._overview import growth_columns, growth_rows, without_empty

    good = [name for name in growth.sizes if name not in growth.comparison.failures]
    timings = [growth.comparison[name] for name in good]
    chart = report.LineChart(
        {
            "speed": (
                [growth.sizes[name] for name in good],
                [timing.rate or 1 / timing.median for timing in timings],
            )
        },
        title=growth.comparison.title,
        x_label=growth.axis,
        y_label=f"{growth.comparison.unit}/s",
        x_scale="log",
    )
    return chart, report.Table(*without_empty(growth_columns(growth), growth_rows(growth)))


def _circumstances(findings: list[Findings]) -> str:
    lines = []
    for found in findings:
        words = ["python", f"benchmarks/{found.script}.py"]
        words += ["--quick"] * found.quick + ["--alone"] * found.alone
        lines.append(f"- `{' '.join(words)}`: {found.took:.0f} s, load {found.machine.load} before")
    return "\n".join(lines)


COMMAND = Command(
    "bench",
    "Measure how fast everything is: a table, a JSON file, a picture and a page.",
    Bench,
    run,
    examples=(
        ("worldloom bench --list", "groups and their scripts"),
        ("worldloom bench --quick", "everything, in under ten minutes"),
        ("worldloom bench arc --rivals", "one group, with what others wrote"),
        ("worldloom bench engine_overhead", "one script"),
    ),
)
