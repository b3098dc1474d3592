"""Replays: frames that are played in the page."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import zlib
from collections.abc import Sequence

import numpy as np

from worldloom.report._colour import parse
from worldloom.report._picture import check_indices
from worldloom.report._png import encode_png
from worldloom.report._section import Asset, Fragment, ReportError, caption, escape

_ASSETS = ("transport.css", "replay.css", "transport.js", "replay.js")


@dataclasses.dataclass(frozen=True)
class Replay:
    """A sequence of frames with a player: play, pause, step, scrub, speed, keyboard.

    Frames are kept as differences, deflated; thousands of small ones are fine.

    **Arguments:**

    - `frames`: `uint8[time, height, width]` with a `palette`, or `uint8[time, height, width, 3]`.
    - `alt`: what it shows, in words, for those who cannot see it.
    - `palette`: colours of the indices, as `uint8[colours, 3]` or `["#0b5d6b", ...]`.
    - `caption`: a line below.
    - `labels`: what to call each frame, such as `"step 120"`; its number by default.
    - `fps`: frames a second at normal speed.
    - `autoplay`: start when it comes into view (unless the reader prefers less motion).
    - `smooth`: blend between pixels when enlarged, instead of showing squares.
    - `width`: width on a large screen, in pixels of the page. By default a multiple of the frame's.

    ```python
    import numpy as np
    from worldloom import report

    frames = np.zeros((8, 8, 8), np.uint8)
    frames[np.arange(8), np.arange(8), np.arange(8)] = 1
    replay = report.Replay(frames, alt="A dot that falls", palette=["#10151c", "#f2b134"])
    page = report.Report("A dot").add(replay)
    ```
    """

    frames: np.ndarray
    alt: str
    palette: np.ndarray | Sequence[str] | None = None
    caption: str = ""
    labels: Sequence[str] | None = None
    fps: float | int = 20
    autoplay: bool = False
    smooth: bool = False
    width: int | None = None

    def __post_init__(self) -> None:
        frames = self.frames
        shape = f"{frames.dtype}{list(frames.shape)}"
        if frames.dtype != np.uint8 or frames.ndim not in (3, 4) or 0 in frames.shape:
            raise ReportError(
                f"Replay: frames is {shape}; expected uint8[time, height, width] or "
                "uint8[time, height, width, 3], not empty"
            )
        if frames.ndim == 4 and frames.shape[3] != 3:
            raise ReportError(f"Replay: frames is {shape}; the last axis must have 3 colours")
        if (frames.ndim == 3) != (self.palette is not None):
            raise ReportError(
                f"Replay: frames is {shape}; indices need a palette, and colours must have none"
            )
        if self.palette is not None:
            check_indices(frames, parse(self.palette), "Replay: frames")
        if self.labels is not None and len(self.labels) != len(frames):
            raise ReportError(
                f"Replay: {len(self.labels)} labels for {len(frames)} frames; give one for each"
            )
        if not 0 < self.fps <= 240:
            raise ReportError(f"Replay: fps={self.fps}; expected more than 0, at most 240")

    def render(self) -> Fragment:
        """The first frame as a picture, the data, and the scripts that make them a player."""
        count, height, width = self.frames.shape[:3]
        palette = None if self.palette is None else parse(self.palette)
        poster = base64.b64encode(encode_png(self.frames[0], palette)).decode()
        about = {
            "count": count,
            "height": height,
            "width": width,
            "fps": self.fps,
            "autoplay": self.autoplay,
            "palette": None if palette is None else palette.tolist(),
            "labels": None if self.labels is None else list(map(str, self.labels)),
        }
        shown = self.width or width * max(1, round(640 / width))
        style = "smooth" if self.smooth else "pixels"
        return Fragment(
            f'<figure class="replay" style="--width: {shown}px; --aspect: {width / height:.6g}" '
            f'role="group" aria-label="{escape("Replay: " + self.alt)}">'
            f'<div class="stage"><img class="{style}" src="data:image/png;base64,{poster}" '
            f'alt="{escape(self.alt)}" width="{width}" height="{height}"></div>'
            f'<script type="application/json" class="about">{script_json(about)}</script>'
            f'<script type="text/plain" class="frames">{pack(self.frames)}</script>'
            f"{caption(self.caption)}</figure>",
            tuple(map(Asset.load, _ASSETS)),
        )


def pack(frames: np.ndarray) -> str:
    """First frame, then differences modulo 256, deflated, in base64."""
    differences = frames.copy()
    differences[1:] -= frames[:-1]
    return base64.b64encode(zlib.compress(differences.tobytes(), 9)).decode()


def script_json(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def mosaic(
    frames: np.ndarray, *, columns: int | None = None, gap: int = 1, fill: int = 0
) -> np.ndarray:
    """Many small pictures as one.

    **Arguments:**

    - `frames`: `[time, pictures, height, width, ...]`.
    - `columns`: pictures in a row; by default about as many as there are rows.
    - `gap`: pixels between them.
    - `fill`: value of the gaps and of places without a picture.

    **Returns:**

    `[time, rows * (height + gap) - gap, columns * (width + gap) - gap, ...]`.

    ```python
    import numpy as np
    from worldloom import report

    worlds = np.ones((10, 6, 4, 4), np.uint8)
    assert report.mosaic(worlds, columns=3).shape == (10, 9, 14)
    ```
    """
    if frames.ndim < 4 or frames.shape[1] == 0:
        raise ReportError(
            f"mosaic: frames is {list(frames.shape)}; expected [time, pictures, height, width, ...]"
        )
    time, count, height, width, *rest = frames.shape
    across = columns or math.ceil(math.sqrt(count))
    if across < 1 or gap < 0:
        raise ReportError(f"mosaic: columns={columns}, gap={gap}; expected at least 1 and 0")
    down = math.ceil(count / across)
    sheet = np.full(
        (time, down * (height + gap), across * (width + gap), *rest), fill, frames.dtype
    )
    for index in range(count):
        top, left = index // across * (height + gap), index % across * (width + gap)
        sheet[:, top : top + height, left : left + width] = frames[:, index]
    return sheet[:, : down * (height + gap) - gap, : across * (width + gap) - gap]
