"""A drawing: grids and words placed on a sheet, to be written as SVG or as pixels."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from jaxarc.utils.visualization._grid import Cells
from jaxarc.utils.visualization._palette import ARC, Palette
from worldloom._errors import WorldloomError
from worldloom.store._files import write_whole

PAPER, INK, SOFT, LINE, MARK = "#ffffff", "#14171f", "#5a6170", "#555555", "#ffffff"


class DrawingError(WorldloomError, ValueError):
    """A drawing cannot be made, or not written in that form."""


@dataclass(frozen=True, eq=False)
class PlacedGrid:
    """A grid on the sheet, its cells `cell` units wide, with some of them outlined or marked."""

    x: float
    y: float
    cell: float
    cells: Cells
    selected: Bool[np.ndarray, "height width"] | None = None
    marked: Bool[np.ndarray, "height width"] | None = None

    @property
    def size(self) -> tuple[float, float]:
        """Width and height on the sheet."""
        height, width = self.cells.shape
        return self.cell * width, self.cell * height

    def outlines(self) -> list[tuple[float, float, float, float]]:
        """The border of the selected cells, as lines `(x1, y1, x2, y2)`."""
        if self.selected is None:
            return []
        inside = np.pad(self.selected, 1)
        lines = []
        for row, column in np.argwhere(inside[1:, 1:-1] != inside[:-1, 1:-1]):
            x, y = self.x + column * self.cell, self.y + row * self.cell
            lines.append((x, y, x + self.cell, y))
        for row, column in np.argwhere(inside[1:-1, 1:] != inside[1:-1, :-1]):
            x, y = self.x + column * self.cell, self.y + row * self.cell
            lines.append((x, y, x, y + self.cell))
        return lines


@dataclass(frozen=True)
class PlacedText:
    """Words on the sheet: `(x, y)` is the middle or the left end of their base line."""

    x: float
    y: float
    text: str
    size: float = 12.0
    colour: str = INK
    centred: bool = False


@dataclass(frozen=True, eq=False)
class Drawing:
    """A sheet with grids and words. `save` writes it as `.svg` or `.png`.

    ```python
    import numpy as np
    from jaxarc.utils.visualization import draw_grid

    drawing = draw_grid(np.eye(3, dtype=int), title="An identity")
    assert drawing.svg().startswith("<svg")
    drawing.save("identity.png")
    ```
    """

    width: float
    height: float
    grids: tuple[PlacedGrid, ...] = ()
    texts: tuple[PlacedText, ...] = ()
    palette: Palette = field(default=ARC)

    def svg(self) -> str:
        """The drawing as an SVG document; its words are in whatever font the reader has."""
        from jaxarc.utils.visualization._svg import to_svg

        return to_svg(self)

    def png(self, *, scale: float | int = 1.0) -> bytes:
        """The drawing as a PNG file, `scale` pixels a unit. Needs the extra `plot`."""
        from jaxarc.utils.visualization._raster import to_png

        return to_png(self, scale)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing; the ending of the name says how."""
        path = Path(path)
        match path.suffix.lower():
            case ".svg":
                return write_whole(path, self.svg().encode())
            case ".png":
                return write_whole(path, self.png(scale=2.0))
            case ".gif":
                return Animation((self,)).save(path)
        raise DrawingError(f"{path.name!r}: expected a name that ends in .svg, .png or .gif")


@dataclass(frozen=True, eq=False)
class Animation:
    """Drawings of one size, one after the other. `save` writes a `.gif`. Needs the extra `plot`.

    **Arguments:**

    - `seconds`: how long each is shown; the last one three times as long.
    """

    frames: tuple[Drawing, ...]
    seconds: float | int = 0.4

    def __post_init__(self) -> None:
        sizes = {(frame.width, frame.height) for frame in self.frames}
        if len(sizes) != 1:
            raise DrawingError(f"an animation needs frames of one size; got {len(sizes)} sizes")

    def gif(self, *, scale: float | int = 1.0) -> bytes:
        """The animation as a GIF file that begins again at its end."""
        from jaxarc.utils.visualization._raster import to_gif

        return to_gif(self.frames, self.seconds, scale)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the animation."""
        path = Path(path)
        if path.suffix.lower() != ".gif":
            raise DrawingError(f"{path.name!r}: an animation is a .gif")
        return write_whole(path, self.gif())
