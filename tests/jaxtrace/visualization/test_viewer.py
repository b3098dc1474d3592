"""The page with tracks as a reader meets it: opened in Chromium, turned, zoomed, played."""

from __future__ import annotations

import re
import zlib

import numpy as np
import pytest
from browser import SOFTWARE_WEBGL, launched, reading
from tracks import orbit

import jaxtrace as jt
from jaxtrace import export
from jaxtrace.visualization import Viewer, ViewerError, write_viewer
from jaxtrace.visualization._pack import Choice, choose, gather, pack
from worldloom import report
from worldloom.store import StoreError

READY = "figure.tracks[data-state=ready]"
VIEWER = "document.querySelector('figure.tracks').viewer"
PLAYER = "document.querySelector('figure.tracks').player"


@pytest.fixture(scope="module")
def browser(chromium):
    with launched(chromium, SOFTWARE_WEBGL) as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    tracks = orbit(n=40, t=9, dim=3, scalars=True)
    return write_viewer(tracks, tmp_path_factory.mktemp("page") / "tracks.html", title="Orbits")


@pytest.fixture
def open_page(browser, path):
    with reading(browser, path, width=1280, height=900, ready=READY) as open_it:
        yield open_it


def place_of(page, frame: float) -> list[dict]:
    """Draw a frame, or half of the way to the next, and look at where particles should be."""
    page.evaluate(f"{PLAYER}.seek({int(12 * frame)})")
    return page.evaluate(
        """() => {
          const { viewer } = document.querySelector('figure.tracks');
          const { tracks, camera, look, render } = viewer;
          render();
          const canvas = document.querySelectorAll('.tracks-stage canvas')[1];
          const copy = document.createElement('canvas');
          [copy.width, copy.height] = [canvas.width, canvas.height];
          const context = copy.getContext('2d', { willReadFrequently: true });
          context.drawImage(canvas, 0, 0);
          const project = camera.projector();
          const ratio = canvas.width / camera.width;
          return Array.from({ length: tracks.count }, (_, i) => {
            const p = (look.frame * tracks.count + i) * tracks.dim;
            const q = p + (look.part ? tracks.count * tracks.dim : 0);
            const all = tracks.positions;
            const mix = (k) => all[p + k] * (1 - look.part) + all[q + k] * look.part;
            const at = (k) => k < tracks.dim ? mix(k) / 65535 : .5;
            const share = [0, 1, 2].map(at);
            const [x, y] = project(...share);
            const pixel = context.getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1);
            const flag = tracks.flags[look.frame * tracks.count + i];
            return { share, pixel: [...pixel.data], flag };
          });
        }"""
    )


def check_points(page, tracks, frame):
    order = np.random.default_rng(0).permutation(tracks.N)
    low, high = page.evaluate(
        "(() => { const a = JSON.parse(document.querySelector('.about').textContent);"
        " return [a.low, a.high]; })()"
    )
    found = place_of(page, frame)
    before, after = tracks.positions[int(frame)], tracks.positions[int(np.ceil(frame))]
    expected = ((before + after)[order] / 2 - low) / (np.array(high) - low)
    np.testing.assert_allclose([f["share"][: tracks.dim] for f in found], expected, atol=1e-5)
    statuses = tracks.status[int(frame), order]
    np.testing.assert_array_equal([f["flag"] & 15 for f in found], statuses)
    drawn = np.array([f["pixel"][3] > 100 for f in found])
    assert drawn[statuses != jt.Status.WAITING].mean() > 0.9  # some are behind others' edges
    return found


def test_particles_are_painted_where_they_are(open_page):
    tracks = orbit(n=40, t=9, dim=3, scalars=True)
    page = open_page()
    assert page.locator(READY).get_attribute("data-renderer") == "canvas"
    for frame in (0, 3.5, 8):
        check_points(page, tracks, frame)


def test_webgl_paints_the_same(browser, path):
    tracks = orbit(n=40, t=9, dim=3, scalars=True)
    # Chromium remarks that a card's picture is read back, which this test alone does.
    driver = "GL Driver Message"
    with reading(browser, path, width=800, height=700, ready=READY, allowed=driver) as open_it:
        page = open_it(fragment="#webgl")
        assert page.locator(READY).get_attribute("data-renderer") == "webgl"
        for frame in (0, 3.5, 8):
            by_card = check_points(page, tracks, frame)
        by_hand = place_of(open_it(fragment="#canvas"), 8)
        pixels = np.array([[f["pixel"][:3] for f in found] for found in (by_card, by_hand)], float)
        assert np.median(np.abs(pixels[0] - pixels[1])) < 40


def test_time_runs_by_play_slider_and_keys(open_page):
    page = open_page()
    figure = page.locator("figure.tracks")
    figure.focus()
    assert page.locator(".tracks-readout strong").inner_text() == "t = 10"
    for key, record in {"ArrowRight": 1, "Shift+ArrowRight": 8, "ArrowLeft": 7, "Home": 0}.items():
        page.keyboard.press(key)
        assert page.evaluate(f"{PLAYER}.frame") == 12 * record, key
    page.get_by_role("slider", name="Position").fill("50")
    assert page.evaluate(f"[{VIEWER}.look.frame, {VIEWER}.look.part]") == [4, pytest.approx(2 / 12)]
    assert page.locator(".tracks-readout strong").inner_text() == "t = 11.04"
    figure.focus()
    page.keyboard.press(" ")
    page.wait_for_function(f"() => {PLAYER}.frame > 60")
    page.keyboard.press(" ")
    assert not page.evaluate(f"{PLAYER}.playing")


def test_the_number_of_the_living_is_that_of_all(open_page):
    page = open_page()
    tracks = orbit(n=40, t=9, dim=3)
    for frame in (0, 3, 8):
        page.evaluate(f"{PLAYER}.seek({12 * frame})")
        alive = int((tracks.status[frame] == 0).sum())
        assert page.locator(".tracks-readout span").inner_text() == f"{alive} of 40 alive"


def test_colours_have_a_legend(open_page):
    page = open_page()
    legend = page.locator(".tracks-legend")
    speeds = orbit(n=40, t=9, dim=3).speed()
    least, most = map(float, re.findall(r"[\d.]+", legend.inner_text()))
    assert least == pytest.approx(np.percentile(speeds, 0.2), abs=0.02)
    assert most == pytest.approx(np.percentile(speeds, 99.8), abs=0.02)
    page.get_by_label("Colour").select_option("status")
    page.evaluate(f"{PLAYER}.seek(999)")
    assert legend.inner_text().split("\n") == ["status", "alive 39", "exited 1"]
    page.locator("figure.tracks").focus()
    page.keyboard.press("c")
    assert page.get_by_label("Colour").input_value() == "speed"
    options = page.get_by_label("Colour").locator("option").all_inner_texts()
    assert options == ["speed", "age", "temperature", "status"]


def test_ended_particles_can_be_hidden(open_page):
    page = open_page()
    gone = int(np.flatnonzero(np.random.default_rng(0).permutation(40) == 2)[0])
    assert place_of(page, 8)[gone]["pixel"][3] > 0
    page.get_by_label("Ended particles").uncheck()
    page.get_by_label("Trails").select_option("none")
    assert place_of(page, 8)[gone]["pixel"][3] == 0


def test_drag_turns_shift_moves_and_the_wheel_zooms_once_it_was_clicked(open_page):
    page = open_page()
    state = f"(({{ yaw, pitch, zoom, pan }}) => [yaw, pitch, zoom, ...pan])({VIEWER}.camera)"
    first = page.evaluate(state)
    box = page.locator(".tracks-stage").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(50)
    assert page.evaluate(state) == first
    page.mouse.down()
    page.mouse.move(middle[0] + 50, middle[1] + 20, steps=3)
    page.mouse.up()
    turned = page.evaluate(state)
    assert turned[0] == pytest.approx(first[0] - 0.4)
    assert turned[1] == pytest.approx(first[1] + 0.16)
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"() => {VIEWER}.camera.zoom > 1.3")
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(middle[0] + 90, middle[1], steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert page.evaluate(state)[3] > turned[3]
    assert page.evaluate(state)[0] == turned[0]
    page.get_by_label("Reset view").click()
    assert page.evaluate(state) == first
    page.get_by_label("Zoom in").click()
    assert page.evaluate(state)[2] == pytest.approx(1.4)


def test_zooming_keeps_what_is_under_the_pointer(open_page):
    page = open_page()
    moved = page.evaluate(
        f"""() => {{
          const {{ camera }} = {VIEWER};
          const before = camera.projector()(0.8, 0.5, 0.5);
          camera.magnify(1.7, before[0] - camera.width / 2, before[1] - camera.height / 2);
          const after = camera.projector()(0.8, 0.5, 0.5);
          return [after[0] - before[0], after[1] - before[1]];
        }}"""
    )
    assert np.abs(moved).max() < 1e-6


def test_up_is_up_and_the_axes_are_right_handed(open_page):
    page = open_page()
    seen = page.evaluate(
        f"""() => {{
          const {{ camera }} = {VIEWER};
          Object.assign(camera, {{ yaw: 0, pitch: 0.4 }});
          const see = camera.projector();
          return [[0, .5, .5], [1, .5, .5], [.5, 0, .5], [.5, 1, .5], [.5, .5, 0], [.5, .5, 1]]
            .map((place) => see(...place));
        }}"""
    )
    left, right, near, far, low, high = seen
    assert left[0] < right[0]
    assert near[2] < far[2]  # further away
    assert near[1] > far[1]  # seen from above
    assert low[1] > high[1]  # pixels count downwards


def test_flow_in_two_dimensions_is_seen_from_above(open_page, tmp_path):
    page = open_page(write_viewer(orbit(n=40), tmp_path / "flat.html"))
    check_points(page, orbit(n=40), 3)
    corners = page.evaluate(
        f"(p => [p(0, 0, .5), p(1, 1, .5), p(1, 0, .5)])({VIEWER}.camera.projector())"
    )
    assert corners[0][0] < corners[1][0]
    assert corners[1][0] == pytest.approx(corners[2][0])
    assert corners[0][1] == pytest.approx(corners[2][1])
    assert corners[0][1] > corners[1][1]


@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen(open_page, width):
    page = open_page(width=width, color_scheme="dark" if width < 500 else "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    stage = page.locator(".tracks-stage").bounding_box()
    assert stage["x"] >= 0
    assert stage["x"] + stage["width"] <= width
    inside = page.evaluate(
        """() => [...document.querySelectorAll('.tracks :is(button, select, input)')]
             .every(e => e.getBoundingClientRect().right <= innerWidth)"""
    )
    assert inside


def test_a_jump_is_not_drawn_as_a_way(tmp_path):
    tracks = orbit(n=5, generations=True)
    order = np.random.default_rng(0).permutation(5)
    packed = pack(gather(tracks, Choice(np.arange(9), order), []), [])
    size = 9 * 5
    flags = np.frombuffer(zlib.decompress(packed.data), np.uint8)[4 * size : 5 * size].reshape(9, 5)
    assert np.argwhere(flags & 16).tolist() == [[4, int(np.flatnonzero(order == 3)[0])]]


@pytest.mark.parametrize(("n", "t"), [(8_000, 60), (1_500, 250)])
def test_the_page_is_no_larger_than_asked(tmp_path, n, t):
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(t, n, 2)).astype(np.float32)
    tracks = jt.Trajectory(
        positions=steps.cumsum(axis=0),
        times=np.arange(float(t)),
        status=np.zeros((t, n), np.int8),
        ages=np.zeros((t, n)),
    )
    path = write_viewer(tracks, tmp_path / "t.html", max_bytes=700_000)
    assert 500_000 < path.stat().st_size < 800_000
    chosen = choose(tracks, ["speed"], 10**9)
    assert len(chosen.rows) == t
    assert sorted(chosen.particles) == list(range(n))
    fewer = choose(tracks, ["speed"], 500_000)
    assert len(fewer.rows) >= 30


def test_it_is_a_piece_of_any_report(open_page, tmp_path):
    page = report.Report("Two").add(Viewer(orbit(), caption="<b>")).add(Viewer(orbit(dim=3)))
    path = page.save(tmp_path / "two.html")
    assert "&lt;b&gt;" in path.read_text()
    opened = open_page(path)
    opened.locator("figure.tracks").nth(1).scroll_into_view_if_needed()
    opened.locator(READY).nth(1).wait_for()


def test_without_scripts_it_says_so(open_page, browser, path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert "scripts" in page.locator(".tracks-wait").inner_text()
    context.close()


def test_a_damaged_page_says_so(browser, path, tmp_path):
    text = path.read_text(encoding="utf-8")
    start = text.index('class="data">') + len('class="data">')
    changed = tmp_path / "changed.html"
    changed.write_text(text[:start] + "AAAA" + text[start + 4 :], encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(changed.as_uri())
    page.wait_for_selector("figure.tracks[data-state=failed]")
    assert "cannot show the tracks" in page.locator(".failed").inner_text()
    context.close()


def test_what_cannot_be_shown_is_refused(tmp_path):
    with pytest.raises(ViewerError, match=r"colour_by='heat'.*'speed', 'age', 'status'"):
        write_viewer(orbit(), tmp_path / "t.html", colour_by="heat")
    with pytest.raises(ViewerError, match="nothing to show"):
        write_viewer(orbit()[:0], tmp_path / "t.html")
    with pytest.raises(ViewerError, match="speed needs velocities"):
        write_viewer(orbit()[:1], tmp_path / "t.html")
    assert write_viewer(orbit()[:1], tmp_path / "one.html", colour_by="status").exists()
    assert export.write(orbit(), tmp_path / "by_ending.html").exists()
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        write_viewer(orbit(), tmp_path / "folder.html")
