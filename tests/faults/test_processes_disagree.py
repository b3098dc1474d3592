"""Processes of one run that were told different things end, and say which."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent.parent / "distributed"
LAUNCH = [sys.executable, "-m", "worldloom.cli", "launch", "-n", "2", "--", sys.executable]


def test_each_difference_is_named_in_every_process(tmp_path):
    done = subprocess.run(
        [*LAUNCH, str(HERE / "disagree.py"), "caught", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "] ran " not in done.stdout
    names = ("length", "inputs", "save", "step.rate", "state", "on_fault")
    for name in (*names, "seed", "learning_rate", "names"):
        for process in "01":
            said = re.search(rf"\[{process}\] refused {re.escape(name)} \| (.*)", done.stdout)
            assert said, (name, done.stdout)
            assert f"disagree: {name} is " in said[1]
            assert "in process 0 and" in said[1]
    assert done.stdout.count("after 80.0") == 2, "the processes no longer work together"


def test_a_run_of_processes_that_disagree_ends_soon():
    began = time.monotonic()
    done = subprocess.run(
        [*LAUNCH, str(HERE / "disagree.py"), "length"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode not in (0, 124)
    assert "disagree: length is 200 in process 0 and 240 in process 1" in done.stderr
    assert time.monotonic() - began < 60  # 15 s, on a machine that does something else too
