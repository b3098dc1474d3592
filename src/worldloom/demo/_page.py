"""The page of the demo."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import numpy as np

from worldloom import report
from worldloom.batch import Plan
from worldloom.bench import Comparison
from worldloom.bench._draw import magnitude
from worldloom.demo._world import LEVELS, SUBSTEPS
from worldloom.loop import RunResult

_COLOURS = ["#070b16", "#0d2746", "#135b6e", "#2c9c7c", "#eec35c", "#fff3d4"]
_NAIVE = "jit, one by one"
_OURS = "worldloom.run"


@dataclasses.dataclass(frozen=True)
class Findings:
    """What the demo found out."""

    side: int
    steps: int
    devices: int
    result: RunResult
    comparison: Comparison
    plan: Plan
    final: np.ndarray
    """Every world at the end, as shades."""
    built: int
    """Programs that were compiled, not loaded from the cache."""

    @property
    def worlds(self) -> int:
        """How many there are."""
        return self.side**2


def make_page(found: Findings, out: Path) -> report.Report:
    """Figures, replay, map, measurement, and the commands for a folder `out`."""
    commands = commands_of(out)
    command, _ = commands[0]
    seconds = found.result.run_seconds
    page = report.Report(
        f"{found.worlds:,} worlds, one program",
        subtitle=(
            "Two chemicals react and spread on a small grid: food, and something that eats it. "
            f"Worldloom took {found.worlds:,} such worlds, each with a recipe of its own, through "
            f"{found.steps:,} steps in **{seconds:.1f} seconds**."
        ),
    )
    _add_headlines(page, found, command)
    _add_replay(page, found)
    _add_map(page, found)
    _add_speed(page, found)
    _add_fates(page, found)
    page.section("Run it yourself", "Every figure on this page comes from these commands.")
    page.add(report.Commands(commands))
    return page


def commands_of(out: Path) -> list[tuple[str, str]]:
    """The commands that make the page in a folder, the first of them, and more."""
    return [
        (
            shlex.join(["worldloom", "demo", "--out", str(out)]),
            "Runs the worlds, measures, writes this page and `speed.json`.",
        ),
        (
            shlex.join(["worldloom", "report", str(out / "speed.json")]),
            "A page of the measurement alone.",
        ),
        ("worldloom doctor", "Checks this machine, and shows what is in the cache."),
    ]


def _add_headlines(page: report.Report, found: Findings, command: str) -> None:
    result, comparison = found.result, found.comparison
    rate = found.worlds * found.steps / result.run_seconds
    ratio = comparison.ratio(_OURS)
    page.headline(
        magnitude(rate),
        "world-steps a second",
        detail=f"{found.worlds:,} worlds of 32 x 32 cells on {found.devices} cores; records, "
        "progress and all",
        command=command,
    )
    page.headline(
        f"{ratio.value:.0f}x",
        "the speed of a Python loop over worlds",
        detail=f"the same step under `jax.jit`, measured in turn; 95 % interval {ratio.low:.0f} "
        f"to {ratio.high:.0f}",
        command=command,
    )
    page.headline(
        f"{found.plan.bytes_per_item / 2**10:.3g} KiB",
        "of memory a world",
        detail=f"known before it runs: {found.plan.largest:,} worlds would fit into "
        f"{found.plan.memory / 2**30:.0f} GiB",
        command=command,
    )
    if found.built:
        words, detail = "to compile, once", "the next start loads what this one compiled"
    else:
        words, detail = "to load the program", "nothing was compiled: an earlier start did it"
    page.headline(
        f"{result.compile_seconds:.2f} s",
        words,
        detail=f"{detail}; one program serves any number of steps",
        command=command,
    )


def _add_replay(page: report.Report, found: Findings) -> None:
    pictures = np.asarray(found.result.records["pictures"])
    frames = report.mosaic(pictures, columns=8, gap=2)
    page.section(
        "Watch",
        f"{pictures.shape[1]} of the worlds, from the first patches to what became of them. "
        "They differ in two numbers only: how fast food flows in, and how fast the eaters die.",
    )
    page.add(
        report.Replay(
            frames,
            alt=f"{pictures.shape[1]} small worlds growing spots, stripes and mazes",
            palette=report.gradient(_COLOURS, size=LEVELS),
            labels=[f"step {SUBSTEPS * index:,}" for index in range(len(frames))],
            caption="Feed falls from row to row, kill rises to the right. Space plays and pauses, "
            "the arrow keys step.",
            autoplay=True,
            smooth=True,
            fps=15,
            width=1088,
        )
    )


def _add_map(page: report.Report, found: Findings) -> None:
    sheet = report.mosaic(found.final[None], columns=found.side, gap=0)[0]
    page.section(
        "The map",
        f"All {found.worlds:,} worlds after {found.steps:,} steps, each at the place of its "
        "recipe: **kill** rises to the right, **feed** upwards. Between the dark, where everything "
        "died, and the even colour, where the two chemicals found a balance, lies the crescent of "
        "patterns.",
    )
    page.add(
        report.Picture(
            sheet,
            alt="A map of all worlds: dark to the right, one colour to the left, and between them "
            "a crescent of dots, worms and mazes",
            palette=report.gradient(_COLOURS, size=LEVELS),
            caption="Kill rate 0.050 to 0.0665, feed rate 0.014 to 0.062.",
        )
    )


def _add_speed(page: report.Report, found: Findings) -> None:
    page.section(
        "Why it is fast",
        "The chemistry is written once, for one world. What differs is who calls it.\n\n"
        "- **One by one**: Python starts every step of every world, and that costs more than the "
        "step.\n"
        "- **`jit(vmap)`**: all worlds take a step together, but each step takes all of them "
        "through memory.\n"
        f"- **`worldloom.run`**: one program holds the loop. On every core a world takes "
        f"{SUBSTEPS} steps while it is in the cache, then the next; Python looks in a few times a "
        "second to take the pictures away.",
    )
    page.add(
        report.Benchmark(
            found.comparison,
            caption=f"One item is one step of one world. Median of "
            f"{len(found.comparison[_NAIVE].wall)} rounds that take turns.",
        )
    )


def _add_fates(page: report.Report, found: Findings) -> None:
    counts = np.asarray(found.result.records["fates"])
    steps = SUBSTEPS * np.arange(len(counts))
    names = ("a pattern", "the same everywhere", "empty")
    page.section("What became of them")
    page.add(
        report.LineChart(
            {name: (steps, counts[:, i]) for i, name in enumerate(names)},
            title="Worlds by what they look like",
            x_label="step",
            y_label="worlds",
            caption="Recorded inside the loop: three numbers a frame instead of all the worlds.",
        )
    )
