from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

import hypothesis
import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest

from worldloom import watch


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "metrics.jsonl"


def written(path, steps=range(5)):
    metrics = watch.JsonlMetrics(path)
    metrics.start({"learning_rate": 0.1, "layers": [1, 2]})
    for step in steps:
        metrics.log(step, {"loss": 1 / (1 + step), "count": step})
    return metrics


def test_there_and_back(path):
    metrics = written(path)
    metrics.artifact("weights", path.parent / "weights.npz")
    read = watch.read_metrics(path)
    assert not read.finished
    metrics.finish()
    read = watch.read_metrics(path)
    assert read.finished
    assert read.config == {"learning_rate": 0.1, "layers": [1, 2]}
    assert read.artifacts == {"weights": str(path.parent / "weights.npz")}
    steps, loss = read.series("loss")
    assert np.array_equal(steps, np.arange(5))
    assert np.array_equal(loss, 1 / (1 + np.arange(5)))
    assert read.rows[3] == {"loss": 0.25, "count": 3}


def test_it_is_a_metrics_writer_and_others_can_be():
    class Mine:
        def start(self, config): ...
        def log(self, step, metrics): ...
        def artifact(self, name, path): ...
        def finish(self): ...

    class NotYet:
        def start(self, config): ...

    assert isinstance(watch.JsonlMetrics("unused"), watch.MetricsWriter)
    assert isinstance(Mine(), watch.MetricsWriter)
    assert not isinstance(NotYet(), watch.MetricsWriter)


@hypothesis.given(
    st.lists(
        st.dictionaries(
            st.text(min_size=1, max_size=5),
            st.one_of(st.floats(), st.integers(-(2**40), 2**40), st.booleans()),
            max_size=3,
        ),
        max_size=5,
    )
)
def test_every_number_survives(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("metrics") / "m.jsonl"
    metrics = watch.JsonlMetrics(path)
    metrics.start({})
    for step, row in enumerate(rows):
        metrics.log(step, row)
    metrics.finish()
    read = watch.read_metrics(path).rows
    assert list(read) == list(range(len(rows)))
    for step, row in enumerate(rows):
        assert repr(read[step]) == repr(row)


def test_arrays_of_any_kind_become_numbers(path):
    metrics = watch.JsonlMetrics(path)
    metrics.start({})
    metrics.log(
        jnp.int32(2),
        {
            "jax": jnp.float32(0.5),
            "bfloat16": jnp.bfloat16(0.25),
            "numpy": np.int8(-3),
            "flag": np.bool_(True),
            "vector": jnp.array([1.0, jnp.nan, -jnp.inf]),
        },
    )
    row = watch.read_metrics(path).rows[2]
    assert row["jax"] == 0.5
    assert row["bfloat16"] == 0.25
    assert row["numpy"] == -3
    assert row["flag"] is True
    assert np.array_equal(row["vector"], [1, np.nan, -np.inf], equal_nan=True)


def test_the_file_is_strict_json(path):
    metrics = watch.JsonlMetrics(path)
    metrics.start({})
    metrics.log(0, {"a": math.nan, "b": math.inf, "c": -math.inf})

    def refuse(word):
        raise AssertionError(word)

    lines = [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
    assert lines[1]["metrics"] == {"a": "NaN", "b": "Infinity", "c": "-Infinity"}


@hypothesis.given(st.floats(0, 1))
def test_a_torn_last_line_is_dropped_and_the_rest_kept(tmp_path_factory, kept):
    path = tmp_path_factory.mktemp("metrics") / "m.jsonl"
    written(path)
    whole = path.read_bytes()
    cut = round(kept * len(whole))
    path.write_bytes(whole[:cut])
    lines = whole[:cut].count(b"\n")
    assert len(watch.read_metrics(path).rows) == max(0, lines - 1)
    metrics = watch.JsonlMetrics(path)
    metrics.start({"resumed": True})
    metrics.log(100, {"loss": 0.0})
    read = watch.read_metrics(path)
    assert read.config == {"resumed": True}
    assert len(read.rows) == max(0, lines - 1) + 1
    assert path.read_bytes().startswith(whole[:cut][: whole[:cut].rfind(b"\n") + 1])


def test_a_torn_line_longer_than_a_block_is_dropped(path):
    written(path)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind": "log", "step": 9' + b" " * 200_000)
    watch.JsonlMetrics(path).start({})
    assert path.read_bytes().startswith(whole)
    assert len(watch.read_metrics(path).rows) == 5


def test_steps_logged_again_after_resuming_replace_the_old_ones(path):
    written(path, range(5))
    resumed = watch.JsonlMetrics(path)
    resumed.start({"again": True})
    resumed.log(3, {"loss": -3.0})
    resumed.log(4, {"loss": -4.0})
    steps, loss = watch.read_metrics(path).series("loss")
    assert list(steps) == [0, 1, 2, 3, 4]
    assert list(loss[3:]) == [-3.0, -4.0]


KILLED = """
import sys
from worldloom.watch import JsonlMetrics
metrics = JsonlMetrics(sys.argv[1])
metrics.start({})
step = 0
while True:
    metrics.log(step, {"loss": float(step), "text": list(range(50))[step % 50]})
    step += 1
"""


def test_a_killed_writer_leaves_a_file_that_reads_and_goes_on(path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)])
    try:
        deadline = time.monotonic() + 60
        while not (path.exists() and path.stat().st_size > 100_000):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait(timeout=60)
    rows = watch.read_metrics(path).rows
    assert list(rows) == list(range(len(rows)))
    metrics = watch.JsonlMetrics(path)
    metrics.start({})
    metrics.log(len(rows), {"loss": 0.0})
    assert len(watch.read_metrics(path).rows) == len(rows) + 1


def test_many_threads_write_whole_lines(path):
    metrics = watch.JsonlMetrics(path)
    metrics.start({})

    def work(first):
        for step in range(first, first + 100):
            metrics.log(step, {"x": step})

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    metrics.finish()
    assert list(watch.read_metrics(path).rows) == list(range(400))


def test_what_cannot_be_written_is_named(path):
    metrics = watch.JsonlMetrics(path)
    with pytest.raises(watch.MetricsError, match="metric 'name' is 'grid'"):
        metrics.log(0, {"loss": 1.0, "name": "grid"})
    with pytest.raises(watch.MetricsError, match="metric 'z'"):
        metrics.log(0, {"z": np.complex64(1j)})
    for config in ({"f": print}, {"x": math.nan}):
        with pytest.raises(watch.MetricsError, match="config cannot be written"):
            metrics.start(config)
    assert not path.exists()


@pytest.mark.parametrize(
    "line", [b"garbage", b"[]", b"{}", b'{"kind": "other"}', b'{"kind": "log", "step": 1}', b"\xff"]
)
def test_what_cannot_be_read_is_named_with_its_line(path, line):
    written(path)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(watch.MetricsError, match="line 7: not a line of metrics"):
        watch.read_metrics(path)


def test_an_unknown_series_lists_the_known_ones(path):
    written(path)
    with pytest.raises(watch.MetricsError, match=r"'los'.*count, loss"):
        watch.read_metrics(path).series("los")
