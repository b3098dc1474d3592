from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from worldloom import bench
from worldloom.cli import main
from worldloom.cli._bench import find_groups

ROOT = Path(__file__).parents[3]
# Writes what a real script would, without its imports: see `test_a_script_keeps_what_it_found`.
SCRIPT = """
import pathlib, sys

GROUP = "{group}"
words = sys.argv[1:]
print("{name}", "--quick" in words, "--alone" in words)
text = pathlib.Path("template.json").read_text().replace("NAME", "{name}")
pathlib.Path(words[words.index("--record") + 1]).write_text(text.replace("GROUP", "{group}"))
"""
MACHINE = bench.Machine("cpu", 2, 2**34, "Linux", "1 x cpu", {"jax": "0"}, 0.5)


def template() -> bench.Record:
    slow, fast = (
        bench.Timing(name, None, 1, (wall,) * 3, (wall,) * 3, None, None)
        for name, wall in (("slow", 4.0), ("fast", 1.0))
    )
    found = bench.Comparison("NAME", "slow", "items", (slow, fast), MACHINE, "now")
    return bench.Record(
        (
            bench.Findings(
                "NAME",
                "GROUP",
                True,
                True,
                "2026-01-01",
                1.0,
                MACHINE,
                (bench.Case(found, "fast", "slow"),),
                (bench.Growth(found, "worlds", {"slow": 1, "fast": 2}),),
                (bench.Figure("NAME weighs", 3, "kg"),),
            ),
        )
    )


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    template().to_json("template.json")
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    for name, group in {"one": "sums", "two": "other"}.items():
        (folder / f"{name}.py").write_text(SCRIPT.format(name=name, group=group))
    (folder / "_helper.py").write_text("raise SystemExit('not a benchmark')\n")
    return folder


@pytest.fixture
def no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.Record, "plot", lambda self, path: path)


def test_groups_are_listed_with_their_scripts(scripts: Path, capfd: pytest.CaptureFixture[str]):
    assert main(["bench", "--list"]) == 0
    assert capfd.readouterr().out.splitlines() == ["other: two", "sums: one"]


def test_what_the_scripts_found_is_gathered(scripts: Path, capfd: pytest.CaptureFixture[str]):
    Path("docs").mkdir()
    assert main(["bench", "--quick", "--out", "found", "--page", "docs/page.md"]) == 0
    shown = capfd.readouterr().out
    assert "one True True" in shown  # --quick was asked for, rivals were not
    assert shown.index("== two") < shown.index("== one")
    record = bench.Record.from_json("found/record.json")
    assert [found.script for found in record.findings] == ["two", "one"]
    assert record.case("one", "one").ratio("slow").value == 4
    assert record.figure("two", "two weighs").value == 3
    assert Path("found/record.png").read_bytes().startswith(b"\x89PNG")
    page = Path("found/report.html").read_text(encoding="utf-8")
    assert "times slow" in page
    assert "two weighs" in page
    assert Path("docs/page.md").read_text(encoding="utf-8") == record.markdown()
    # The same from the file, without running anything.
    assert main(["bench", "--read", "found/record.json", "--out", "again", "--page", "p.md"]) == 0
    assert "== one" not in capfd.readouterr().out
    assert Path("p.md").read_text() == Path("docs/page.md").read_text()
    assert not Path("again/record.json").exists()
    # One script anew, joined with the rest.
    newer = dataclasses.replace(record.findings[1], created="2026-02-02")
    bench.Record((newer,)).to_json("anew.json")
    files = ["found/record.json", "anew.json"]
    assert main(["bench", "--read", *files, "--out", "joined"]) == 0
    joined = bench.Record.from_json("joined/record.json")
    assert [found.created for found in joined.findings] == ["2026-01-01", "2026-02-02"]
    assert joined.failed == {}


@pytest.mark.usefixtures("no_picture")
def test_a_group_or_a_script_is_chosen_and_rivals_are_asked_for(
    scripts: Path, capfd: pytest.CaptureFixture[str]
):
    (scripts / "two.py").write_text("GROUP = 'other'\nraise SystemExit('not chosen')\n")
    for name in ("sums", "one"):
        assert main(["bench", name, "--rivals"]) == 0
        assert "one False False" in capfd.readouterr().out


@pytest.mark.usefixtures("no_picture")
def test_a_script_that_fails_or_writes_nothing_is_named_and_the_others_run(
    scripts: Path, capfd: pytest.CaptureFixture[str]
):
    (scripts / "a_broken.py").write_text("GROUP = 'other'\nraise SystemExit(3)\n")
    (scripts / "b_silent.py").write_text("GROUP = 'other'\n")
    (scripts / "two.py").unlink()
    assert main(["bench"]) == 1
    shown = capfd.readouterr()
    assert "failed: a_broken, b_silent" in shown.err
    record = bench.Record.from_json("out/bench/record.json")
    assert record.failed == {"a_broken": "exit code 3", "b_silent": "it wrote no record"}
    assert [found.script for found in record.findings] == ["one"]


# Stops whoever started it, as `kill` does, while a process of its own is at work.
STOPS = """
import os, pathlib, signal, subprocess, sys, time

GROUP = "sums"
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


def test_a_run_that_is_stopped_keeps_what_it_has_and_leaves_nothing_running(scripts: Path):
    (scripts / "stops.py").write_text(STOPS)
    words = [sys.executable, "-m", "worldloom.cli", "bench", "one", "stops", "two"]
    # Into a file: a pipe would be waited for until whatever was left running ends.
    with Path("said").open("w") as said:
        done = subprocess.run(words, stdout=said, stderr=said, timeout=120, check=False)
    assert done.returncode == 1
    assert "worldloom bench: failed: stops, two" in Path("said").read_text()
    record = bench.Record.from_json("out/bench/record.json")
    assert [found.script for found in record.findings] == ["one"]
    assert record.failed == dict.fromkeys(["stops", "two"], "stopped before its end")
    for pid in map(int, Path("pids").read_text().split()):
        assert ended_within(pid, seconds=10)


def ended_within(pid: int, *, seconds: float) -> bool:
    """Nobody may collect an orphan here, so one that is a zombie has ended too."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    return False


def test_a_script_without_a_group_is_an_error(scripts: Path, capsys: pytest.CaptureFixture[str]):
    (scripts / "lost.py").write_text("x = 1\n")
    assert main(["bench", "--list"]) == 2
    assert "lost.py says no group" in capsys.readouterr().err


def test_a_name_is_suggested(scripts: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "sum"]) == 2
    wanted = "Did you mean 'sums'? Groups: other, sums. Scripts: two, one"
    assert wanted in capsys.readouterr().err
    assert main(["bench", "--read", "missing.json"]) == 2
    assert "no file 'missing.json'" in capsys.readouterr().err


def test_it_says_where_the_scripts_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("worldloom.cli._bench.__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    assert main(["bench"]) == 1
    assert "in a checkout of the repository" in capsys.readouterr().err


def test_the_scripts_of_this_repository_all_have_a_group(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    groups = find_groups()
    assert list(groups) == ["acbo", "arc", "engine", "trace"]
    for scripts in groups.values():
        assert all("bench.Script(" in path.read_text() for path in scripts.values())


@pytest.mark.parametrize("page", ["performance"])
def test_the_page_is_what_its_numbers_say(page: str):
    record = bench.Record.from_json(ROOT / "benchmarks" / "baseline" / f"{page}.json")
    assert (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") == record.markdown(), (
        "docs/performance.md is written by `make performance` or "
        "`worldloom bench --read benchmarks/baseline/performance.json --page docs/performance.md`"
    )
