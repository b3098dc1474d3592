from __future__ import annotations

import dataclasses
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from worldloom import report

EVIL = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """Every element of a page, with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def full_page():
    frames = np.zeros((3, 4, 4), np.uint8)
    replay = report.Replay(frames, alt=EVIL, palette=["#000000"], caption=EVIL, labels=[EVIL] * 3)
    return (
        report.Report(EVIL, subtitle=EVIL)
        .headline(EVIL, EVIL, detail=EVIL, command=EVIL)
        .section(EVIL, EVIL)
        .add(replay, replay)
        .add(report.Text(EVIL))
        .section(EVIL)
        .add(report.Table([EVIL], [[EVIL]], caption=EVIL))
        .add(report.Commands([(EVIL, EVIL)]))
        .add(report.LineChart({EVIL: [1, 2], "b": [2, 3]}, title=EVIL, x_label=EVIL, y_label=EVIL))
        .add(report.BarChart({EVIL: 1}, title=EVIL, values=[EVIL]))
        .add(report.Picture(np.zeros((2, 2, 3), np.uint8), alt=EVIL, caption=EVIL))
    )


def test_nothing_a_user_writes_becomes_an_element():
    text = full_page().html()
    elements = Elements(text).found
    assert not [attrs for tag, attrs in elements if "onerror" in attrs or attrs.get("src") == "x"]
    scripts = [attrs for tag, attrs in elements if tag == "script"]
    assert len([attrs for attrs in scripts if "type" not in attrs]) == 3  # page, transport, replay
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_the_page_asks_nobody_for_anything():
    text = full_page().html()
    for _, attrs in Elements(text).found:
        for name in ("src", "href", "srcset", "action"):
            value = attrs.get(name) or ""
            assert value.startswith(("data:", "#", "")), value
            assert "//" not in value.split(",")[0]
    assert "@import" not in text
    assert not re.search(r"url\(\s*['\"]?(?!data:)", text)


def test_assets_come_once_and_must_agree():
    text = full_page().html()
    assert text.count("loom.transport = function") == 1
    assert text.count(".headlines strong {") == 1

    @dataclasses.dataclass(frozen=True)
    class Piece:
        script: str

        def render(self):
            return report.Fragment("<p>piece</p>", (report.Asset("piece.js", self.script),))

    same = report.Report("x").add(Piece("var a = 12345"), Piece("var a = 12345"))
    assert same.html().count("var a = 12345") == 1
    with pytest.raises(report.ReportError, match=r"both called 'piece\.js'"):
        report.Report("x").add(Piece("1"), Piece("2")).html()


def test_assets_are_checked():
    with pytest.raises(report.ReportError, match=r"end in \.js or \.css"):
        report.Asset("x.txt", "")
    with pytest.raises(report.ReportError, match="closing tag"):
        report.Asset("x.js", "'</SCRIPT>'")


def test_parts_have_names_of_their_own():
    page = report.Report("t")
    for heading in ("A part", "A part", "A part 2", "Другая", "Другая"):
        page.section(heading, "text")
    names = [attrs["id"] for tag, attrs in Elements(page.html()).found if tag == "section"]
    assert names == ["a-part", "a-part-2", "a-part-2-2", "part-2", "part-3"]


def test_headlines_show_their_command():
    text = report.Report("t").headline("3 M", "steps", command="worldloom demo").html()
    assert "3 M" in text
    assert "<span>worldloom</span> <span>demo</span>" in text


def test_the_machine_is_in_the_footer():
    from worldloom.bench import Machine

    machine = Machine("A <fast> one", 64, 2**37, "Linux", "1 x cpu", {"jax": "9.9.9"}, None)
    text = report.Report("t", machine=machine).html()
    assert "A &lt;fast&gt; one, 64 cores" in text
    assert "128 GiB" in text
    assert "9.9.9" in text


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "report.html"
    assert report.Report("first").save(path) == path
    before = path.read_text()

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        report.Report("second").save(path)
    assert path.read_text() == before
    assert os.listdir(path.parent) == ["report.html"]


def test_everything_on_a_page_is_a_section():
    pieces = [
        report.Text("x"),
        report.Table(["a"], [[1]]),
        report.Commands([("a", "b")]),
        report.BarChart({"a": 1}, title="t"),
    ]
    assert all(isinstance(piece, report.Section) for piece in pieces)
    assert not isinstance("a string", report.Section)
