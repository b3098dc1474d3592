"""Issue 24, 4.6: what needs a checkout says so, and where; what writes asks for a place."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import pytest

import acbo.pretrained
from worldloom import __version__
from worldloom.cli import main


@pytest.fixture
def from_a_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """No folder `benchmarks` here, nor beside the package."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "lib" / "site-packages" / "worldloom" / "cli" / "_bench.py"
    monkeypatch.setattr("worldloom.cli._bench.__file__", str(place))


@pytest.mark.parametrize(
    "words",
    [["bench"], ["bench", "--list"], ["bench", "arc", "--quick"], ["acbo", "bench", "--quick"]],
)
def test_benchmarks_say_where_they_are(words, from_a_wheel, capsys):
    assert main(words) == 1  # the command line is right; what it asks for is not here
    said = capsys.readouterr().err
    assert "Traceback" not in said
    for part in ("part of the source tree", f"worldloom-{__version__}.tar.gz", "--read"):
        assert part in said


def test_the_networks_of_the_package_are_not_written_over(monkeypatch, capsys):
    """Without `--out` nothing is trained and nothing is written."""
    folder = Path(acbo.pretrained.__file__).parent
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}
    for train in ("train_surrogate", "train_policy"):
        monkeypatch.setattr(
            f"{'acbo.surrogate' if 'sur' in train else 'acbo.policy'}.{train}", None
        )
    monkeypatch.setattr(sys, "argv", ["acbo.pretrained", "policy"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("acbo.pretrained.__main__", run_name="__main__", alter_sys=False)
    assert stop.value.code == 2
    assert "--out" in capsys.readouterr().err
    after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}
    assert after == before


def test_a_place_that_is_a_file_is_refused_before_the_work(monkeypatch, capsys, tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    monkeypatch.setattr("acbo.policy.train_policy", None)
    monkeypatch.setattr(sys, "argv", ["acbo.pretrained", "policy", "--out", os.fspath(place)])
    with pytest.raises(SystemExit):
        runpy.run_module("acbo.pretrained.__main__", run_name="__main__")
    assert "is a file" in capsys.readouterr().err
