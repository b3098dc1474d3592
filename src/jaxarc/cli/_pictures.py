"""`worldloom arc view`, `render` and `replay`: pictures of tasks and of episodes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import tyro

from worldloom.cli import Command, OutputFile, UsageError

PaletteName = Literal["arc", "colour-blind"]
_TASK = tyro.conf.arg(metavar="TASK")


@dataclasses.dataclass(frozen=True)
class View:
    """What `worldloom arc view` does."""

    task: Annotated[str, _TASK, tyro.conf.Positional]
    """The id of a task, such as 007bbfb7, or a JSON file with one."""

    palette: PaletteName = "arc"
    """The colours."""

    differences: bool = False
    """Mark the cells in which input and output differ."""

    answers: bool = True
    """Also show the outputs of the test pairs."""


def view(config: View) -> None:
    """Print every pair of a task."""
    from jaxarc.cli._info import find_task
    from jaxarc.utils.visualization._console import ConsoleGrid, print_to, side_by_side
    from jaxarc.utils.visualization._grid import differing
    from jaxarc.utils.visualization._palette import find_palette
    from jaxarc.utils.visualization._sheets import task_pairs

    palette = find_palette(config.palette)
    _, task = find_task(config.task)[0]
    for title, shown, output in task_pairs(task):
        if not config.answers and title.startswith("test"):
            output = None
        mark = config.differences and output is not None
        pictures = [
            ConsoleGrid(
                shown,
                title=f"{title}: input",
                palette=palette,
                marks=differing(shown, output) if mark and output is not None else None,
            )
        ]
        if output is not None:
            marks = differing(output, shown) if mark else None
            pictures.append(ConsoleGrid(output, title="output", palette=palette, marks=marks))
        print_to(None, side_by_side(pictures), "")


@dataclasses.dataclass(frozen=True)
class Render:
    """What `worldloom arc render` does."""

    task: Annotated[str, _TASK, tyro.conf.Positional]
    """The id of a task, such as 007bbfb7, or a JSON file with one."""

    out: Annotated[Path, OutputFile(), tyro.conf.arg(aliases=["-o"])]
    """The picture to write: .svg, .png, or .gif for one that moves."""

    palette: PaletteName = "arc"
    """The colours."""

    answers: bool = True
    """Also draw the outputs of the test pairs."""

    def __post_init__(self):
        if self.out.suffix.lower() not in (".svg", ".png", ".gif"):
            raise UsageError(f"--out {str(self.out)!r}: expected .svg, .png or .gif at its end")


def render(config: Render) -> None:
    """Draw a task and say where."""
    from jaxarc.cli._info import find_task
    from jaxarc.utils.visualization import animate, draw_task
    from jaxarc.utils.visualization._sheets import task_pairs

    _, task = find_task(config.task)[0]
    if config.out.suffix.lower() == ".gif":
        shown: list = []
        captions: list[str] = []
        for title, first, then in task_pairs(task):
            if then is None or (not config.answers and title.startswith("test")):
                continue
            shown += [first.colours, then.colours]
            captions += [f"{title}: input", f"{title}: output"]
        film = animate(shown, captions=captions, seconds=1.0, palette=config.palette)
        print(film.save(config.out))
        return
    drawing = draw_task(task, answers=config.answers, palette=config.palette)
    print(drawing.save(config.out))


@dataclasses.dataclass(frozen=True)
class Replay:
    """What `worldloom arc replay` does."""

    run: Annotated[Path, tyro.conf.arg(metavar="RUN"), tyro.conf.Positional]
    """A recording, as `Recording.save` wrote it, or a folder with one."""

    out: Annotated[Path, OutputFile(), tyro.conf.arg(aliases=["-o"])] = Path("replay.html")
    """The page to write."""

    title: str = "Episodes"
    """The heading of the page."""

    task: str = ""
    """Only episodes of the task with this id."""

    outcome: Literal["any", "solved", "wrong", "cut off", "unfinished"] = "any"
    """Only episodes that ended like this."""

    limit: int = 1000
    """At most so many episodes."""

    palette: PaletteName = "arc"
    """The colours."""

    def __post_init__(self):
        if self.limit < 1:
            raise UsageError(f"--limit must be 1 or more, got {self.limit}")


def replay(config: Replay) -> None:
    """Write the page and say what is on it."""
    from jaxarc.utils.visualization import Recording, save_replay

    recording = Recording.load(_file(config.run))
    chosen = [
        episode
        for episode in recording.episodes
        if config.task in ("", episode.task_id) and config.outcome in ("any", episode.outcome)
    ]
    if not chosen:
        wanted = " and ".join(filter(None, [config.task, config.outcome.replace("any", "")]))
        raise UsageError(
            f"none of the {len(recording.episodes)} episodes of {str(config.run)!r} is "
            f"{wanted or 'there to be shown'}"
        )
    some = chosen[: config.limit]
    path = save_replay(
        recording, config.out, title=config.title, episodes=some, palette=config.palette
    )
    print(f"{path}: {len(some):,} of {len(recording.episodes):,} episodes")


def _file(run: Path) -> Path:
    if not run.is_dir():
        return run
    files = sorted(run.glob("*.loom"))
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise UsageError(f"{str(run)!r}: expected one recording (*.loom) in it, found {found}")
    return files[0]


COMMANDS = (
    Command(
        "view",
        "Show a task on the terminal.",
        View,
        view,
        examples=(
            ("worldloom arc view 007bbfb7", "in the official colours"),
            ("worldloom arc view 007bbfb7 --differences", "with what changes marked"),
        ),
    ),
    Command(
        "render",
        "Draw a task as a picture: SVG, PNG or a GIF that moves.",
        Render,
        render,
        examples=(("worldloom arc render 007bbfb7 -o task.svg", "a sheet with every pair"),),
    ),
    Command(
        "replay",
        "Make a page of recorded episodes: play, step, search.",
        Replay,
        replay,
        examples=(
            ("worldloom arc replay run.loom -o replay.html", "all episodes"),
            ("worldloom arc replay run.loom --outcome solved", "those that were solved"),
        ),
    ),
)
