"""Tasks one at a time, and all of them without compiling anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import data
from worldloom import store


@pytest.fixture(scope="module")
def tasks():
    return data.load("AGI1-train")


def check_same_task(one: data.JaxArcTask, other: data.JaxArcTask):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_ids_of_numbers(tasks):
    assert data.extract_task_id_from_index(0) == "007bbfb7"
    assert data.extract_task_id_from_index(jnp.int32(17)) == tasks.ids[17]
    assert data.extract_task_id_from_index(0, "AGI2-eval") == data.load("AGI2-eval").ids[0]
    assert data.extract_task_id_from_index(1, tasks.filter(ids=["a5313dff", "00d62c1b"])) == (
        "00d62c1b"
    )
    for wrong in (-1, 400):
        with pytest.raises(data.UnknownTaskError, match="tasks 0 to 399"):
            data.extract_task_id_from_index(wrong)


class Counting:
    """A parser that counts what it is asked for."""

    def __init__(self, tasks):
        self.tasks, self.calls = tasks, 0

    def get_task_by_index(self, index):
        self.calls += 1
        return self.tasks.get_task_by_index(index)

    def get_task_by_id(self, id):
        raise AssertionError(id)


def test_a_lazy_task_is_fetched_once_until_it_is_dropped(tasks):
    parser = Counting(tasks)
    lazy = data.LazyTaskLoader(7, parser)
    assert (parser.calls, lazy.loaded) == (0, False)
    check_same_task(lazy.task_data, tasks.get_task_by_index(7))
    assert lazy.task_data is lazy.task_data
    assert (parser.calls, lazy.loaded) == (1, True)
    lazy.clear_cache()
    assert not lazy.loaded
    lazy.task_data  # noqa: B018
    assert parser.calls == 2


@pytest.fixture(scope="module")
def folder(tasks, tmp_path_factory):
    path = tmp_path_factory.mktemp("mapped") / "tasks"
    data.MemoryMappedTaskLoader.write(path, tasks)
    return path


def test_mapped_tasks_are_the_tasks(tasks, folder):
    loader = data.MemoryMappedTaskLoader(folder)
    assert len(loader) == 400
    assert loader.ids == tasks.ids
    for number in (0, 1, 57, 399):
        check_same_task(loader.get_task(number), tasks.get_task_by_index(number))
    check_same_task(loader.get_task("00d62c1b"), tasks.get_task_by_id("00d62c1b"))
    batch = loader.get_batch_tasks([3, "00d62c1b"])
    check_same_task(batch[0], tasks.get_task_by_index(3))
    check_same_task(batch[1], tasks.get_task_by_id("00d62c1b"))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *batch)
    assert stacked.input_grids_examples.shape[0] == 2


def test_a_hidden_answer_stays_hidden(tmp_path: Path):
    hidden = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]]}]}
    (tmp_path / "own.json").write_text(json.dumps(hidden))
    own = data.load_file(tmp_path / "own.json")
    data.MemoryMappedTaskLoader.write(tmp_path / "mapped", own)
    loader = data.MemoryMappedTaskLoader(tmp_path / "mapped")
    check_same_task(loader.get_task(0), own.get_task_by_index(0))
    assert not np.asarray(loader.get_task(0).true_test_output_masks).any()


def test_tasks_that_are_not_there_are_refused(folder, tmp_path: Path):
    few = data.MemoryMappedTaskLoader(folder, max_tasks=10)
    assert len(few) == 10
    with pytest.raises(data.UnknownTaskError, match="tasks 0 to 9, no task 10"):
        few.get_task(10)
    with pytest.raises(data.UnknownTaskError, match="no task 'nothing'"):
        few.get_task("nothing")
    with pytest.raises(store.MissingError):
        data.MemoryMappedTaskLoader(tmp_path / "empty").get_task(0)
    with pytest.raises(ValueError, match="max_tasks must be 1 or more"):
        data.MemoryMappedTaskLoader(folder, max_tasks=0)


def test_a_folder_of_two_minds_is_refused(folder, tasks, tmp_path: Path):
    data.MemoryMappedTaskLoader.write(tmp_path, tasks.filter(ids=tasks.ids[:3]))
    (tmp_path / "cells.npy").write_bytes((folder / "cells.npy").read_bytes())
    with pytest.raises(store.DamagedError, match="write the folder again"):
        data.MemoryMappedTaskLoader(tmp_path).get_task(0)


def test_all_tasks_load_and_none_of_them_compiles_anything():
    """All 1,920 tasks: packed for the device, and each of them padded on its own."""
    code = """
import time
import jax
from jaxarc import data
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiled.append(event) if "backend_compile" in event else None)
jax.devices()
start = time.perf_counter()
sets = [data.load(name) for name in ("AGI1-train", "AGI1-eval", "AGI2-train", "AGI2-eval")]
jax.block_until_ready([tasks.buffer() for tasks in sets])
seconds = time.perf_counter() - start
packed = len(compiled)
for tasks in sets:
    tasks.get_task_by_index(0)
known = len(compiled)
for tasks in sets:
    for number in range(len(tasks)):
        tasks.get_task_by_index(number)
print(sum(map(len, sets)), packed, len(compiled) - known, seconds)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True
    )
    tasks, packed, per_task, seconds = run.stdout.split()
    print(f"1,920 tasks in {float(seconds):.2f} s")
    assert int(tasks) == 1920
    assert int(packed) == 0
    assert int(per_task) == 0
