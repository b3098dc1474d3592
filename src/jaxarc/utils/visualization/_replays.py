"""Replays on a page: episodes to search, play, step through and scrub."""

from __future__ import annotations

import base64
import dataclasses
import math
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from jaxarc.data import RawTask
from jaxarc.operations import OPERATIONS
from jaxarc.utils.visualization._palette import ARC, Palette, find_palette
from jaxarc.utils.visualization._rebuild import Frames, rebuild
from jaxarc.utils.visualization._recording import TEST, Episode, Outcome, Recording, RecordingError
from worldloom import report
from worldloom.report._replay import script_json

NONE = 15  # a cell that does not exist
MOST = 1000  # episodes on a page, unless told


@dataclasses.dataclass(frozen=True, eq=False)
class Replays:
    """The episodes of a recording, as a piece of a `worldloom.report` page.

    The task is on the left, the working grid in the middle with the selection and the name of
    the operation, reward and similarity below, and on the right a list to search by task and
    outcome. A thousand episodes of a hundred steps are fine: the page unpacks the one that is
    looked at.

    **Arguments:**

    - `episodes`: which; by default the first 1,000.
    - `caption`: a line below.
    - `fps`: steps a second at normal speed.
    - `palette`: `"arc"` or `"colour-blind"`.

    Keys: space plays and pauses, left and right step, up and down change the speed, `n` and `p`
    go to the next and the previous episode, `/` searches.
    """

    recording: Recording
    episodes: Sequence[Episode] | None = None
    caption: str = ""
    fps: float | int = 6
    palette: Palette | str = ARC

    def __post_init__(self):
        if not (math.isfinite(self.fps) and self.fps > 0):
            raise RecordingError(f"fps={self.fps}: expected frames a second, above 0")

    def chosen(self) -> tuple[Episode, ...]:
        """The episodes on the page."""
        chosen = self.recording.episodes[:MOST] if self.episodes is None else tuple(self.episodes)
        if not chosen:
            what = "none was chosen" if self.recording.steps else "the recording has no steps"
            raise RecordingError(f"there are no episodes to show: {what}")
        self.recording.own(chosen)
        return chosen

    def summary(self) -> str:
        """How many episodes are shown, of how many that were recorded, and how many are solved."""
        chosen, every = self.chosen(), self.recording.episodes
        solved, in_all = _solved(chosen), _solved(every)
        tasks = f"{len({e.task for e in chosen}):,} tasks from {self.recording.tasks.name}"
        share = f"{in_all:,} of them solved ({in_all / len(every):.1%})"
        if len(chosen) == len(every):
            return f"{len(every):,} episodes of {tasks}; {share}."
        return (
            f"{len(every):,} episodes were recorded; {share}. {len(chosen):,} are shown, of "
            f"{tasks}; {solved:,} of these solved."
        )

    def render(self) -> report.Fragment:
        """The data, and the scripts that make a player of them."""
        chosen = self.chosen()
        palette = find_palette(self.palette)
        played = sorted({episode.task for episode in chosen})
        place = {task: number for number, task in enumerate(played)}
        packed, sizes = [], []
        for frames in rebuild(self.recording, chosen):
            data, size = pack_episode(frames)
            packed.append(data)
            sizes.append(size)
        tasks = [self.recording.tasks.tasks[task] for task in played]
        about = {
            "fps": self.fps,
            "recorded": len(self.recording.episodes),
            "palette": palette.colours,
            "colours": palette.names,
            "light": [palette.is_light(colour) for colour in range(10)],
            "operations": [operation.name for operation in OPERATIONS],
            "outcomes": get_args(Outcome),
            "first": max(range(len(chosen)), key=lambda k: _interest(chosen[k])),
            "tasks": [
                {"id": task.id, "demos": len(task.demos), "tests": len(task.tests)}
                for task in tasks
            ],
            "episodes": {
                "number": [episode.number for episode in chosen],
                "task": [place[episode.task] for episode in chosen],
                "pair": [e.pair | (TEST if e.on_test_pair else 0) for e in chosen],
                "length": [episode.length for episode in chosen],
                "rows": [rows for rows, _ in sizes],
                "columns": [columns for _, columns in sizes],
                "outcome": [episode.outcome for episode in chosen],
                "reward": [round(episode.reward, 4) for episode in chosen],
                "similarity": [round(episode.similarity, 4) for episode in chosen],
            },
        }
        data = (
            f'<script type="application/json" class="about">{script_json(about)}</script>'
            f'<script type="text/plain" class="episodes">{_lines(packed)}</script>'
            f'<script type="text/plain" class="tasks">{_lines(map(pack_task, tasks))}</script>'
        )
        part = len(chosen) < len(self.recording.episodes)
        words = " ".join(filter(None, [self.caption, self.summary() if part else ""]))
        caption = f"<figcaption>{report.escape(words)}</figcaption>" if words else ""
        own = "jaxarc.utils.visualization"
        return report.Fragment(
            '<figure class="arc-replays" role="group" aria-label="Replays of episodes">'
            '<div class="arc-wait"><noscript>The episodes play here where scripts may run.'
            "</noscript></div>"
            f"{data}{caption}</figure>",
            (
                report.Asset.load("transport.css"),
                report.Asset.load("arc_replays.css", package=own),
                report.Asset.load("transport.js"),
                report.Asset.load("arc_replays.js", package=own),
            ),
        )


def _solved(episodes: Sequence[Episode]) -> int:
    return sum(episode.outcome == "solved" for episode in episodes)


def _interest(episode: Episode) -> tuple[bool, int, float]:
    """Which episode is shown first: a long one that was solved, or else the most similar."""
    solved = episode.outcome == "solved"
    return solved, episode.length if solved else 0, episode.similarity


def save_replay(
    recording: Recording,
    path: str | os.PathLike[str],
    *,
    title: str = "Episodes",
    episodes: Sequence[Episode] | None = None,
    palette: Palette | str = ARC,
) -> Path:
    """Write one self-contained HTML page with the episodes of a recording.

    ```python
    import jax
    import jaxarc
    from jaxarc.utils.visualization import save_replay, watch_rollout

    env = jaxarc.make("AGI1-train", ids=["007bbfb7"])

    def policy(params, observation, key):
        return env.random_action(key, worlds=2)

    _, _, recording = watch_rollout(env, policy, None, jax.random.key(0), 10, worlds=2)
    save_replay(recording, "replay.html", title="Random actions")
    ```
    """
    replays = Replays(recording, episodes, palette=palette)
    page = report.Report(title, subtitle=replays.summary()).add(replays)
    with _disk_errors(Path(path)):
        return page.save(Path(path))


def _disk_errors(path: Path) -> Any:
    from worldloom.store._files import disk_errors

    return disk_errors("write", path)


def pack_episode(frames: Frames) -> tuple[bytes, tuple[int, int]]:
    """The frames as few bytes, and the height and width that hold every grid of them.

    Operations, pairs, four planes of bytes for rewards and for similarities, grids as
    differences modulo 256 from frame to frame, selections as bits. Then deflated.
    """
    _, in_rows, in_columns = np.nonzero(frames.grids >= 0)
    rows, columns = int(in_rows.max()) + 1, int(in_columns.max()) + 1
    grids = frames.grids[:, :rows, :columns]
    cells = np.where(grids < 0, NONE, grids).astype(np.uint8)
    cells[1:] -= cells[:-1].copy()
    count = len(cells)
    parts = (
        frames.operations.astype(np.uint8),
        frames.pairs,
        _planes(frames.rewards),
        _planes(frames.similarities),
        cells,
        np.packbits(frames.selections[:, :rows, :columns].reshape(count, -1), axis=1),
    )
    return zlib.compress(b"".join(part.tobytes() for part in parts), 6), (rows, columns)


def _planes(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values.astype("<f4").view(np.uint8).reshape(-1, 4).T)


def pack_task(task: RawTask) -> bytes:
    """Height, width and cells of every input and output; a hidden output is 0 x 0. Deflated."""
    content = bytearray()
    for pair in task.demos + task.tests:
        for grid in (pair.input, pair.output):
            content += bytes(grid.shape) + grid.tobytes() if grid is not None else bytes(2)
    return zlib.compress(bytes(content), 9)


def _lines(blobs: Any) -> str:
    return "\n".join(base64.b64encode(blob).decode() for blob in blobs)
