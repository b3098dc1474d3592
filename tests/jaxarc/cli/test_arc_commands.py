from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jaxarc import Environment
from worldloom.cli import main

TASK = {
    "train": [{"input": [[1, 2], [3, 4]], "output": [[5]]}],
    "test": [{"input": [[0] * 30] * 3}],
}


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def test_help_does_not_wait_for_jax():
    code = (
        "import sys; from worldloom.cli import main; code = main(['arc', '--help']); "
        "code += main(['arc', 'rollout', '--help']); assert 'jax' not in sys.modules; "
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "rollout" in done.stdout
    assert "info" in done.stdout


def rollout(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    assert main(["arc", "rollout", *words]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    return {"head": head} | {row[2:15].strip(): row[15:] for row in rows}


def test_rollout_prints_speed_outcomes_and_memory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    recorded, original = [], Environment.rollout

    def with_records(self, *args, sink, progress, **options):
        recorded.append(original(self, *args, **options)[1])
        return original(self, *args, sink=sink, progress=progress, **options)

    monkeypatch.setattr(Environment, "rollout", with_records)
    words = ("--worlds", "32", "--steps", "25", "--seed", "3")
    shown = rollout(capsys, *words)
    assert "400 tasks, 32 worlds x 25 steps = 800 steps, point actions, seed 3" in shown["head"]
    assert re.fullmatch(r"[\d,]+ steps/s", shown["speed"])
    assert shown["memory"].endswith("KiB a world")
    # What it counts is what the rollout records.
    (records,) = recorded
    ended = np.asarray(records.terminated | records.truncated)
    assert ended.shape == (25, 32)
    assert shown["episodes"] == f"{ended.sum()} ended"
    assert shown["terminated"] == str(np.asarray(records.terminated).sum())
    assert shown["truncated"] == str(np.asarray(records.truncated).sum())
    assert shown["solved"] == f"{np.asarray(records.success).sum()} pairs"
    assert shown["reward"] == f"{np.asarray(records.reward, float).mean():+.4f} a step"


def test_one_step_has_no_speed(capsys: pytest.CaptureFixture[str]):
    shown = rollout(
        capsys, "--worlds", "2", "--steps", "1", "--dataset", "AGI2-eval", "--actions", "bbox"
    )
    assert "not known" in shown["speed"]
    assert "bbox actions" in shown["head"]
    assert shown["solved"].endswith("test pairs")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dataset", "AGI3"], "no data set 'AGI3'; there are: AGI1, AGI1-train"),
        (["--worlds", "0"], "--worlds must be 1 or more, got 0"),
        (["steps=0"], "--steps must be 1 or more, got 0"),
        (["--actions", "circle"], "point"),
    ],
)
def test_rollout_refuses(capsys: pytest.CaptureFixture[str], words: list[str], message: str):
    assert main(["arc", "rollout", *words]) == 2
    assert message in capsys.readouterr().err


def test_info_prints_the_facts(capsys: pytest.CaptureFixture[str]):
    assert main(["arc", "info", "007bbfb7"]) == 0
    shown = capsys.readouterr().out
    for line in (
        "data set   AGI1-train, version aa922be, task 0",
        "pairs      5 demonstrations, 1 tests",
        "colours    0, 2, 4, 6, 7",
        "cells      3 x 3 to 9 x 9, 6 times",
        "data set   AGI2-train",
    ):
        assert line in shown


def test_info_reads_a_file(capsys: pytest.CaptureFixture[str]):
    wide = {**TASK, "train": [{"input": [[7] * 30], "output": [[8] * 30]}]}
    Path("own.json").write_text(json.dumps(wide))
    assert main(["arc", "info", "own.json"]) == 0
    shown = capsys.readouterr().out
    assert "1 demonstrations, 1 tests, 1 of them without an answer" in shown
    assert "1 x 30 to 1 x 30" in shown
    assert "3 x 30 to ?" in shown


def test_info_suggests_the_nearest_ids(capsys: pytest.CaptureFixture[str]):
    assert main(["arc", "info", "007bbfb8"]) == 2
    assert "no task '007bbfb8' in ARC-AGI-1 or 2. The nearest: 007bbfb7," in capsys.readouterr().err
    assert main(["arc", "info", "missing.json"]) == 2
    assert "no file 'missing.json'" in capsys.readouterr().err
