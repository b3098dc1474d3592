"""`worldloom arc view`, `render` and `replay`."""

from __future__ import annotations

from pathlib import Path

import pytest

from worldloom.cli import main


def test_view_prints_every_pair(capsys):
    assert main(["arc", "view", "007bbfb7"]) == 0
    out = capsys.readouterr().out
    assert out.count("input") == 6
    assert out.count("output") == 6
    assert "0 7 7 " in out
    assert main(["arc", "view", "007bbfb7", "--no-answers", "--differences"]) == 0
    out = capsys.readouterr().out
    assert out.count("output") == 5
    assert "7*" in out


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("gif", b"GIF89a")]
)
def test_render_draws(ending, start, tmp_path: Path, capsys):
    path = tmp_path / f"task.{ending}"
    assert main(["arc", "render", "007bbfb7", "-o", str(path)]) == 0
    assert path.read_bytes().startswith(start)
    assert capsys.readouterr().out.strip() == str(path)


def test_replay_writes_a_page(recording, tmp_path: Path, capsys):
    run = recording.save(tmp_path / "run" / "run.loom")
    out = tmp_path / "replay.html"
    assert main(["arc", "replay", str(run.parent), "-o", str(out), "--limit", "3"]) == 0
    assert f"3 of {len(recording.episodes)} episodes" in capsys.readouterr().out
    assert out.read_text().startswith("<!doctype html>")


def test_mistakes_are_told(recording, tmp_path: Path, capsys):
    run = recording.save(tmp_path / "run.loom")
    for words, said in (
        (["view", "007bbfb8"], "007bbfb7"),
        (["render", "007bbfb7", "-o", "x.bmp"], ".svg"),
        (["replay", str(tmp_path / "none.loom")], "none.loom"),
        (["replay", str(run), "--task", "nothing"], "nothing"),
        (["replay", str(tmp_path / "run")], "run"),
    ):
        assert main(["arc", *words]) in (1, 2)
        assert said in capsys.readouterr().err
    run.write_bytes(run.read_bytes()[:-9])
    assert main(["arc", "replay", str(run)]) == 1
    assert "run.loom" in capsys.readouterr().err
