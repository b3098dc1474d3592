from __future__ import annotations

import sys
from pathlib import Path

import pytest

from worldloom import bench
from worldloom.cli import main


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_launch_runs_the_command_as_often_as_asked(capfd: pytest.CaptureFixture[str]):
    code = "import os; print(sorted(k for k in os.environ if k == 'HOME'))"
    assert main(["launch", "-n", "3", "--", sys.executable, "-c", code]) == 0
    assert capfd.readouterr().out.count("HOME") == 3


def test_launch_passes_on_the_exit_code(capfd: pytest.CaptureFixture[str]):
    assert main(["launch", "-n", "2", "--", sys.executable, "-c", "raise SystemExit(7)"]) == 7


def test_launch_wants_its_command_after_two_dashes(capsys: pytest.CaptureFixture[str]):
    assert main(["launch", "-n", "2"]) == 2
    assert "give the command after `--`" in capsys.readouterr().err
    assert main(["launch", "ls"]) == 2
    assert "write `--` before the command: worldloom launch -- ls" in capsys.readouterr().err
    assert main(["launch", "--", "no-such-program"]) == 1
    assert "no-such-program" in capsys.readouterr().err


def test_report_makes_a_page_from_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("one", "two"):
        found = bench.compare(
            {f"slow {name}": lambda: 1, f"fast {name}": lambda: 2},
            rounds=2,
            seconds=1e-4,
            title=f"Title of {name}",
        )
        found.to_json(tmp_path / f"{name}.json")
    assert main(["report", "one.json", "two.json", "--out", "page.html", "--title", "<Week>"]) == 0
    assert capsys.readouterr().out.strip() == "page.html"
    page = Path("page.html").read_text(encoding="utf-8")
    for text in ("&lt;Week&gt;", "Title of one", "Title of two", "slow one", "fast two"):
        assert text in page


def test_report_refuses_what_is_no_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["report"]) == 2
    assert main(["report", "missing.json"]) == 2
    assert "no file 'missing.json'" in capsys.readouterr().err
    Path("other.json").write_text("{}")
    assert main(["report", "other.json"]) == 1
    assert "other.json: not a comparison" in capsys.readouterr().err
    assert not Path("report.html").exists()


def test_demo_is_given_its_folder(monkeypatch: pytest.MonkeyPatch):
    seen = []
    monkeypatch.setattr("worldloom.demo.main", seen.append)
    assert main(["demo"]) == 0
    assert main(["demo", "--out", "tour"]) == 0
    assert seen == [Path("out"), Path("tour")]


PROGRAM = """
import sys
import jax
import jax.numpy as jnp
if __name__ == "__main__":
    print("words", sys.argv[1:])
    x = jax.jit(lambda x: jnp.sort(x @ x))(jnp.ones((128, 128)))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "150")
    path = tmp_path / "my_program.py"
    path.write_text(PROGRAM)
    return path


def test_profile_runs_a_script_and_prints_its_kernels(
    program: Path, capsys: pytest.CaptureFixture[str]
):
    before = list(sys.argv), list(sys.path)
    assert main(["profile", "--top", "3", "--", "python", "my_program.py", "--steps", "x=1"]) == 0
    shown = capsys.readouterr().out
    assert "words ['--steps', 'x=1']" in shown
    assert "Top 3 of" in shown
    assert "sort" in shown
    assert list(Path("profile").rglob("*.xplane.pb"))
    assert (sys.argv, sys.path) == before


def test_profile_runs_a_module(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["profile", "--out", "trace", "--", "-m", "my_program", "y"]) == 0
    shown = capsys.readouterr().out
    assert "words ['y']" in shown
    assert "sort" in shown
    assert list(Path("trace").rglob("*.xplane.pb"))


def test_profile_passes_on_the_exit_code(program: Path, capsys: pytest.CaptureFixture[str]):
    program.write_text(PROGRAM + "    x.block_until_ready()\n    sys.exit(5)\n")
    assert main(["profile", "--", "my_program.py"]) == 5
    assert "sort" in capsys.readouterr().out


def test_profile_wants_a_program_that_exists(capsys: pytest.CaptureFixture[str]):
    assert main(["profile"]) == 2
    assert main(["profile", "--", "python"]) == 2
    assert main(["profile", "--", "python", "nowhere.py"]) == 2
    assert "no Python script 'nowhere.py'" in capsys.readouterr().err


def test_profile_of_a_program_that_computes_nothing_is_one_message(
    capsys: pytest.CaptureFixture[str],
):
    Path("idle.py").write_text("")
    assert main(["profile", "--", "idle.py"]) == 1
    assert capsys.readouterr().err.startswith("worldloom: error: ")
