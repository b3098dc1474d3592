from __future__ import annotations

import base64
import io
import re
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from worldloom import bench, report
from worldloom.report._axis import Axis, nice_step, tick_label
from worldloom.report._markdown import blocks, inline
from worldloom.report._png import encode_png
from worldloom.report._replay import pack, script_json

PALETTE = ["#000000", "#ff0000", "#00ff00"]


def test_markdown_makes_the_elements_it_promises():
    text = "One **strong** and *soft* `a < b`,\nsame [line](https://x.y/z).\n\n- first\n- second\n"
    assert blocks(text) == (
        "<p>One <strong>strong</strong> and <em>soft</em> <code>a &lt; b</code>, "
        'same <a href="https://x.y/z">line</a>.</p>\n<ul><li>first</li><li>second</li></ul>'
    )
    assert blocks("```\nx = 1 < 2\n\ny\n```") == "<pre><code>x = 1 &lt; 2\n\ny</code></pre>"
    assert inline("2 * 3 * 4 and a*b*c") == "2 * 3 * 4 and a*b*c"


@pytest.mark.parametrize("target", ["javascript:alert(1)", "data:text/html,x", "JaVaScript:x"])
def test_markdown_makes_no_dangerous_links(target):
    assert "<a" not in inline(f"[click]({target})")


@given(st.text(alphabet="<>&\"'`*[]()#-\n ab:/", max_size=60))
def test_markdown_lets_no_tag_through(text):
    allowed = r"</?(p|ul|li|pre|code|strong|em)>|<a href=\"[^\"<>]*\">|</a>"
    left = re.sub(allowed, "", blocks(text))
    assert "<" not in left
    assert ">" not in left


@given(arrays.arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 5))))
def test_packed_frames_unpack(frames):
    plain = np.frombuffer(zlib.decompress(base64.b64decode(pack(frames))), np.uint8)
    undone = np.cumsum(plain.reshape(frames.shape), axis=0, dtype=np.uint8)
    np.testing.assert_array_equal(undone, frames)


def test_slow_frames_pack_small():
    frames = np.repeat(np.random.default_rng(0).integers(0, 9, (1, 64, 64), np.uint8), 1000, axis=0)
    assert len(pack(frames)) < frames.size / 200


def test_a_mosaic_puts_every_picture_in_its_place():
    frames = np.arange(2 * 5 * 2 * 3, dtype=np.uint8).reshape(2, 5, 2, 3)
    sheet = report.mosaic(frames, columns=2, gap=1, fill=99)
    assert sheet.shape == (2, 8, 7)
    np.testing.assert_array_equal(sheet[:, 0:2, 0:3], frames[:, 0])
    np.testing.assert_array_equal(sheet[:, 0:2, 4:7], frames[:, 1])
    np.testing.assert_array_equal(sheet[:, 6:8, 0:3], frames[:, 4])
    assert (sheet[:, 2] == 99).all()
    assert (sheet[:, 6:8, 4:7] == 99).all()
    assert report.mosaic(np.zeros((1, 9, 2, 2, 3), np.uint8), gap=0).shape == (1, 6, 6, 3)
    with pytest.raises(report.ReportError, match="expected \\[time, pictures"):
        report.mosaic(np.zeros((1, 2, 2)))


@pytest.mark.parametrize("indexed", [True, False])
def test_our_png_is_read_by_others(indexed):
    from matplotlib.image import imread

    rng = np.random.default_rng(0)
    palette = rng.integers(0, 256, (7, 3), np.uint8)
    indices = rng.integers(0, 7, (5, 9), np.uint8)
    data = encode_png(indices, palette) if indexed else encode_png(palette[indices])
    pixels = np.rint(255 * imread(io.BytesIO(data), format="png")).astype(np.uint8)
    np.testing.assert_array_equal(pixels[..., :3], palette[indices])


def test_a_gradient_passes_through_its_colours():
    palette = report.gradient(["#000000", "#ff8000", "#ffffff"], size=5)
    assert palette.dtype == np.uint8
    assert palette[[0, 2, 4]].tolist() == [[0, 0, 0], [255, 128, 0], [255, 255, 255]]
    with pytest.raises(report.ReportError, match="at least two"):
        report.gradient(["#000000"])
    with pytest.raises(report.ReportError, match="size=300"):
        report.gradient(["#000000", "#ffffff"], size=300)
    with pytest.raises(report.ReportError, match="'red'"):
        report.gradient(["red", "#ffffff"])


@pytest.mark.parametrize(
    ("frames", "options", "message"),
    [
        (np.zeros((2, 3, 3)), {"palette": PALETTE}, r"float64\[2, 3, 3\]"),
        (np.zeros((3, 3), np.uint8), {"palette": PALETTE}, "expected uint8"),
        (np.zeros((0, 3, 3), np.uint8), {"palette": PALETTE}, "not empty"),
        (np.zeros((2, 3, 3), np.uint8), {}, "need a palette"),
        (np.zeros((2, 3, 3, 3), np.uint8), {"palette": PALETTE}, "must have none"),
        (np.zeros((2, 3, 3, 4), np.uint8), {}, "3 colours"),
        (np.full((2, 3, 3), 3, np.uint8), {"palette": PALETTE}, "index 3 has no colour"),
        (np.zeros((2, 3, 3), np.uint8), {"palette": PALETTE, "labels": ["a"]}, "1 labels for 2"),
        (np.zeros((2, 3, 3), np.uint8), {"palette": PALETTE, "fps": 0}, "fps=0"),
        (np.zeros((2, 3, 3), np.uint8), {"palette": np.zeros((2, 4), np.uint8)}, "palette is"),
    ],
)
def test_frames_that_are_none_are_refused(frames, options, message):
    with pytest.raises(report.ReportError, match=message):
        report.Replay(frames, alt="x", **options)


def test_a_picture_takes_figures_files_and_arrays():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([1, 2])
    png = encode_png(np.zeros((2, 2, 3), np.uint8))
    contents = [
        (figure, None),
        (png, None),
        (np.zeros((2, 2, 3), np.uint8), None),
        (np.ones((2, 2), np.uint8), PALETTE),
    ]
    for content, palette in contents:
        html = report.Picture(content, alt='a "dot"', palette=palette).render().html
        assert 'alt="a &quot;dot&quot;"' in html
        data = base64.b64decode(html.split("base64,")[1].split('"')[0])
        assert data.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GIF89a", "not those of a PNG"),
        ("path.png", "is a str"),
        (np.zeros((2, 2), np.uint8), "with palette"),
        (np.zeros((2, 2)), "is a ndarray"),
    ],
)
def test_what_is_no_picture_is_refused(content, message):
    with pytest.raises(report.ReportError, match=message):
        report.Picture(content, alt="x").render()


def test_tables_align_numbers_and_count_cells():
    html = (
        report.Table(
            ["name", "size", "ratio"], [["a<b", 12345, "3.2x (3.1-3.3)"], ["c", 7, "1.0 ms"]]
        )
        .render()
        .html
    )
    assert "a&lt;b" in html
    assert '<td class="number">12,345</td>' in html
    assert '<td class="number">1.0 ms</td>' in html
    assert "<td>c</td>" in html
    assert "<th" in report.Table(["a"], []).render().html
    gaps = report.Table(["a", "b"], [["", ""], ["12.5 ms", ""]]).render().html
    assert gaps.count('class="number"') == 3
    with pytest.raises(report.ReportError, match="row 1 has 1 cells for 2 columns"):
        report.Table(["a", "b"], [[1, 2], [3]])


def points(html):
    """The corners of every line of the wide drawing."""
    wide = html.split('class="wide"')[1].split("</svg>")[0]
    lines = re.findall(r'<polyline class="series-\d" points="([^"]*)"', wide)
    return [np.array([p.split(",") for p in line.split()], float) for line in lines]


def test_lines_go_where_their_numbers_say():
    chart = report.LineChart({"up": [0.0, 5.0, 10.0], "flat": ([0, 2], [5, 5])}, title="t")
    up, flat = points(chart.render().html)
    assert up[0, 0] < up[1, 0] < up[2, 0]
    assert up[0, 1] > up[1, 1] > up[2, 1]  # SVG counts downwards
    np.testing.assert_allclose(up[1, 1], (up[0, 1] + up[2, 1]) / 2, atol=0.11)
    np.testing.assert_allclose(flat[:, 1], up[1, 1], atol=0.11)
    np.testing.assert_allclose(flat[:, 0], up[[0, 2], 0], atol=0.11)


def test_a_log_scale_makes_decades_equal():
    (line,) = points(report.LineChart({"x": [1, 10, 100]}, title="t", y_scale="log").render().html)
    np.testing.assert_allclose(line[0, 1] - line[1, 1], line[1, 1] - line[2, 1], atol=0.11)


def test_long_lines_are_thinned_but_keep_their_peaks():
    heights = np.zeros(50_000)
    heights[31_234] = 7.0
    html = report.LineChart({"spike": heights}, title="t").render().html
    (line,) = points(html)
    assert len(line) <= 900
    assert line[:, 1].min() < line[0, 1] - 100


def test_a_thinned_line_has_as_many_points_as_it_may():
    html = (
        report.LineChart({"noise": np.random.default_rng(0).random(50_000)}, title="t")
        .render()
        .html
    )
    (line,) = points(html)
    assert 790 <= len(line) <= 802  # the ends too


def test_gaps_are_left_out_of_a_line():
    (line,) = points(report.LineChart({"x": [1.0, float("nan"), 3.0]}, title="t").render().html)
    assert line.shape == (2, 2)


@pytest.mark.parametrize(
    ("series", "options", "message"),
    [
        ({}, {}, "0 series"),
        ({"a": []}, {}, "'a' has places"),
        ({"a": ([1, 2], [1, 2, 3])}, {}, "'a' has places"),
        ({"a": [1.0, 0.0]}, {"y_scale": "log"}, "no place on a log scale"),
    ],
)
def test_charts_without_sense_are_refused(series, options, message):
    with pytest.raises(report.ReportError, match=message):
        report.LineChart(series, title="t", **options)


def test_bars_have_the_length_of_their_numbers():
    html = report.BarChart({"a": 1, "b<": 4}, title="t", muted=["a"]).render().html
    assert [float(s) for s in re.findall(r"--share: ([\d.]+)", html)] == [0.25, 1.0]
    assert "b&lt;" in html
    assert html.count("muted") == 1
    with pytest.raises(report.ReportError, match="bar 'a' is -1"):
        report.BarChart({"a": -1}, title="t")
    with pytest.raises(report.ReportError, match="empty"):
        report.BarChart({}, title="t")
    with pytest.raises(report.ReportError, match="1 values for 2"):
        report.BarChart({"a": 1, "b": 2}, title="t", values=["x"])


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans())
def test_axes_hold_their_values_and_their_ticks(low, width, padded):
    values = np.array([low, low + width])
    axis = Axis.fit(values, "linear", wanted=5, padded=padded)
    places = axis.place(values)
    assert places.min() >= -1e-6
    assert places.max() <= 1 + 1e-6
    assert 1 <= len(axis.ticks) <= 8
    assert all(-1e-6 <= axis.place(value) <= 1 + 1e-6 for value, _ in axis.ticks)


@given(st.floats(1e-9, 1e9), st.floats(1, 1e9), st.booleans())
def test_log_axes_hold_their_values(low, factor, padded):
    values = np.array([low, low * factor])
    axis = Axis.fit(values, "log", wanted=5, padded=padded)
    places = axis.place(values)
    assert places.min() >= -1e-6
    assert places.max() <= 1 + 1e-6
    assert len(axis.ticks) <= 8


def test_ticks_read_well():
    assert [nice_step(x) for x in (0.9, 1.0, 1.7, 22, 30)] == [1.0, 1.0, 2, 25, 50]
    assert [tick_label(x) for x in (0.25, 1500, 20_000, 3e6, 2e9, 1e-7, 0)] == [
        "0.25",
        "1,500",
        "20k",
        "3M",
        "2G",
        "1e-7",
        "0",
    ]


def test_a_benchmark_shows_ratios_and_names_failures():
    machine = bench.Machine("cpu", 2, 2**34, "Linux", "1 x cpu", {"jax": "0"}, 0.5)
    timings = (
        bench.Timing("naive", 10.0, 1, (1.0, 1.0), (1.0, 1.0), 1.0, 0.0),
        bench.Timing("ours <3", 10.0, 1, (0.01, 0.01), (0.01, 0.01), 1.0, 0.25),
        bench.Timing("broken", None, 1, (), (), None, None, error="x\nValueError: <b>"),
    )
    found = bench.Comparison("t", "naive", "steps", timings, machine, "now")
    html = report.Benchmark(found).render().html
    assert "<b>100x</b>" in html
    assert "100x (100-100)" in html
    assert "250 ms" in html
    assert "ours &lt;3" in html
    assert "failed: ValueError: &lt;b&gt;" in html
    dead = bench.Comparison("t", "broken", "steps", timings, machine, "now")
    assert "10.0 ms" in report.Benchmark(dead).render().html


def test_json_in_a_page_cannot_end_its_element():
    assert "<" not in script_json({"labels": ["</script><script>alert(1)"]})
