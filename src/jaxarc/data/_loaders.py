"""Tasks one at a time: by number, when first needed, or from files mapped into memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, SupportsIndex, runtime_checkable

import numpy as np

from jaxarc.data._index import task_number
from jaxarc.data._parse import MAX_SIDE, Pair, RawTask, UnknownTaskError
from jaxarc.data._sources import load
from jaxarc.data._task import JaxArcTask, pad_task
from jaxarc.data._taskset import TaskSet
from worldloom import store
from worldloom.store._files import disk_errors


@runtime_checkable
class Parser(Protocol):
    """Anything that knows tasks by number and by id: a `TaskSet`, a `MemoryMappedTaskLoader`."""

    def get_task_by_index(self, index: int) -> JaxArcTask:
        """The task with this number."""
        ...

    def get_task_by_id(self, id: str) -> JaxArcTask:
        """The task with this id."""
        ...


@cache
def _named(name: str) -> TaskSet:
    return load(name)


def extract_task_id_from_index(
    index: SupportsIndex | Any, tasks: TaskSet | str = "AGI1-train"
) -> str:
    """The id of the task that a state's `task_index` means.

    A number means a task only together with the data set it was counted in: give that set, or
    its name, as `tasks`.

    ```python
    from jaxarc import extract_task_id_from_index

    assert extract_task_id_from_index(0) == "007bbfb7"
    ```
    """
    found = _named(tasks) if isinstance(tasks, str) else tasks
    return found.ids[task_number(index, len(found), found.name)]


class LazyTaskLoader:
    """A task that is fetched when `task_data` is first asked for, and can be let go of again.

    ```python
    from jaxarc import LazyTaskLoader, data

    lazy = LazyTaskLoader(0, data.load("AGI1-train"))
    task = lazy.task_data
    lazy.clear_cache()
    ```
    """

    def __init__(self, task_index: int, parser: Parser):
        self.task_index = task_index
        self.parser = parser
        self._loader = store.LazyLoader(lambda: parser.get_task_by_index(task_index))

    @property
    def task_data(self) -> JaxArcTask:
        """The task, fetched now if it is not there."""
        return self._loader.get()

    @property
    def loaded(self) -> bool:
        """Whether the task is in memory."""
        return self._loader.loaded

    def clear_cache(self) -> None:
        """Let go of the task; the next use fetches it again."""
        self._loader.drop()


class MemoryMappedTaskLoader:
    """Tasks in a folder of mapped arrays: a task that is asked for is read, the others are not.

    `write` makes the folder from any `TaskSet`. The files are opened at the first use.

    **Arguments:**

    - `data_path`: the folder.
    - `max_tasks`: know only the first so many tasks; all of them by default.

    ```python
    from jaxarc import MemoryMappedTaskLoader, data

    MemoryMappedTaskLoader.write("tasks", data.load("AGI1-train"))
    loader = MemoryMappedTaskLoader("tasks")
    task = loader.get_task("007bbfb7")
    first, third = loader.get_batch_tasks([0, 2])
    ```
    """

    def __init__(self, data_path: str | os.PathLike[str], max_tasks: int | None = None):
        if max_tasks is not None and max_tasks < 1:
            raise ValueError(f"max_tasks must be 1 or more, got {max_tasks}")
        self.data_path = Path(data_path)
        self.max_tasks = max_tasks
        self._files = store.LazyLoader(lambda: _Files(self.data_path, max_tasks))

    @staticmethod
    def write(data_path: str | os.PathLike[str], tasks: TaskSet) -> None:
        """Write tasks into a folder, which is made if it is not there."""
        folder = Path(data_path)
        with disk_errors("write", folder):
            folder.mkdir(parents=True, exist_ok=True)
        pairs = [pair for task in tasks.tasks for pair in task.demos + task.tests]
        cells = store.create_mapped(
            folder / "cells.npy", (len(pairs), 2, MAX_SIDE, MAX_SIDE), np.uint8
        )
        sizes = np.zeros((len(pairs), 2, 2), np.uint8)
        for number, pair in enumerate(pairs):
            for side, grid in enumerate((pair.input, pair.output)):
                if grid is not None:
                    cells[number, side, : grid.shape[0], : grid.shape[1]] = grid
                    sizes[number, side] = grid.shape
        cells.flush()
        index = {
            "ids": list(tasks.ids),
            "demos": np.array([len(task.demos) for task in tasks.tasks], np.int32),
            "tests": np.array([len(task.tests) for task in tasks.tasks], np.int32),
            "sizes": sizes,
        }
        # Last: a folder without an index is one that was not finished.
        store.save(
            folder / "index.loom", index, meta={"name": tasks.name, "version": tasks.version}
        )

    def __len__(self) -> int:
        return len(self._files.get().ids)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the tasks, in order."""
        return self._files.get().ids

    def get_task(self, task_id: int | str) -> JaxArcTask:
        """A task by number or by id, padded to 30 x 30 and to the most pairs of any task here."""
        if isinstance(task_id, str):
            return self.get_task_by_id(task_id)
        return self.get_task_by_index(task_id)

    def get_batch_tasks(self, task_ids: Sequence[int | str]) -> list[JaxArcTask]:
        """Several tasks, all of one shape."""
        return [self.get_task(task_id) for task_id in task_ids]

    def get_task_by_index(self, index: int) -> JaxArcTask:
        """The task with this number."""
        return self._files.get().task(index)

    def get_task_by_id(self, id: str) -> JaxArcTask:
        """The task with this id."""
        files = self._files.get()
        if id not in files.ids:
            raise UnknownTaskError(f"{self.data_path} has no task {id!r}")
        return files.task(files.ids.index(id))


class _Files:
    """The open folder."""

    def __init__(self, folder: Path, max_tasks: int | None):
        index = store.load(folder / "index.loom")
        self._cells = store.open_mapped(folder / "cells.npy")
        self._folder = folder
        self._demos, self._tests = index["demos"], index["tests"]
        self._sizes = index["sizes"]
        if len(self._sizes) != len(self._cells):
            raise store.DamagedError(
                f"{folder}: cells.npy holds {len(self._cells)} pairs, index.loom "
                f"{len(self._sizes)}: write the folder again"
            )
        ends = np.cumsum(self._demos + self._tests)
        self._first = np.concatenate([[0], ends[:-1]])
        self.ids: tuple[str, ...] = tuple(index["ids"][:max_tasks])

    def task(self, index: int) -> JaxArcTask:
        number = task_number(index, len(self.ids), str(self._folder))
        middle = self._first[number] + self._demos[number]
        demos = tuple(map(self._pair, range(self._first[number], middle)))
        tests = tuple(map(self._pair, range(middle, middle + self._tests[number])))
        return pad_task(
            RawTask(self.ids[number], demos, tests),
            index=number,
            height=MAX_SIDE,
            width=MAX_SIDE,
            max_train_pairs=int(self._demos.max()),
            max_test_pairs=int(self._tests.max()),
        )

    def _pair(self, place: int) -> Pair:
        (height, width), (out_height, out_width) = self._sizes[place].tolist()
        given, answer = self._cells[place]
        hidden = out_height == 0
        return Pair(given[:height, :width], None if hidden else answer[:out_height, :out_width])
