"""Every script in examples/advanced/ runs and shows something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "advanced").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_the_example_runs(script: Path, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5
    assert list(tmp_path.iterdir()) == []


def test_the_four_of_the_guides_are_there():
    assert [script.stem for script in EXAMPLES] == [
        "batch_processing_demo",
        "jax_best_practices_demo",
        "jax_optimization_demo",
        "memory_efficiency_demo",
    ]
