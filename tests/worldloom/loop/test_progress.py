from __future__ import annotations

import io
import re

from rich.console import Console

import worldloom as wl


def count(n, t):
    return n + 1, None


def test_a_meter_sees_every_chunk_and_the_end():
    class Meter:
        def __init__(self):
            self.seen = []

        def start(self, done, length):
            self.seen.append(("start", done, length))

        def update(self, done):
            self.seen.append(done)

        def stop(self):
            self.seen.append("stop")

    meter = Meter()
    wl.run(count, 0, length=25, progress=meter, chunk_steps=10)
    assert meter.seen == [("start", 0, 25), 10, 20, 25, "stop"]


def test_the_bar_shows_label_count_and_rate():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120)
    bar = wl.ProgressBar("vortex", delay=0.0, console=console)
    wl.run(count, 0, length=2000, progress=bar, chunk_steps=100)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())
    assert "vortex" in text
    assert "2000/2000" in text
    assert "steps/s" in text


def test_a_short_run_draws_nothing():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True)
    wl.run(count, 0, length=20, progress=wl.ProgressBar(delay=60.0, console=console))
    assert out.getvalue() == ""


def test_the_program_does_not_know_about_progress(no_recompile):
    wl.run(count, 0, length=20)
    with no_recompile():
        wl.run(count, 0, length=20, progress=True)
        wl.run(count, 0, length=20, progress="counting")
