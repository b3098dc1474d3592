"""The page as a reader meets it: opened in Chromium, clicked, dragged, typed at."""

from __future__ import annotations

import numpy as np
import pytest
from browser import launched, reading

from worldloom import report

COLOURS = ["#102030", "#f0c040", "#a0b0c0"]
COUNT = 40


@pytest.fixture(scope="module")
def browser(chromium):
    with launched(chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A page with every kind of section and two replays, indexed and in colour."""
    dot = np.zeros((COUNT, 8, COUNT), np.uint8)
    dot[np.arange(COUNT), 3, np.arange(COUNT)] = 1
    colour = np.zeros((5, 4, 6, 3), np.uint8)
    colour[..., 0] = np.arange(5)[:, None, None] * 50
    colour[..., 1] = 7
    colour[..., 2] = 250 - np.arange(5)[:, None, None] * 50
    labels = [f"step {10 * index}" for index in range(COUNT)]
    page = report.Report("A page <b>with</b> everything", subtitle="For the *browser*.")
    page.headline(
        "1,234,567,890,123", "a long number", detail="d", command="worldloom " + 9 * "long "
    )
    page.headline("2x", "times", command="python benchmarks/" + 60 * "x" + ".py")
    page.section("Dots").add(
        report.Replay(dot, alt="A dot that moves", palette=COLOURS, labels=labels, fps=60)
    )
    page.section("Colours").add(report.Replay(colour, alt="A colour that turns"))
    page.section("Words", "`" + 200 * "w" + "` and " + 120 * "v").add(
        report.Text("```\n" + 300 * "c" + "\n```"),
        report.Commands([("echo " + 150 * "y", "says y")]),
    )
    page.section("Numbers").add(
        report.Table([f"a column {i}" for i in range(12)], [["a wide cell"] * 12]),
        report.LineChart({"a": np.arange(50.0) ** 2, "b": np.arange(50.0)}, title="t", x_label="x"),
    )
    page.add(report.BarChart({"a": 3, "b": 1}, title="bars"))
    page.add(report.Picture(np.zeros((2, 3000, 3), np.uint8), alt="wide"))
    return page.save(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def open_page(browser, path):
    """Open the page; afterwards nothing may have been asked for or complained about."""
    with reading(browser, path, width=1280, height=800) as open_it:
        yield open_it


def replay(page, number=0):
    """A replay that is ready to play."""
    figure = page.locator("figure.replay").nth(number)
    figure.scroll_into_view_if_needed()
    page.wait_for_function("n => document.querySelectorAll('figure.replay')[n].player", arg=number)
    return figure


def until_frame(page, condition):
    """Wait until the first replay shows a frame such as `> 3`."""
    # A function, not an expression: the page lets nobody evaluate text.
    page.wait_for_function(f"() => document.querySelector('.replay').player.frame {condition}")


def pixels(figure):
    """What the canvas shows: `[height, width, 4]`."""
    read = """canvas => {
      const copy = document.createElement('canvas');
      [copy.width, copy.height] = [canvas.width, canvas.height];
      const context = copy.getContext('2d', { willReadFrequently: true });
      context.drawImage(canvas, 0, 0);
      return [copy.height, copy.width,
              ...context.getImageData(0, 0, copy.width, copy.height).data];
    }"""
    height, width, *data = figure.locator("canvas").evaluate(read)
    return np.array(data).reshape(height, width, 4)


def frame(figure):
    """The frame on show, read from the picture itself: where the dot is."""
    (place,) = np.flatnonzero(pixels(figure)[3, :, 0] == 0xF0)
    return place


def test_stepping_and_scrubbing_show_the_right_pixels(open_page):
    figure = replay(open_page())
    assert frame(figure) == 0
    assert pixels(figure)[5, 5].tolist() == [0x10, 0x20, 0x30, 255]
    assert pixels(figure)[3, 0].tolist() == [0xF0, 0xC0, 0x40, 255]
    figure.get_by_label("Next frame").click()
    figure.get_by_label("Next frame").click()
    assert frame(figure) == 2
    assert figure.locator("output").inner_text() == "step 20"
    figure.get_by_label("Previous frame").click()
    assert frame(figure) == 1
    slider = figure.get_by_role("slider")
    slider.fill("31")
    assert frame(figure) == 31
    expected = np.full((8, COUNT, 4), [0x10, 0x20, 0x30, 255])
    expected[3, 31] = [0xF0, 0xC0, 0x40, 255]
    np.testing.assert_array_equal(pixels(figure), expected)
    assert slider.get_attribute("aria-valuetext") == "step 310"
    figure.get_by_label("Next frame").click(click_count=20)
    assert frame(figure) == COUNT - 1


def test_playing_and_pausing(open_page):
    page = open_page()
    figure = replay(page)
    figure.get_by_label("Play", exact=True).click()
    until_frame(page, "> 3")
    figure.get_by_label("Pause").click()
    stopped = frame(figure)
    assert stopped > 3
    page.wait_for_timeout(150)
    assert frame(figure) == stopped
    assert figure.get_by_label("Play", exact=True).count() == 1
    figure.locator("canvas").click()
    page.wait_for_function(
        "n => document.querySelector('figure.replay').player.frame != n", arg=int(stopped)
    )
    until_frame(page, "== 39")
    until_frame(page, "< 20")  # again


def test_the_keyboard_does_it_all(open_page):
    page = open_page()
    figure = replay(page)
    figure.focus()
    keys = {
        "ArrowRight": 1,
        "Shift+ArrowRight": 11,
        "ArrowLeft": 10,
        "End": 39,
        "Home": 0,
    }
    for key, expected in keys.items():
        page.keyboard.press(key)
        assert frame(figure) == expected, key
    page.keyboard.press("Space")
    until_frame(page, "> 1")
    page.keyboard.press("k")
    assert not figure.evaluate("figure => figure.player.playing")
    page.keyboard.press("ArrowUp")
    assert figure.get_by_label("Speed").input_value() == "2"
    page.keyboard.press("Home")
    figure.get_by_label("Next frame").focus()
    page.keyboard.press("Space")  # a focused button is pressed, once
    assert frame(figure) == 1


def test_speed_makes_it_faster(open_page):
    page = open_page()
    figure = replay(page)

    def frames_in(seconds, speed):
        figure.get_by_label("Speed").select_option(str(speed))
        return figure.evaluate(
            """async (figure, milliseconds) => {
              const { player } = figure;
              player.seek(0);
              player.play();
              await new Promise((done) => setTimeout(done, milliseconds));
              player.pause();
              return player.frame;
            }""",
            seconds * 1000,
        )

    assert frames_in(0.4, 0.25) < frames_in(0.4, 1) < COUNT


def test_colours_that_are_no_indices_play_too(open_page):
    figure = replay(open_page(), 1)
    assert pixels(figure)[2, 2].tolist() == [0, 7, 250, 255]
    figure.get_by_role("slider").fill("3")
    assert pixels(figure)[3, 5].tolist() == [150, 7, 100, 255]
    assert figure.locator("output").inner_text() == "4 / 5"


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_nothing_is_wider_than_the_screen(open_page, width):
    page = open_page(width=width)
    replay(page, 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width
    hidden = page.evaluate(
        """() => [...document.querySelectorAll('strong, h1, h2, .words, nav a, button, .command')]
             .filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"""
    )
    assert hidden == 0


def test_dark_and_light_are_both_readable(open_page):
    seen = {}
    for scheme in ("light", "dark"):
        page = open_page(color_scheme=scheme)
        seen[scheme] = page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                      getComputedStyle(document.querySelector('h1')).color]
               .map(c => c.match(/\\d+/g).map(Number).reduce((a, b) => a + b) / 3)"""
        )
    assert seen["light"][0] > 230 > 60 > seen["light"][1]
    assert seen["dark"][0] < 40 < 200 < seen["dark"][1]


def test_a_reader_who_wants_calm_gets_calm(browser, open_page, tmp_path):
    frames = np.zeros((50, 4, 4), np.uint8)
    moving = report.Replay(frames, alt="x", palette=COLOURS, autoplay=True, fps=30)
    path = report.Report("t").add(moving).save(tmp_path / "auto.html")
    page = open_page(path)
    replay(page)
    until_frame(page, "> 2")
    calm = open_page(path, reduced_motion="reduce")
    figure = replay(calm)
    calm.wait_for_timeout(150)
    assert figure.evaluate("figure => [figure.player.frame, figure.player.playing]") == [0, False]


def test_without_scripts_the_first_frames_are_pictures(open_page):
    page = open_page(java_script_enabled=False)
    stills = page.locator("figure.replay img")
    assert stills.count() == 2
    assert stills.first.get_attribute("alt") == "A dot that moves"
    assert page.locator("button").count() == 0


def test_commands_are_copied(browser, path):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        page.get_by_label("Copy: echo").click()
        page.wait_for_selector(".command button.done")
        assert page.evaluate("navigator.clipboard.readText()") == "echo " + 150 * "y"
    finally:
        context.close()


def test_a_script_that_is_not_ours_does_not_run(browser, path, tmp_path):
    evil = "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'>"
    changed = tmp_path / "changed.html"
    changed.write_text(path.read_text(encoding="utf-8").replace("</main>", evil), encoding="utf-8")
    context = browser.new_context()
    try:
        page = context.new_page()
        asked = []
        page.on("requestfinished", lambda request: asked.append(request.url))
        page.goto(changed.as_uri())
        assert page.evaluate("window.ran") is None
        assert page.evaluate("typeof window.worldloom.transport") == "function"
        assert not [url for url in asked if url.endswith("/x")]
    finally:
        context.close()


def test_a_damaged_replay_says_so(browser, path, tmp_path):
    text = path.read_text(encoding="utf-8")
    start = text.index('class="frames">') + len('class="frames">')
    changed = tmp_path / "changed.html"
    changed.write_text(text[:start] + "AAAA" + text[start + 4 :], encoding="utf-8")
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(changed.as_uri())
        page.wait_for_selector("figure.replay[data-state=failed]")
        assert "cannot play the replay" in page.locator(".failed").inner_text()
    finally:
        context.close()


def test_thousands_of_frames_are_as_quick_as_a_few(open_page, tmp_path):
    rng = np.random.default_rng(0)
    frames = (np.cumsum(rng.random((2000, 64, 64)) < 0.01, axis=0) % 8).astype(np.uint8)
    palette = report.gradient(["#000000", "#ffffff"], size=8)
    path = tmp_path / "long.html"
    long = report.Replay(frames, alt="long", palette=palette)
    short = report.Replay(frames[:30], alt="short", palette=palette)
    report.Report("t").add(long, short).save(path)
    assert path.stat().st_size < frames.size / 4
    page = open_page(path)
    figures = [replay(page, 0), replay(page, 1)]
    seek = """(figure, count) => {
      const start = performance.now();
      for (let i = 0; i < 300; i++) figure.player.seek((i * 997) % count);
      return performance.now() - start;
    }"""
    # The best of a few: other tests may have the processor for a moment.
    best = [
        min(figure.evaluate(seek, count) for _ in range(4))
        for figure, count in zip(figures, (2000, 30), strict=True)
    ]
    assert best[0] < 4 * best[1]
    figures[0].evaluate("figure => figure.player.seek(1123)")
    assert pixels(figures[0])[21, 9, :3].tolist() == palette[frames[1123, 21, 9]].tolist()
