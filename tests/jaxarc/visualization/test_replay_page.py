"""The replay page as a reader meets it: opened in Chromium, played, scrubbed, searched."""

from __future__ import annotations

import base64
import dataclasses
import zlib

import numpy as np
import pytest
from browser import launched, reading

from jaxarc.utils import visualization as viz
from jaxarc.utils.visualization._replays import pack_episode
from worldloom import report


@pytest.fixture(scope="module")
def browser(chromium):
    with launched(chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def path(recording, tmp_path_factory):
    return viz.save_replay(recording, tmp_path_factory.mktemp("page") / "replay.html")


@pytest.fixture
def open_page(browser, path):
    """Open a page and wait for its player; nothing may be asked for or complained about."""
    ready = "figure.arc-replays[data-state=ready]"
    with reading(browser, path, width=1360, height=950, ready=ready) as open_it:
        yield open_it


def frame(page) -> int:
    return page.evaluate("document.querySelector('.arc-replays').player.frame")


def shown_episode(page) -> int:
    return int(page.locator("figure.arc-replays").get_attribute("data-episode"))


def wait_for_episode(page, number: int) -> None:
    page.wait_for_selector(f"figure.arc-replays[data-episode='{number}']")


def search(page, words: str) -> None:
    page.get_by_role("searchbox").fill(words)


def pick(page, recording, wanted) -> viz.Episode:
    """Pick the first episode that is like that, by its number."""
    episode = next(e for e in recording.episodes if wanted(e))
    search(page, f"#{episode.number}")
    row = page.locator(f".arc-row:has-text('#{episode.number} ')")
    row.first.click()
    wait_for_episode(page, episode.number)
    return episode


def colours(page, rows: int, columns: int) -> list:
    """The colour inside each cell of the board, near its corner."""
    return page.evaluate(
        """([rows, columns]) => {
            const canvas = document.querySelector(".arc-stage canvas");
            const copy = new OffscreenCanvas(canvas.width, canvas.height);
            const context = copy.getContext("2d", { willReadFrequently: true });
            context.drawImage(canvas, 0, 0);
            const cell = (canvas.width - 1) / columns;
            const found = [];
            for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) {
                const x = Math.round((c + 0.3) * cell), y = Math.round((r + 0.3) * cell);
                found.push(Array.from(context.getImageData(x, y, 1, 1).data));
            }
            return found;
        }""",
        [rows, columns],
    )


def test_every_frame_shows_the_rebuilt_grid(open_page, recording):
    page = open_page()
    episode = pick(page, recording, lambda e: e.outcome == "cut off")
    (frames,) = viz.rebuild(recording, [episode])
    _, (rows, columns) = pack_episode(frames)
    for number in (0, 1, episode.length // 2, episode.length):
        page.evaluate(f"document.querySelector('.arc-replays').player.seek({number})")
        for colour, cell in zip(
            colours(page, rows, columns), frames.grids[number, :rows, :columns].flat, strict=True
        ):
            if cell >= 0:
                assert colour == [*viz.ARC.rgb(int(cell)), 255]
            else:
                assert colour[3] < 100
        value = page.locator(".arc-curve").first.inner_text()
        assert f"{frames.similarities[number]:.0%}".replace("%", " %") in value


def test_play_step_scrub_speed_and_keyboard(open_page, recording):
    page = open_page()
    episode = pick(page, recording, lambda e: e.length == 20)
    assert frame(page) == 0
    view = page.locator(".arc-view")
    view.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert frame(page) == 2
    page.keyboard.press("End")
    assert frame(page) == episode.length
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    for _ in range(100):  # the page forbids what `wait_for_function` does
        if frame(page) >= 2:
            break
        page.wait_for_timeout(50)
    assert frame(page) >= 2
    page.keyboard.press(" ")
    assert not page.evaluate("document.querySelector('.arc-replays').player.playing")
    page.get_by_role("slider").fill("11")
    assert frame(page) == 11
    box = page.locator(".arc-curve svg").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 10)
    assert frame(page) == episode.length
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 1, box["y"] + 10, steps=4)
    page.mouse.up()
    assert frame(page) == 0
    page.get_by_label("Speed").select_option("8")
    page.keyboard.press("n")  # the next episode keeps the speed
    page.wait_for_timeout(200)
    assert page.get_by_label("Speed").input_value() == "8"


def test_search_by_task_and_outcome(open_page, recording):
    page = open_page()
    found = page.locator(".arc-sort span")
    assert found.inner_text() == f"{len(recording.episodes)} episodes"
    task = recording.episodes[0].task_id
    search(page, task)
    same = [e for e in recording.episodes if e.task_id == task]
    assert found.inner_text().startswith(f"{len(same)} episode")
    assert set(page.locator(".arc-row strong").all_inner_texts()) == {task}
    search(page, "")
    page.get_by_role("button", name="wrong").click()
    wrong = [e for e in recording.episodes if e.outcome == "wrong"]
    assert found.inner_text() == f"{len(wrong)} episodes"
    assert set(page.locator(".arc-row .arc-outcome").all_inner_texts()) == {"wrong"}
    search(page, "no such task")
    assert page.locator(".arc-none").is_visible()
    search(page, "")
    page.locator(".arc-sort select").select_option("best reward")
    best = max(wrong, key=lambda e: e.reward)
    assert f"#{best.number} " in page.locator(".arc-row").first.inner_text()


def test_the_list_is_moved_through_by_keyboard(open_page, recording):
    page = open_page()
    page.keyboard.press("Tab")
    page.locator(".arc-list").focus()
    page.keyboard.press("Home")
    wait_for_episode(page, 0)
    for _ in range(40):
        page.keyboard.press("ArrowDown")
    wait_for_episode(page, 40)
    chosen = page.locator(".arc-row[aria-selected=true]")
    assert chosen.is_visible()
    assert "#40 " in chosen.inner_text()
    assert page.locator(".arc-row").count() < 60  # of some hundreds: only what is seen is made


def test_the_operation_and_the_pair_are_named(open_page, recording):
    page = open_page()
    episode = pick(page, recording, lambda e: e.outcome == "wrong" and e.length > 3)
    assert page.locator(".arc-operation").inner_text() == "start"
    assert page.locator(".arc-task h4").inner_text() == episode.task_id
    assert page.locator(".arc-pair.here span").inner_text() == f"demo {episode.pair + 1}"
    page.evaluate("document.querySelector('.arc-replays').player.seek(1e6)")
    assert page.locator(".arc-operation").inner_text() == "submit"


@pytest.mark.parametrize("width", [360, 800, 1360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_screen(open_page, width, scheme):
    page = open_page(width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    board = page.locator(".arc-stage canvas").bounding_box()
    assert board["width"] > 100
    assert board["x"] >= 0
    assert board["x"] + board["width"] <= width


def test_two_on_a_page_and_without_scripts(browser, recording, open_page, tmp_path):
    page = report.Report("Two").add(viz.Replays(recording, recording.episodes[:2]))
    page.add(viz.Replays(recording, recording.episodes[2:4], palette="colour-blind", caption="<b>"))
    path = page.save(tmp_path / "two.html")
    assert "&lt;b&gt;" in path.read_text()
    opened = open_page(path)
    opened.locator("figure.arc-replays").nth(1).scroll_into_view_if_needed()
    opened.locator("figure.arc-replays[data-state=ready]").nth(1).wait_for()
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(path.as_uri())
    assert "scripts" in plain.locator(".arc-wait").first.inner_text()
    context.close()


def test_a_recording_without_steps_has_no_page(recording, tmp_path):
    arrays = ("task", "pair", "operation", "selection", "reward", "similarity", "ends")
    empty = dataclasses.replace(
        recording, **{name: getattr(recording, name)[:0] for name in arrays}
    )
    with pytest.raises(viz.RecordingError, match="no steps"):
        viz.save_replay(empty, tmp_path / "none.html")


def test_an_episode_is_few_bytes(recording):
    episodes = recording.episodes[:100]
    packed = [pack_episode(frames)[0] for frames in viz.rebuild(recording, episodes)]
    steps = sum(episode.length + 1 for episode in episodes)
    assert len(base64.b64encode(b"".join(packed))) < 60 * steps
    frames = next(viz.rebuild(recording, episodes[:1]))
    count = len(frames.grids)
    raw = np.frombuffer(zlib.decompress(packed[0]), np.uint8)
    assert np.array_equal(raw[:count].astype(np.int8), frames.operations.astype(np.int8))
