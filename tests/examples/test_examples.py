"""Every script in examples/ runs; what it left behind must not trip a second start."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
# The guide's name for another script: nothing to run a second time.
DOOR = FOLDER / "example_workflow_fast.py"
EXAMPLES = sorted(set(FOLDER.glob("*.py")) - {DOOR})


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_the_example_runs_and_runs_again(script: Path, tmp_path: Path):
    # The longer ones leave nothing that they read.
    for _ in range(2 if script.stem == "pendulums" else 1):
        done = subprocess.run(
            [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_the_guides_name_opens_the_same_script(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    door = importlib.import_module(DOOR.stem)
    assert door.main is importlib.import_module("trace_workflow_fast").main


def test_there_are_examples():
    assert EXAMPLES
