"""What there is to draw: a grid, a task, an episode, many worlds at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxarc.data import JaxArcTask, RawTask
from jaxarc.operations import OPERATIONS
from jaxarc.utils.visualization._drawing import (
    SOFT,
    Animation,
    Drawing,
    DrawingError,
    PlacedGrid,
    PlacedText,
)
from jaxarc.utils.visualization._grid import Cells, cells_of, differing
from jaxarc.utils.visualization._palette import ARC, Palette, find_palette
from jaxarc.utils.visualization._rebuild import Frames

MARGIN, GAP, CAPTION = 16.0, 20.0, 20.0
SIDE = 120.0  # the longer side of a grid on a sheet


def draw_grid(
    grid: Any, *, mask: Any = None, title: str = "", palette: Palette | str = ARC
) -> Drawing:
    """One grid.

    **Arguments:**

    - `grid`: `[height, width]` of 0 to 9; -1 is no cell.
    - `mask`: where there are cells.
    - `palette`: `"arc"` or `"colour-blind"`.

    ```python
    import numpy as np
    from jaxarc.utils.visualization import draw_grid

    draw_grid(np.eye(3, dtype=int), palette="colour-blind").save("identity.svg")
    ```
    """
    return _in_lines([[(title, cells_of(grid, mask), None)]], find_palette(palette), side=300.0)


def draw_comparison(
    grid: Any,
    target: Any,
    *,
    titles: tuple[str, str] = ("grid", "target"),
    palette: Palette | str = ARC,
) -> Drawing:
    """Two grids side by side; a dot marks each cell that differs."""
    left, right = cells_of(grid, name=titles[0]), cells_of(target, name=titles[1])
    line = [
        (titles[0], left, differing(left, right)),
        (titles[1], right, differing(right, left)),
    ]
    return _in_lines([line], find_palette(palette), side=240.0)


def draw_task(
    task: RawTask | JaxArcTask, *, answers: bool = True, palette: Palette | str = ARC
) -> Drawing:
    """A whole task on one sheet: a column for each pair, inputs above outputs.

    **Arguments:**

    - `answers`: also draw the outputs of the test pairs, where they are known.

    ```python
    from jaxarc import create_mock_task
    from jaxarc.utils.visualization import draw_task

    draw_task(create_mock_task()).save("task.svg")
    ```
    """
    pairs = task_pairs(task)
    inputs = [(title, shown, None) for title, shown, _ in pairs]
    outputs: list[tuple[str, Cells | None, None]] = [
        ("", output if answers or title.startswith("demo") else None, None)
        for title, _, output in pairs
    ]
    heading = task.id if isinstance(task, RawTask) else ""
    return _in_lines([inputs, outputs], find_palette(palette), heading=heading)


def task_pairs(task: RawTask | JaxArcTask) -> list[tuple[str, Cells, Cells | None]]:
    """Title, input and output of every pair of a task, demonstrations first."""
    if isinstance(task, RawTask):
        groups = (("demo", task.demos), ("test", task.tests))
        return [
            (
                f"{kind} {number + 1}",
                cells_of(pair.input, name=f"the input of {kind} {number + 1}"),
                None if pair.output is None else cells_of(pair.output),
            )
            for kind, pairs in groups
            for number, pair in enumerate(pairs)
        ]
    found = []
    for kind, count, *arrays in (
        (
            "demo",
            task.num_train_pairs,
            task.input_grids_examples,
            task.input_masks_examples,
            task.output_grids_examples,
            task.output_masks_examples,
        ),
        (
            "test",
            task.num_test_pairs,
            task.test_input_grids,
            task.test_input_masks,
            task.true_test_output_grids,
            task.true_test_output_masks,
        ),
    ):
        inputs, input_masks, outputs, output_masks = map(np.asarray, arrays)
        for number in range(int(count)):
            hidden = not output_masks[number].any()
            output = None if hidden else cells_of(outputs[number], output_masks[number])
            title = f"{kind} {number + 1}"
            found.append((title, cells_of(inputs[number], input_masks[number]), output))
    return found


def draw_strip(
    grids: Sequence[Any],
    *,
    captions: Sequence[str] | None = None,
    selections: Sequence[Any] | None = None,
    columns: int = 8,
    heading: str = "",
    palette: Palette | str = ARC,
) -> Drawing:
    """Grids one after the other, as in a comic: an episode at a glance.

    **Arguments:**

    - `captions`: a line above each grid.
    - `selections`: `bool[height, width]` for each grid: cells to outline; `None` for none.
    - `columns`: grids in a line.

    ```python
    import numpy as np
    from jaxarc.utils.visualization import draw_strip

    grids = [np.full((3, 3), colour) for colour in range(4)]
    draw_strip(grids, captions=["start", "fill 1", "fill 2", "fill 3"]).save("strip.svg")
    ```
    """
    count = len(grids)
    if count == 0:
        raise DrawingError("grids is empty; expected at least one")
    for name, given in (("captions", captions), ("selections", selections)):
        if given is not None and len(given) != count:
            raise DrawingError(f"{len(given)} {name} for {count} grids; give one for each")
    entries = [
        (
            captions[k] if captions is not None else "",
            cells_of(grid, name=f"grid {k}"),
            None if selections is None else selections[k],
        )
        for k, grid in enumerate(grids)
    ]
    lines = [entries[k : k + columns] for k in range(0, count, columns)]
    return _in_lines(lines, find_palette(palette), heading=heading, outline=True)


def draw_episode(frames: Frames, *, palette: Palette | str = ARC, columns: int = 8) -> Drawing:
    """An episode at a glance: every grid, what was done to it, and on which cells."""
    episode = frames.episode
    return draw_strip(
        list(frames.grids),
        captions=frame_captions(frames),
        selections=list(frames.selections),
        columns=columns,
        heading=f"{episode.task_id}, {episode.outcome} after {episode.length} steps",
        palette=palette,
    )


def animate_episode(
    frames: Frames, *, palette: Palette | str = ARC, seconds: float | int = 0.4
) -> Animation:
    """An episode as a film."""
    return animate(
        list(frames.grids),
        captions=frame_captions(frames),
        selections=list(frames.selections),
        seconds=seconds,
        palette=palette,
    )


def frame_captions(frames: Frames) -> list[str]:
    """The number of each step and the name of its operation."""
    names = {operation.id: operation.name.replace("_", " ") for operation in OPERATIONS}
    done = [names.get(int(number), "no operation") for number in frames.operations]
    return ["start", *(f"{step}: {name}" for step, name in enumerate(done[1:], start=1))]


def draw_mosaic(
    grids: Any, *, columns: int | None = None, palette: Palette | str = ARC, cell: float | int = 4.0
) -> Drawing:
    """Many worlds at once, small, without words.

    **Arguments:**

    - `grids`: `[worlds, height, width]`, such as the grids of an observation; -1 is no cell.
    - `columns`: worlds in a line; by default as many as there are lines.
    - `cell`: units a cell.

    ```python
    import numpy as np
    from jaxarc.utils.visualization import draw_mosaic

    draw_mosaic(np.random.default_rng(0).integers(0, 10, (64, 8, 8))).save("worlds.png")
    ```
    """
    worlds = np.asarray(grids)
    if worlds.ndim != 3 or len(worlds) == 0:
        raise DrawingError(f"grids is {list(worlds.shape)}; expected [worlds, height, width]")
    across = columns or math.ceil(math.sqrt(len(worlds)))
    if across < 1:
        raise DrawingError(f"columns is {columns}; expected at least 1")
    cells = [cells_of(grid, name=f"grid {k}") for k, grid in enumerate(worlds)]
    cell = float(cell)
    step_y, step_x = (cell * max(c.shape[axis] for c in cells) + 2 * cell for axis in (0, 1))
    placed = tuple(
        PlacedGrid(2 * cell + k % across * step_x, 2 * cell + k // across * step_y, cell, one)
        for k, one in enumerate(cells)
    )
    down = math.ceil(len(worlds) / across)
    width, height = 2 * cell + across * step_x, 2 * cell + down * step_y
    return Drawing(width, height, placed, palette=find_palette(palette))


def animate(
    grids: Sequence[Any],
    *,
    captions: Sequence[str] | None = None,
    selections: Sequence[Any] | None = None,
    seconds: float | int = 0.4,
    palette: Palette | str = ARC,
) -> Animation:
    """Grids one after the other, as a film; all on a sheet that fits the largest.

    ```python
    import numpy as np
    from jaxarc.utils.visualization import animate

    animate([np.full((3, 3), colour) for colour in range(4)]).save("colours.gif")
    ```
    """
    if len(grids) == 0:
        raise DrawingError("grids is empty; expected at least one")
    palette = find_palette(palette)
    cells = [cells_of(grid, name=f"grid {k}") for k, grid in enumerate(grids)]
    rows, columns = (max(c.shape[axis] for c in cells) for axis in (0, 1))
    cell = max(4.0, min(32.0, 300.0 // max(rows, columns)))
    top = MARGIN + (CAPTION if captions is not None else 0)
    width = max(2 * MARGIN + columns * cell, 220.0 if captions is not None else 0)
    height = top + rows * cell + MARGIN
    frames = []
    for k, one in enumerate(cells):
        selected = None if selections is None else selection_on(selections[k], one)
        x = (width - columns * cell) / 2
        words = (
            ()
            if captions is None
            else (PlacedText(width / 2, top - 8, captions[k], 12.0, centred=True),)
        )
        grid = PlacedGrid(x, top, cell, one, selected)
        frames.append(Drawing(width, height, (grid,), words, palette))
    return Animation(tuple(frames), seconds)


def selection_on(selection: Any, cells: Cells) -> Any:
    """The part of a selection that lies on a grid; `None` where there is none."""
    if selection is None:
        return None
    height, width = cells.shape
    given = np.asarray(selection, bool)[:height, :width]
    shown = np.zeros(cells.shape, bool)
    shown[: given.shape[0], : given.shape[1]] = given
    return shown if shown.any() else None


def _in_lines(
    lines: Sequence[Sequence[tuple[str, Cells | None, Any]]],
    palette: Palette,
    *,
    side: float = SIDE,
    heading: str = "",
    outline: bool = False,
) -> Drawing:
    """Lay out lines of grids in columns of one width, with a caption above each grid.

    The third of each entry marks cells with a dot, or is outlined with `outline`.
    """
    grids: list[PlacedGrid] = []
    texts: list[PlacedText] = []
    y = MARGIN
    if heading:
        texts.append(PlacedText(MARGIN, y + 14, heading, 16.0))
        y += 30
    widest = max(len(line) for line in lines)
    for line in lines:
        captions = any(title for title, _, _ in line)
        y += CAPTION if captions else 0
        tallest = 0.0
        for column, (title, cells, extra) in enumerate(line):
            left = MARGIN + column * (side + GAP)
            if captions:
                texts.append(
                    PlacedText(left + side / 2, y - 7, title, 11.0, colour=SOFT, centred=True)
                )
            if cells is None:
                texts.append(
                    PlacedText(left + side / 2, y + side / 2, "?", 32.0, colour=SOFT, centred=True)
                )
                tallest = max(tallest, side)
                continue
            cell = min(side / max(cells.shape), side / 3)
            marks = {"selected": selection_on(extra, cells)} if outline else {"marked": extra}
            placed = PlacedGrid(left, y, cell, cells, **marks)
            centred = left + (side - placed.size[0]) / 2
            grids.append(PlacedGrid(centred, y, cell, cells, **marks))
            tallest = max(tallest, placed.size[1])
        y += tallest + GAP
    width = 2 * MARGIN + widest * (side + GAP) - GAP
    return Drawing(width, y - GAP + MARGIN, tuple(grids), tuple(texts), palette)
