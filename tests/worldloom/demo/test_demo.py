from __future__ import annotations

import html
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from worldloom import bench, demo
from worldloom.demo import _main, _world
from worldloom.demo._naive import jit_loop, numpy_loop, numpy_react

SIDE = 8
_NAIVE = "jit, one by one"
SMALL = demo.Scale(side=SIDE, length=4, rounds=2, chapters=False)


@pytest.fixture(scope="module")
def worlds():
    return _world.begin(jax.random.key(0), side=SIDE)


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What the demo leaves in its folder."""
    out = tmp_path_factory.mktemp("demo") / "new folder"
    assert demo.main(out, scale=SMALL) == out / "report.html"
    return out


def test_one_table_says_what_each_system_did(left):
    page = (left / "report.html").read_text(encoding="utf-8")
    assert "All of it in one table" in page
    comparison = bench.Comparison.from_json(left / "speed.json")
    line = demo.Line("worldloom", "64 worlds", comparison, "worldloom.run", "patterns")
    system, work, rate, against, times, found = line.cells()
    assert (system, work, against, found) == ("worldloom", "64 worlds", _NAIVE, "patterns")
    assert rate.endswith(" steps")
    assert times.startswith(f"{comparison.ratio('worldloom.run').value:,.0f}x (")


def test_the_compiled_worlds_are_the_plain_numpy_ones(worlds):
    many, _ = jax.jit(_world.advance)(worlds, jnp.int32(0))
    for index in (0, 17, SIDE**2 - 1):
        u, v = np.array(worlds.u[index]), np.array(worlds.v[index])
        feed, kill = float(worlds.feed[index]), float(worlds.kill[index])
        for _ in range(_world.SUBSTEPS):
            u, v = numpy_react(u, v, feed, kill)
        np.testing.assert_allclose(many.u[index], u, atol=1e-5)
        np.testing.assert_allclose(many.v[index], v, atol=1e-5)


def test_the_naive_loops_do_the_same_work(worlds):
    expected = jax.vmap(_world.react)(worlds)
    np.testing.assert_allclose(numpy_loop(worlds, 3)(), expected.v[:3], atol=1e-6)
    singles = jit_loop(worlds, 3)()
    np.testing.assert_allclose(np.stack([w.v for w in singles]), expected.v[:3], atol=1e-6)


def test_diffusion_alone_keeps_the_amount(worlds):
    """Without food, death and reaction, nothing is made or lost: the torus has no edge."""
    zero = jnp.zeros(SIDE**2)
    still = _world.Worlds(worlds.u, 0 * worlds.v, zero, zero)
    spread = jax.vmap(_world.react)(still)
    np.testing.assert_allclose(spread.u.sum((1, 2)), worlds.u.sum((1, 2)), rtol=1e-5)
    assert float(jnp.std(spread.u)) < float(jnp.std(worlds.u))


def test_the_map_has_every_recipe_once(worlds):
    pairs = {(float(f), float(k)) for f, k in zip(worlds.feed, worlds.kill, strict=True)}
    assert len(pairs) == SIDE**2
    assert worlds.feed[0] > worlds.feed[-1]
    assert worlds.kill[0] < worlds.kill[SIDE - 1]


def test_worlds_worth_watching_are_worlds():
    chosen = _main.worth_watching(64)
    assert len(chosen) == len(set(chosen)) == 40
    assert all(0 <= index < 64**2 for index in chosen)


def test_fates_are_told_apart(worlds):
    v = jnp.zeros_like(worlds.v)
    v = v.at[1].set(0.3).at[2, :10].set(0.3)
    counts = _main.fates(_world.Worlds(worlds.u, v, worlds.feed, worlds.kill))
    assert counts.tolist() == [1, 1, SIDE**2 - 2]


def test_the_page_has_what_was_promised(left):
    text = (left / "report.html").read_text(encoding="utf-8")
    assert "64 worlds, one program" in text
    for words in ("world-steps a second", "of memory a world", "Python loop"):
        assert words in text
    assert ("to compile, once" in text) != ("to load the program" in text)
    assert text.count('class="replay"') == 1
    shown = html.unescape(text.replace("<span>", "").replace("</span>", ""))
    assert f"worldloom demo --out '{left}'" in shown
    about = json.loads(text.split('class="about">')[1].split("</script>")[0])
    assert about["count"] == SMALL.length + 1
    assert about["labels"][-1] == f"step {SMALL.length * _world.SUBSTEPS}"


def test_the_measurement_is_kept_and_nothing_failed(left):
    found = bench.Comparison.from_json(left / "speed.json")
    assert found.failures == {}
    assert all(timing.recompiled == 0 for timing in found.timings)
    assert found["worldloom.run"].items == SIDE**2 * _world.SUBSTEPS
    # A thousandfold margin: this only says that nobody mistook the direction.
    assert found.ratio("worldloom.run").value > 0.05


@pytest.mark.parametrize("chapters", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_last_line_is_the_page_and_the_second_start_compiles_nothing(
    chapters, tmp_path, monkeypatch
):
    monkeypatch.setenv("WORLDLOOM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    code = (
        "from pathlib import Path; from worldloom import demo; import sys;"
        "scale = demo.Scale(side=4, length=2, rounds=1, chapters=sys.argv[2] == 'True');"
        "demo.main(Path(sys.argv[1]), scale=scale)"
    )
    for compiled in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), str(chapters)],
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == str(tmp_path / "report.html")
        none_compiled = "0 programs compiled" in done.stderr
        assert none_compiled != compiled, done.stderr


def test_the_page_opens(left, chromium):
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": 390, "height": 844})
        complaints = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((left / "report.html").as_uri())
        page.locator("figure.replay").scroll_into_view_if_needed()
        page.wait_for_selector("figure.replay[data-state=ready]")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert complaints == []
        browser.close()
