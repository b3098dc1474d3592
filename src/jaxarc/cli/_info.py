"""`worldloom arc info`."""

from __future__ import annotations

import collections
import dataclasses
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from worldloom.cli import Command, UsageError

if TYPE_CHECKING:
    from jaxarc.data import Pair, RawTask, TaskSet


@dataclasses.dataclass(frozen=True)
class Info:
    """What `worldloom arc info` does."""

    task: Annotated[str, tyro.conf.arg(metavar="TASK"), tyro.conf.Positional]
    """The id of a task, such as 007bbfb7, or a JSON file with one."""


def run(config: Info) -> None:
    """Print what there is to know about a task, for each data set that has it."""
    for tasks, task in find_task(config.task):
        print(describe(tasks, task))


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


COMMAND = Command(
    "info",
    "Tell about a task: its data set, sizes, colours and pairs.",
    Info,
    run,
    examples=(
        ("worldloom arc info 007bbfb7", "the first task of ARC-AGI-1"),
        ("worldloom arc info my-task.json", "a file of your own"),
    ),
)
