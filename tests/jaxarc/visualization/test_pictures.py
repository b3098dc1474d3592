"""Grids as pictures: on terminals, as SVG, PNG and GIF. Every picture is read back."""

from __future__ import annotations

import io
import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image
from rich.console import Console

from jaxarc import create_mock_task, data
from jaxarc.utils import visualization as viz

GRID = np.arange(12).reshape(3, 4) % 10
shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=12)
grids = hnp.arrays(np.int32, shapes, elements=st.integers(0, 9))

BAD = {
    "a colour too high": (np.array([[0, 10]]), "10 in row 0, column 1"),
    "a colour too low": (np.array([[0], [-2]]), "-2 in row 1, column 0"),
    "not a number": (np.array([[0.0, np.nan]]), "nan in row 0, column 1"),
    "a fraction": (np.array([[0.5]]), "0.5 in row 0"),
    "infinite": (np.array([[np.inf]]), "inf"),
    "0 x 0": (np.zeros((0, 0), int), "0 x 0"),
    "200 x 200": (np.zeros((200, 200), int), "200 x 200"),
    "one axis": (np.zeros(5, int), "shape"),
    "words": (np.array([["a"]]), "dtype"),
    "nothing exists": (np.full((2, 2), -1), "no cells"),
}
TAKERS = {
    "console": viz.log_grid_to_console,
    "drawing": viz.draw_grid,
    "comparison": lambda grid: viz.draw_comparison(grid, GRID),
    "strip": lambda grid: viz.draw_strip([GRID, grid]),
    "animation": lambda grid: viz.animate([GRID, grid]),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize(("grid", "words"), BAD.values(), ids=BAD)
def test_a_bad_grid_is_a_named_error(take, grid, words):
    with pytest.raises(viz.GridError, match=re.escape(words)):
        take(grid)


def test_a_mask_must_fit():
    with pytest.raises(viz.GridError, match=r"bool\[3, 4\]"):
        viz.draw_grid(GRID, mask=np.ones((4, 3), bool))


def printed(color_system, *args, printer=viz.log_grid_to_console, width=200, **options) -> str:
    file = io.StringIO()
    console = Console(
        file=file, color_system=color_system, force_terminal=color_system is not None, width=width
    )
    printer(*args, console=console, **options)
    return file.getvalue()


@given(grids)
def test_without_colours_the_digits_are_the_grid(grid):
    lines = printed(None, grid, title="t").splitlines()
    assert lines[0] == "t"
    assert [[int(cell) for cell in line.split()] for line in lines[1:]] == grid.tolist()


# A terminal of 16 colours has its own, whatever the palette.
@pytest.mark.parametrize(
    ("system", "palette"),
    [
        ("standard", "arc"),
        *(
            (system, palette)
            for system in ("256", "truecolor")
            for palette in ("arc", "colour-blind")
        ),
    ],
)
def test_every_colour_looks_different(system, palette):
    text = printed(system, np.arange(10)[None], title="", palette=palette)
    codes = re.findall(r"\x1b\[([\d;]+)m  ", text)
    grounds = [re.search(r"(?:^|;)(48;[25];[\d;]+|4\d|10\d)$", code)[1] for code in codes]
    assert len(set(grounds)) == 10, grounds


def test_differences_are_marked():
    other = GRID.copy()
    other[1, 2] = 0
    show = viz.log_comparison_to_console
    text = printed(None, GRID, other, printer=show)
    assert "4 5 6*7" in text
    assert text.count("*") == 2
    assert printed("truecolor", GRID, other, printer=show).count("><") == 2
    larger = np.pad(GRID, ((0, 1), (0, 0)))
    assert printed(None, GRID, larger, printer=show).count("*") == 4
    assert printed(None, GRID, GRID, printer=show).count("*") == 0


def test_grids_are_side_by_side_where_there_is_room():
    show = viz.log_comparison_to_console
    assert len(printed(None, GRID, GRID, printer=show, width=80).splitlines()) == 4
    assert len(printed(None, GRID, GRID, printer=show, width=12).splitlines()) > 8


def cells_of_svg(text: str, palette) -> dict[tuple[float, float], str]:
    """The colour at the middle of each cell, from the rectangles of the document."""
    root = ElementTree.fromstring(text)
    found = {}
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        colour = path.get("fill")
        if colour == "none":
            continue
        for x, y, w, h in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)", path.get("d")):
            side = float(h)
            for k in range(round(float(w) / side)):
                found[round(float(y) + side / 2), round(float(x) + (k + 0.5) * side)] = colour
    return found


@given(grids)
def test_svg_has_every_cell(grid):
    drawing = viz.draw_grid(grid)
    found = cells_of_svg(drawing.svg(), viz.ARC)
    assert len(found) == grid.size
    in_order = [colour for _, colour in sorted(found.items())]
    assert in_order == [viz.ARC.colours[cell] for cell in grid.flat]


@given(grids, st.sampled_from([viz.ARC, viz.COLOUR_BLIND]))
def test_png_has_every_cell(grid, palette):
    drawing = viz.draw_grid(grid, palette=palette)
    image = Image.open(io.BytesIO(drawing.png())).convert("RGB")
    assert image.size == (round(drawing.width), round(drawing.height))
    (placed,) = drawing.grids
    for (row, column), cell in np.ndenumerate(grid):
        x, y = placed.x + (column + 0.3) * placed.cell, placed.y + (row + 0.3) * placed.cell
        assert image.getpixel((round(x), round(y))) == palette.rgb(int(cell))


def test_text_is_text():
    text = viz.draw_grid(GRID, title="<b>&").svg()
    assert "&lt;b&gt;&amp;" in text
    ElementTree.fromstring(text)


def test_nothing_is_fetched():
    text = viz.draw_task(create_mock_task()).svg()
    links = set(re.findall(r"[a-z]+://[^\"]+", text))
    assert links == {"http://www.w3.org/2000/svg"}


def test_an_animation_moves(tmp_path: Path):
    grids = [np.full((3, 3), colour) for colour in (1, 4, 2)] + [np.full((2, 5), 3)]
    path = viz.animate(grids, captions=list("abcd"), seconds=0.2).save(tmp_path / "a.gif")
    image = Image.open(io.BytesIO(path.read_bytes()))
    assert image.n_frames == 4
    for index, colour in enumerate((1, 4, 2)):
        image.seek(index)
        assert image.info["duration"] == 200
        shown = image.convert("RGB")
        middle = shown.getpixel((shown.width // 2, shown.height // 2 + 8))
        assert np.abs(np.subtract(middle, viz.ARC.rgb(colour))).max() < 12


@pytest.mark.parametrize("ending", [".svg", ".png", ".gif"])
def test_pictures_are_saved_by_their_ending(ending, tmp_path: Path):
    path = viz.draw_grid(GRID).save(tmp_path / "new" / f"grid{ending}")
    start = {".svg": b"<svg", ".png": b"\x89PNG", ".gif": b"GIF8"}[ending]
    assert path.read_bytes().startswith(start)
    with pytest.raises(viz.DrawingError, match=r"\.bmp"):
        viz.draw_grid(GRID).save(tmp_path / "grid.bmp")


def test_a_task_sheet_has_every_pair():
    tasks = data.load("AGI1-train")
    raw, padded = tasks.tasks[0], tasks.get_task_by_index(0)
    sheet = viz.draw_task(raw)
    pairs = raw.demos + raw.tests
    assert len(sheet.grids) == 2 * len(pairs)
    for one, other in zip(sheet.grids, viz.draw_task(padded).grids, strict=True):
        assert np.array_equal(one.cells.colours, other.cells.colours)
    assert len(viz.draw_task(raw, answers=False).grids) == 2 * len(raw.demos) + len(raw.tests)


def test_a_mosaic_shows_every_world_once():
    worlds = np.full((5, 6, 6), -1)
    for k in range(5):
        worlds[k, : k + 1, :2] = k
    drawing = viz.draw_mosaic(worlds, columns=3)
    assert [placed.cells.shape for placed in drawing.grids] == [(k + 1, 2) for k in range(5)]
    boxes = [(p.x, p.y, p.x + p.size[0], p.y + p.size[1]) for p in drawing.grids]
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    with pytest.raises(viz.DrawingError, match="worlds"):
        viz.draw_mosaic(GRID)


def test_a_selection_is_outlined():
    chosen = np.zeros((3, 4), bool)
    chosen[1, 1:3] = True
    drawing = viz.draw_strip([GRID], selections=[chosen])
    assert len(drawing.grids[0].outlines()) == 6  # two cells: an outline of six sides
    plain = viz.draw_strip([GRID]).png()
    assert drawing.png() != plain


def test_a_palette_by_name():
    assert viz.draw_grid(GRID, palette="colour-blind").palette is viz.COLOUR_BLIND
    with pytest.raises(viz.PaletteError, match="arc, colour-blind"):
        viz.draw_grid(GRID, palette="pink")


# How people without one kind of cone see linear RGB (Vienot, Brettel and Mollon 1999; Brettel).
SIGHTS = {
    "protanopia": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deuteranopia": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


def seen(palette, sight: str) -> np.ndarray:
    """The colours as somebody sees them, in CIELAB."""
    rgb = np.array([palette.rgb(k) for k in range(10)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.array(SIGHTS[sight]).T, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = linear @ np.array(to_xyz).T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    x, y, z = f.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def nearest(colours: np.ndarray) -> float:
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(colours, 2))


@pytest.mark.parametrize("sight", SIGHTS)
def test_the_colour_blind_palette_is_told_apart(sight):
    assert nearest(seen(viz.COLOUR_BLIND, sight)) > 19
    assert nearest(seen(viz.COLOUR_BLIND, sight)) > 1.5 * nearest(seen(viz.ARC, sight))
