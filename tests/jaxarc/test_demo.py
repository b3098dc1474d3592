from __future__ import annotations

import re

from jaxarc import demo
from worldloom import report


def test_the_chapter_plays_real_tasks_and_shows_them():
    page = report.Report("A page")
    line = demo.add_to(page, worlds=16, steps=demo.PATIENCE + 2, rounds=1)
    solved, ended = map(int, re.findall(r"(\d+) of (\d+) episodes", line.found)[0])
    assert ended >= 16  # every world has run out of patience once
    assert solved <= ended
    html = page.html()
    assert "arc-replays" in html
    assert "400 training tasks" in html
    assert f"{16 * (demo.PATIENCE + 2)} edits" in html
