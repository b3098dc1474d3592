"""A named collection of tasks on the host: look up, filter, split, pack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jaxarc.data._buffer import TaskBuffer
from jaxarc.data._index import task_number
from jaxarc.data._parse import MAX_SIDE, RawTask, UnknownTaskError
from jaxarc.data._task import JaxArcTask, pad_task


def _grids(task: RawTask) -> Iterator[np.ndarray]:
    for pair in task.demos + task.tests:
        yield pair.input
        if pair.output is not None:
            yield pair.output


def largest_side(task: RawTask) -> int:
    """The longest side of any grid of a task."""
    return max(max(grid.shape) for grid in _grids(task))


def keeps_size(task: RawTask) -> bool:
    """Whether every known output is as large as its input."""
    return all(
        pair.output is None or pair.output.shape == pair.input.shape
        for pair in task.demos + task.tests
    )


SUBSETS: dict[str, Callable[[RawTask], bool]] = {
    "up-to-5x5": lambda task: largest_side(task) <= 5,
    "up-to-10x10": lambda task: largest_side(task) <= 10,
    "up-to-20x20": lambda task: largest_side(task) <= 20,
    "same-size": keeps_size,
    "new-size": lambda task: not keeps_size(task),
    "one-test": lambda task: len(task.tests) == 1,
}


@dataclass(frozen=True, eq=False)
class TaskSet:
    """Tasks in a fixed order, with the name and the version of the data they come from.

    ```python
    from jaxarc import data

    tasks = data.load("AGI1-train")
    small = tasks.subset("up-to-10x10")
    train, held_out = small.split(0.8, seed=0)
    task = tasks.get_task_by_id("007bbfb7")
    ```
    """

    tasks: tuple[RawTask, ...]
    name: str = "tasks"
    version: str = "unversioned"

    def __len__(self) -> int:
        return len(self.tasks)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the tasks, in order."""
        return tuple(task.id for task in self.tasks)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All tags in use, sorted."""
        return tuple(sorted({tag for task in self.tasks for tag in task.tags}))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {task.id: number for number, task in enumerate(self.tasks)}

    def index_of(self, id: str) -> int:
        """The number of the task with this id."""
        try:
            return self._index[id]
        except KeyError:
            close = [known for known in self.ids if known[:2] == id[:2]][:5]
            hint = f"; ids like it: {', '.join(close)}" if close else ""
            raise UnknownTaskError(f"{self.name} has no task {id!r}{hint}") from None

    def get_task_by_index(self, index: int) -> JaxArcTask:
        """The task with this number, padded to 30 x 30 and to the most pairs of any task here."""
        index = task_number(index, len(self), self.name)
        demos, tests = self._most_pairs
        return pad_task(
            self.tasks[index],
            index=index,
            height=MAX_SIDE,
            width=MAX_SIDE,
            max_train_pairs=demos,
            max_test_pairs=tests,
        )

    def get_task_by_id(self, id: str) -> JaxArcTask:
        """The task with this id, padded as `get_task_by_index` pads it."""
        return self.get_task_by_index(self.index_of(id))

    @cached_property
    def _most_pairs(self) -> tuple[int, int]:
        demos = max(len(task.demos) for task in self.tasks)
        return demos, max(len(task.tests) for task in self.tasks)

    def filter(
        self,
        *,
        ids: Iterable[str] | None = None,
        tag: str | None = None,
        max_height: int | None = None,
        max_width: int | None = None,
        where: Callable[[RawTask], bool] | None = None,
    ) -> TaskSet:
        """The tasks that meet every condition given; `ids` also sets their order."""
        tasks = self.tasks
        if ids is not None:
            tasks = tuple(self.tasks[self.index_of(id)] for id in ids)
        if tag is not None:
            if tag not in self.tags:
                known = ", ".join(self.tags) or "none"
                raise UnknownTaskError(f"{self.name} has no tag {tag!r}; its tags: {known}")
            tasks = tuple(task for task in tasks if tag in task.tags)
        if max_height is not None:
            tasks = tuple(t for t in tasks if all(g.shape[0] <= max_height for g in _grids(t)))
        if max_width is not None:
            tasks = tuple(t for t in tasks if all(g.shape[1] <= max_width for g in _grids(t)))
        if where is not None:
            tasks = tuple(task for task in tasks if where(task))
        return replace(self, tasks=tasks)

    def subset(self, name: str) -> TaskSet:
        """One of the named subsets in `SUBSETS`."""
        if name not in SUBSETS:
            raise UnknownTaskError(f"no subset {name!r}; there are: {', '.join(SUBSETS)}")
        return replace(self.filter(where=SUBSETS[name]), name=f"{self.name}/{name}")

    def split(self, fraction: float, *, seed: int) -> tuple[TaskSet, TaskSet]:
        """Two disjoint random parts that together are the whole, the first of this fraction."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"fraction must lie in 0 ... 1, got {fraction}")
        order = np.random.default_rng(seed).permutation(len(self.tasks))
        cut = round(fraction * len(self.tasks))
        parts = (sorted(order[:cut]), sorted(order[cut:]))
        first, second = (tuple(self.tasks[i] for i in part) for part in parts)
        return replace(self, tasks=first), replace(self, tasks=second)

    def buffer(self, *, height: int = MAX_SIDE, width: int = MAX_SIDE) -> TaskBuffer:
        """The tasks packed on the device, for a canvas of this size."""
        return TaskBuffer.from_tasks(self.tasks, height=height, width=width)
