"""Grids on a terminal: in full colour, in 16 colours, or as digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool

from jaxarc.utils.visualization._grid import Cells, cells_of, differing
from jaxarc.utils.visualization._palette import ARC, Palette, find_palette

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement


class ConsoleGrid:
    """One grid as something that `rich` prints.

    A cell is two columns wide. Without colours it is its digit, with `*` behind where marked.

    **Arguments:**

    - `marks`: cells to mark, as large as the grid.
    """

    def __init__(
        self,
        cells: Cells,
        *,
        title: str = "",
        palette: Palette = ARC,
        marks: Bool[np.ndarray, "height width"] | None = None,
    ):
        self.cells = cells
        self.title = title
        self.palette = palette
        self.marks = np.zeros(cells.shape, bool) if marks is None else marks

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        width = max(2 * self.cells.shape[1], len(self.title))
        return Measurement(width, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment
        from rich.style import Style

        styles = self._styles(console.color_system)
        if self.title:
            yield Segment(self.title, Style(bold=True))
            yield Segment.line()
        for colours, exist, marks in zip(
            self.cells.colours, self.cells.exist, self.marks, strict=True
        ):
            for colour, there, marked in zip(colours, exist, marks, strict=True):
                if not there:
                    yield Segment("· ", Style(dim=True))
                elif styles is None:
                    yield Segment(f"{colour}*" if marked else f"{colour} ")
                else:
                    yield Segment("><" if marked else "  ", styles[colour])
            yield Segment.line()

    def _styles(self, color_system: str | None) -> list[Any] | None:
        from rich.style import Style

        if color_system is None:
            return None
        few = color_system in ("standard", "windows")
        grounds = self.palette.basic if few else self.palette.colours
        inks = ("black" if self.palette.is_light(k) else "bright_white" for k in range(10))
        return [
            Style(bgcolor=ground, color=ink, bold=True)
            for ground, ink in zip(grounds, inks, strict=True)
        ]


def side_by_side(pictures: Sequence[ConsoleGrid]) -> Any:
    """Grids next to each other, as many in a line as the terminal has room for."""
    from rich.columns import Columns

    return Columns(pictures, padding=(1, 3))


def comparison(
    grid: Any, target: Any, *, titles: tuple[str, str] = ("grid", "target"), palette: Palette = ARC
) -> Any:
    """Two grids side by side, with the cells of the first that differ from the second marked."""
    left, right = cells_of(grid, name=titles[0]), cells_of(target, name=titles[1])
    return side_by_side(
        [
            ConsoleGrid(left, title=titles[0], palette=palette, marks=differing(left, right)),
            ConsoleGrid(right, title=titles[1], palette=palette, marks=differing(right, left)),
        ]
    )


def print_to(console: Console | None, *things: Any) -> None:
    """Print; a reader that has gone is a `BrokenPipeError`, and never the end of the program."""
    if console is None:
        console = plain_console()
    for thing in things:
        console.print(thing)


def plain_console() -> Console:
    """A console for the standard output as it is now."""
    from rich.console import Console

    class Steady(Console):
        """A console that does not end the process when its pipe is closed."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(32, "whoever read the output has gone")

    return Steady(highlight=False)


def log_grid_to_console(
    grid: Any,
    mask: Any = None,
    title: str = "Grid",
    *,
    palette: Palette | str = ARC,
    console: Console | None = None,
) -> None:
    """Print a grid. Outside of compiled code; inside it, `jax_log_grid`.

    **Arguments:**

    - `grid`: `[height, width]` of 0 to 9; -1 is no cell.
    - `mask`: where there are cells.
    - `palette`: `"arc"` or `"colour-blind"`.
    - `console`: where to print; the standard output by default.

    ```python
    import numpy as np
    from jaxarc.utils.visualization import log_grid_to_console

    log_grid_to_console(np.eye(3, dtype=int), title="An identity")
    ```
    """
    picture = ConsoleGrid(cells_of(grid, mask), title=title, palette=find_palette(palette))
    print_to(console, picture)


def log_comparison_to_console(
    grid: Any,
    target: Any,
    *,
    titles: tuple[str, str] = ("grid", "target"),
    palette: Palette | str = ARC,
    console: Console | None = None,
) -> None:
    """Print two grids side by side, with the cells that differ marked by `><`, or by `*`.

    ```python
    import numpy as np
    from jaxarc.utils.visualization import log_comparison_to_console

    log_comparison_to_console(np.eye(3, dtype=int), np.zeros((3, 3), int))
    ```
    """
    print_to(console, comparison(grid, target, titles=titles, palette=find_palette(palette)))
