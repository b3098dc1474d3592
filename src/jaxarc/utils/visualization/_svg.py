"""Drawings as SVG, written by hand: rectangles, lines, words."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from jaxarc.utils.visualization._drawing import INK, LINE, PAPER, Drawing, PlacedGrid, PlacedText
from jaxarc.utils.visualization._palette import Palette


def to_svg(drawing: Drawing) -> str:
    """The document as text."""
    width, height = _number(drawing.width), _number(drawing.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
    ]
    for grid in drawing.grids:
        parts += _grid(grid, drawing.palette)
    parts += map(_text, drawing.texts)
    parts.append("</svg>\n")
    return "\n".join(parts)


def _grid(grid: PlacedGrid, palette: Palette) -> Iterator[str]:
    cells, side = grid.cells, grid.cell
    for colour in range(10):
        runs = "".join(_runs(grid, colour))
        if runs:
            yield f'<path fill="{palette.colours[colour]}" d="{runs}"/>'
    lines = "".join(
        f"M{_number(grid.x + column * side)} {_number(grid.y + row * side)}h{_number(side)}"
        f"v{_number(side)}h{_number(-side)}z"
        for row, column in zip(*cells.exist.nonzero(), strict=True)
    )
    yield f'<path fill="none" stroke="{LINE}" stroke-width="{_number(side / 16)}" d="{lines}"/>'
    if grid.marked is not None:
        for row, column in zip(*grid.marked.nonzero(), strict=True):
            ink = INK if palette.is_light(int(cells.colours[row, column])) else PAPER
            x, y = grid.x + (column + 0.5) * side, grid.y + (row + 0.5) * side
            yield (
                f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(side / 6)}" '
                f'fill="{ink}"/>'
            )
    outline = "".join(
        f"M{_number(x1)} {_number(y1)}L{_number(x2)} {_number(y2)}"
        for x1, y1, x2, y2 in grid.outlines()
    )
    for colour, width in ((INK, 0.28), (PAPER, 0.14)) if outline else ():
        yield (
            f'<path fill="none" stroke="{colour}" stroke-width="{_number(side * width)}" '
            f'stroke-linecap="square" d="{outline}"/>'
        )


def _runs(grid: PlacedGrid, colour: int) -> Iterator[str]:
    """Neighbouring cells of one colour in a row, as one rectangle each."""
    wanted = grid.cells.exist & (grid.cells.colours == colour)
    side = grid.cell
    for row, line in enumerate(wanted):
        column = 0
        while column < len(line):
            if not line[column]:
                column += 1
                continue
            end = column
            while end < len(line) and line[end]:
                end += 1
            yield (
                f"M{_number(grid.x + column * side)} {_number(grid.y + row * side)}"
                f"h{_number((end - column) * side)}v{_number(side)}"
                f"h{_number((column - end) * side)}z"
            )
            column = end


def _text(text: PlacedText) -> str:
    anchor = ' text-anchor="middle"' if text.centred else ""
    return (
        f'<text x="{_number(text.x)}" y="{_number(text.y)}" font-size="{_number(text.size)}" '
        f'fill="{text.colour}"{anchor}>{escape(text.text)}</text>'
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
