"""Drawings as pixels: PNG, and GIF that moves. The only part that needs Pillow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from jaxarc.utils.visualization._drawing import INK, LINE, PAPER, Drawing, PlacedGrid
from jaxarc.utils.visualization._palette import Palette
from worldloom._extras import import_extra


def to_png(drawing: Drawing, scale: float | int) -> bytes:
    """The drawing as a PNG file."""
    file = io.BytesIO()
    _paint(drawing, scale).save(file, "PNG", optimize=True)
    return file.getvalue()


def to_gif(frames: Sequence[Drawing], seconds: float | int, scale: float | int) -> bytes:
    """The drawings as a GIF file, without end."""
    images = [_paint(frame, scale).quantize(64, dither=0) for frame in frames]
    shown = round(1000 * seconds)
    file = io.BytesIO()
    images[0].save(
        file,
        "GIF",
        save_all=True,
        append_images=images[1:],
        duration=[shown] * (len(images) - 1) + [3 * shown],
        loop=0,
        disposal=1,
    )
    return file.getvalue()


def _paint(drawing: Drawing, scale: float | int) -> Any:
    pillow = import_extra("PIL.Image", extra="plot", purpose="drawing pixels")
    draw_module = import_extra("PIL.ImageDraw", extra="plot", purpose="drawing pixels")
    font_module = import_extra("PIL.ImageFont", extra="plot", purpose="drawing pixels")
    size = (round(drawing.width * scale), round(drawing.height * scale))
    image = pillow.new("RGB", size, PAPER)
    pen = draw_module.Draw(image)
    for grid in drawing.grids:
        _grid(pen, grid, drawing.palette, scale)
    for text in drawing.texts:
        font = font_module.load_default(text.size * scale)
        at = (text.x * scale, text.y * scale)
        pen.text(at, text.text, fill=text.colour, font=font, anchor="ms" if text.centred else "ls")
    return image


def _grid(pen: Any, grid: PlacedGrid, palette: Palette, scale: float | int) -> None:
    cells, side = grid.cells, grid.cell * scale
    left, top = grid.x * scale, grid.y * scale
    lines = LINE if side >= 4 else None
    for row, column in zip(*cells.exist.nonzero(), strict=True):
        colour = int(cells.colours[row, column])
        x, y = left + column * side, top + row * side
        box = [round(x), round(y), round(x + side), round(y + side)]
        pen.rectangle(box, fill=palette.colours[colour], outline=lines)
        if grid.marked is not None and grid.marked[row, column]:
            ink = INK if palette.is_light(colour) else PAPER
            middle, radius = (x + side / 2, y + side / 2), side / 6
            pen.circle(middle, radius, fill=ink)
    for ink, width in ((INK, 0.28), (PAPER, 0.14)):
        for x1, y1, x2, y2 in grid.outlines():
            ends = [x1 * scale, y1 * scale, x2 * scale, y2 * scale]
            pen.line(ends, fill=ink, width=max(1, round(side * width)))
