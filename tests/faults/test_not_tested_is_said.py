"""Section 0: the end of `make test` says which parts were not tested and what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKIPPING = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_in_a_browser(chromium, number):
    raise AssertionError("there is no browser")

@pytest.mark.skipif(True, reason="no machine: buy one")
def test_on_another_machine():
    raise AssertionError

def test_with_a_package():
    pytest.importorskip("a_package_that_nobody_has")

def test_that_runs():
    pass
"""


def end_of(tmp_path: Path, text: str, *words: str) -> list[str]:
    """The lines that `pytest` prints for a file of tests where no browser is on the path."""
    folder = tmp_path / "tests" / "room"
    folder.mkdir(parents=True)
    (tmp_path / "tests" / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_it.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests", *words]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 5), done.stdout + done.stderr  # 5: none was left
    return done.stdout.splitlines()


@pytest.mark.parametrize("words", [(), ("-n", "1", "--dist", "worksteal")], ids=["one", "workers"])
def test_the_end_says_what_was_not_tested_and_what_to_install(tmp_path, words):
    lines = end_of(tmp_path, SKIPPING, *words)
    start = next(number for number, line in enumerate(lines) if " Not tested " in line)
    said = [line for line in lines[start + 1 : -1] if line]
    assert said == [
        "3 tests: no Chromium on PATH: `apt-get install chromium` to run the browser tests",
        "       3 in tests/room",
        "1 test: no machine: buy one",
        "       1 in tests/room",
        "1 test: no module a_package_that_nobody_has: `make test` installs it, "
        "`pip install -e '.[dev]'` too",
        "       1 in tests/room",
    ]


def test_modules_that_skip_as_a_whole_are_said(tmp_path):
    text = "import pytest\n\npytest.skip('no sea: go there', allow_module_level=True)\n"
    lines = end_of(tmp_path, text + "\ndef test_it(): ...\n", "tests/room")
    assert "1 test: no sea: go there" in lines


def test_nothing_is_said_where_all_was_tested(tmp_path):
    lines = end_of(tmp_path, "def test_it(): ...\n")
    assert not [line for line in lines if "Not tested" in line]
