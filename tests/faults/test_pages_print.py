"""Pages on paper: what was never on the screen is drawn when a page is printed."""

from __future__ import annotations

import re
import subprocess
import zlib

import jax
import numpy as np
import pytest
from browser import ARGUMENTS, launched

import jaxarc
import jaxtrace as jt
from jaxarc.envs import (
    EnvironmentConfig,
    JaxArcConfig,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
)
from jaxarc.utils import visualization as viz
from jaxtrace.visualization import Viewer
from worldloom import report

SEEN = "() => [...document.querySelectorAll('figure')].map((f) => f.dataset.state ?? '')"
INK = """(selector) => [...document.querySelectorAll(selector)].map((canvas) => {
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext('2d');
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
  return new Set(new Uint32Array(pixels.buffer)).size;
})"""
FAR = "word " * 20_000  # many screens


def tracks(epoch=""):
    times = np.arange(9) * 43200.0
    angle = times[:, None] / 86400.0 + np.linspace(0, 6, 40)
    positions = np.stack([np.cos(angle), np.sin(angle)], axis=-1).astype(np.float32)
    status = np.zeros((9, 40), np.int8)
    ages = np.broadcast_to(times[:, None], status.shape)
    return jt.Trajectory(positions, times, status, ages, frame=jt.Frame(epoch=epoch))


def dot():
    frames = np.zeros((8, 8, 8), np.uint8)
    frames[np.arange(8), np.arange(8), np.arange(8)] = 1
    return report.Replay(frames, alt="A dot that falls", palette=["#10151c", "#f2b134"])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    made = report.Report("On paper").section("Far down", FAR)
    made.add(Viewer(tracks("2000-02-28")), dot(), episodes())
    return made.save(tmp_path_factory.mktemp("page") / "page.html")


def episodes():
    """Two worlds, acted in at random."""
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=8, record_history=False),
        dataset=UnifiedDatasetConfig(max_grid_height=10, max_grid_width=10),
        action=UnifiedActionConfig(selection_format="point"),
    )
    env = jaxarc.make("AGI1-train", subset="up-to-10x10", config=config)

    def policy(params, observation, key):
        return env.random_action(key, worlds=2)

    _, _, recording = viz.watch_rollout(env, policy, None, jax.random.key(0), 8, worlds=2)
    return viz.Replays(recording)


@pytest.fixture(scope="module")
def browser(chromium):
    with launched(chromium) as browser:
        yield browser


def test_what_was_never_seen_is_drawn_for_the_printer(browser, page):
    opened = browser.new_page(viewport={"width": 1000, "height": 700})
    opened.goto(page.as_uri())
    assert opened.evaluate(SEEN) == [""] * 3
    opened.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert opened.evaluate(SEEN) == ["ready"] * 3  # at once: a printer does not wait
    under, _ = opened.evaluate(INK, ".tracks-stage canvas")
    assert under > 20
    assert opened.evaluate(INK, ".replay canvas") == [2]
    assert opened.locator(".tracks-readout strong").inner_text() == "2000-02-28 00:00"
    assert opened.evaluate("() => document.querySelectorAll('.tracks-stage canvas')[1].hidden")
    opened.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert not opened.evaluate("() => document.querySelectorAll('.tracks-stage canvas')[1].hidden")
    opened.close()


def test_a_pdf_has_the_pictures(chromium, page, tmp_path):
    """Chromium's own way to paper, with nobody there to scroll."""
    words = [chromium, "--headless", *ARGUMENTS, f"--print-to-pdf={tmp_path / 'a.pdf'}"]
    subprocess.run([*words, page.as_uri()], check=True, capture_output=True, timeout=120)
    data = (tmp_path / "a.pdf").read_bytes()
    widths = [int(w) for w in re.findall(rb"/Subtype /Image[^>]*?/Width (\d+)", data)]
    assert max(widths, default=0) > 400, "the canvas with tracks"
    assert 8 in widths, "the replay"


def test_without_scripts_a_noscript_element_says_so(page, browser):
    text = page.read_text(encoding="utf-8")
    body = re.sub(r"<noscript>.*?</noscript>", "", text, flags=re.DOTALL)
    assert text.count("<noscript>") >= 2
    assert "scripts may run" not in body
    context = browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(page.as_uri())
    for box in (".tracks-stage", ".arc-wait"):
        assert "where scripts may run" in still.locator(box).inner_text()
    context.close()


def test_clocks_show_dates_and_numbers_that_differ(browser, tmp_path):
    opened = browser.new_page()
    clock = opened.locator(".tracks-readout strong")
    for epoch, shown in (
        ("2000-02-28", "2000-03-03 00:00"),
        ("seconds since 2000-02-28, calendar noleap", "2000-03-04 00:00"),
        ("seconds since 2000-02-28, calendar 360_day", "2000-03-02 00:00"),
        ("", "t = 345600"),
    ):
        path = tmp_path / "one.html"
        report.Report("One").add(Viewer(tracks(epoch))).save(path)
        opened.goto(path.as_uri())
        opened.wait_for_selector("figure.tracks[data-state=ready]")
        opened.evaluate("() => document.querySelector('figure.tracks').player.seek(999)")
        assert clock.inner_text() == shown, epoch
    number = "([value, range]) => worldloom.number(value, range)"
    near = [opened.evaluate(number, [1.45e9 + k, 5.0]) for k in range(5)]
    assert near == [f"1,450,000,00{k}" for k in range(5)]
    assert opened.evaluate(number, [-2.85e6, 1e5]) == "-2,850,000"
    assert opened.evaluate(number, [2e-5, 1e-4]) == "2e-5"
    opened.close()


@pytest.fixture(scope="module")
def opened(browser, page):
    made = browser.new_page()
    made.goto(page.as_uri())
    yield made
    made.close()


@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("kind", ["noise", "runs", "text", "empty", "long"])
def test_the_page_unpacks_what_zlib_packed(opened, level, kind):
    import base64

    rng = np.random.default_rng(level)
    data = {
        "noise": rng.integers(0, 256, 5000, np.uint8).tobytes(),
        "runs": np.repeat(rng.integers(0, 9, 300, np.uint8), 40).tobytes(),
        "text": b"so many words, so many words; " * 7,
        "empty": b"",
        "long": rng.integers(0, 4, 200_000, np.uint8).tobytes(),
    }[kind]
    packed = bytearray(zlib.compress(data, level))
    ask = """(text) => {
      const bytes = worldloom.unpack(text);
      return [bytes.length, bytes.reduce((sum, x) => (sum * 31 + x) % 65521, 7)];
    }"""
    want = 7
    for byte in data:
        want = (want * 31 + byte) % 65521
    assert opened.evaluate(ask, base64.b64encode(packed).decode()) == [len(data), want]
    packed[-1] ^= 1
    with pytest.raises(Exception, match="damaged"):
        opened.evaluate(ask, base64.b64encode(packed).decode())
