"""Colours of pictures and replays."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from worldloom.report._section import ReportError


def gradient(colours: Sequence[str], *, size: int = 256) -> np.ndarray:
    """A palette that runs evenly through some colours.

    **Arguments:**

    - `colours`: two or more, as in `"#0b5d6b"`.
    - `size`: entries of the palette, at most 256.

    **Returns:**

    `uint8[size, 3]`, for [`worldloom.report.Replay`][] and [`worldloom.report.Picture`][].

    ```python
    from worldloom import report

    grey = report.gradient(["#000000", "#ffffff"], size=3)
    assert grey.tolist() == [[0, 0, 0], [128, 128, 128], [255, 255, 255]]
    ```
    """
    if len(colours) < 2:
        raise ReportError(f"gradient: colours={list(colours)}; expected at least two")
    if not 2 <= size <= 256:
        raise ReportError(f"gradient: size={size}; expected 2 to 256")
    anchors = parse(colours).astype(float)
    places = np.linspace(0, len(anchors) - 1, size)
    channels = [np.interp(places, np.arange(len(anchors)), channel) for channel in anchors.T]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)


def parse(palette: np.ndarray | Sequence[str]) -> np.ndarray:
    """Any palette as `uint8[colours, 3]`."""
    if not isinstance(palette, np.ndarray):
        for colour in palette:
            if not re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
                raise ReportError(f"colour {colour!r}; expected six digits, as in '#0b5d6b'")
        palette = np.array([list(bytes.fromhex(colour[1:])) for colour in palette], np.uint8)
    if palette.ndim != 2 or palette.shape[1] != 3 or palette.dtype != np.uint8:
        raise ReportError(
            f"palette is {palette.dtype}{list(palette.shape)}; expected uint8[colours, 3]"
        )
    if not 1 <= len(palette) <= 256:
        raise ReportError(f"palette has {len(palette)} colours; expected 1 to 256")
    return palette
