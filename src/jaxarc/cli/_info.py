"""`worldloom arc info`."""

from __future__ import annotations

import collections
import dataclasses
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from worldloom.cli import Command, UsageError

if TYPE_CHECKING:
    import numpy as np

    from jaxarc.data import Pair, RawTask, TaskSet

# Background of each colour, as ARC's own pages draw them; text is black or white on it.
PALETTE = (
    ("#000000", "white"),
    ("#0074D9", "white"),
    ("#FF4136", "white"),
    ("#2ECC40", "black"),
    ("#FFDC00", "black"),
    ("#AAAAAA", "black"),
    ("#F012BE", "white"),
    ("#FF851B", "black"),
    ("#7FDBFF", "black"),
    ("#870C25", "white"),
)
_ARROW = "   ->   "


@dataclasses.dataclass(frozen=True)
class Info:
    """What `worldloom arc info` does."""

    task: Annotated[str, tyro.conf.arg(metavar="TASK"), tyro.conf.Positional]
    """The id of a task, such as 007bbfb7, or a JSON file with one."""

    grids: bool = True
    """Also print the grids."""


def run(config: Info) -> None:
    """Print what there is to know about a task, for each data set that has it."""
    from rich.console import Console

    console = Console(highlight=False)
    for number, (tasks, task) in enumerate(find_task(config.task)):
        console.print(describe(tasks, task))
        if config.grids and number == 0:
            for name, pairs in (("demonstration", task.demos), ("test", task.tests)):
                for place, pair in enumerate(pairs):
                    console.print(f"\n{name} {place}")
                    console.print(side_by_side(pair, console.width), soft_wrap=True)
            console.print()


def find_task(name: str) -> list[tuple[TaskSet, RawTask]]:
    """A task by id, from each data set that has it, or from a file; else the nearest ids."""
    from jaxarc.data import load, load_file

    if name.endswith(".json"):
        if not Path(name).is_file():
            raise UsageError(f"there is no file {name!r}")
        tasks = load_file(name)
        return [(tasks, task) for task in tasks.tasks]
    sets = [load(f"{data}-{part}") for data in ("AGI1", "AGI2") for part in ("train", "eval")]
    found = [(tasks, tasks.tasks[tasks.index_of(name)]) for tasks in sets if name in tasks.ids]
    if not found:
        known = sorted({id for tasks in sets for id in tasks.ids})
        nearest = difflib.get_close_matches(name, known, n=5, cutoff=0.0)
        raise UsageError(f"no task {name!r} in ARC-AGI-1 or 2. The nearest: {', '.join(nearest)}")
    return found


def describe(tasks: TaskSet, task: RawTask) -> str:
    """The facts of a task, one a line."""
    pairs = task.demos + task.tests
    grids = [grid for pair in pairs for grid in (pair.input, pair.output) if grid is not None]
    colours = sorted({int(cell) for grid in grids for cell in grid.flat})
    hidden = sum(pair.output is None for pair in task.tests)
    lines = [
        f"{task.id}",
        f"  data set   {tasks.name}, version {tasks.version}, task {tasks.index_of(task.id)}",
        f"  pairs      {len(task.demos)} demonstrations, {len(task.tests)} tests"
        + (f", {hidden} of them without an answer" if hidden else ""),
        f"  colours    {', '.join(map(str, colours))}",
    ]
    sizes = collections.Counter(map(_sizes, pairs))
    lines += [f"  {'cells':<11}{size}, {count} times" for size, count in sizes.items()]
    return "\n".join(lines)


def _sizes(pair: Pair) -> str:
    size = lambda grid: "?" if grid is None else f"{grid.shape[0]} x {grid.shape[1]}"  # noqa: E731
    return f"{size(pair.input)} to {size(pair.output)}"


def side_by_side(pair: Pair, width: int = 80) -> Any:
    """The grids of a pair as coloured blocks with their digits, which say it without colour.

    A cell is two characters wide, or one where the pair is too wide for `width`.
    """
    from rich.text import Text

    left, right = pair.input, pair.output
    columns = left.shape[1] + (0 if right is None else right.shape[1])
    gap = " " if 2 * columns + len(_ARROW) <= width else ""
    text = Text()
    height = max(len(left), 0 if right is None else len(right))
    for row in range(height):
        text.append_text(_row(left, row, gap))
        text.append(_ARROW if row == 0 else " " * len(_ARROW))
        if right is not None:
            text.append_text(_row(right, row, gap))
        elif row == 0:
            text.append("hidden")
        text.append("\n" if row < height - 1 else "")
    return text


def _row(grid: np.ndarray, row: int, gap: str) -> Any:
    from rich.text import Text

    if row >= len(grid):
        return Text((" " + gap) * grid.shape[1])
    text = Text()
    for cell in grid[row]:
        background, ink = PALETTE[cell]
        text.append(f"{cell}{gap}", style=f"{ink} on {background}")
    return text


COMMAND = Command(
    "info",
    "Show a task: its data set, sizes, colours, pairs and grids.",
    Info,
    run,
    examples=(
        ("worldloom arc info 007bbfb7", "the first task of ARC-AGI-1"),
        ("worldloom arc info my-task.json --no-grids", "a file of your own, the facts alone"),
    ),
)
