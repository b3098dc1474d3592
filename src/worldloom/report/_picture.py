"""A still picture: a matplotlib figure, a PNG, or an array."""

from __future__ import annotations

import base64
import dataclasses
import io
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from worldloom.report._colour import parse
from worldloom.report._png import encode_png
from worldloom.report._section import Fragment, ReportError, caption, escape


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture inside the page.

    **Arguments:**

    - `content`: a matplotlib figure, the bytes of a PNG file, `uint8[height, width, 3]`, or
        `uint8[height, width]` with a `palette`.
    - `alt`: what it shows, in words, for those who cannot see it.
    - `caption`: a line below.
    - `palette`: colours of an array of indices, as `uint8[colours, 3]` or `["#0b5d6b", ...]`.
    - `smooth`: blend between pixels when the picture is enlarged, instead of showing squares.
    """

    content: Any
    alt: str
    caption: str = ""
    palette: np.ndarray | Sequence[str] | None = None
    smooth: bool = True

    def render(self) -> Fragment:
        """An image whose data is part of the page."""
        kind, data = self._encode()
        source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
        style = "plot" if _is_figure(self.content) else "smooth" if self.smooth else "pixels"
        return Fragment(
            f'<figure class="picture"><img class="{style}" src="{source}" alt="{escape(self.alt)}">'
            f"{caption(self.caption)}</figure>"
        )

    def _encode(self) -> tuple[str, bytes]:
        content = self.content
        if _is_figure(content):
            file = io.BytesIO()
            content.savefig(file, format="png", dpi=200, bbox_inches="tight")
            return "png", file.getvalue()
        if isinstance(content, bytes):
            if not content.startswith(b"\x89PNG\r\n\x1a\n"):
                raise ReportError("Picture: content is bytes, but not those of a PNG file")
            return "png", content
        if isinstance(content, np.ndarray) and content.dtype == np.uint8:
            if content.ndim == 3 and content.shape[2] == 3:
                return "png", encode_png(content)
            if content.ndim == 2 and self.palette is not None:
                palette = parse(self.palette)
                check_indices(content, palette, "Picture")
                return "png", encode_png(content, palette)
            raise ReportError(
                f"Picture: content is {content.dtype}{list(content.shape)}; expected "
                "[height, width, 3], or [height, width] with palette=..."
            )
        raise ReportError(
            f"Picture: content is a {type(content).__name__}; expected a matplotlib figure, the "
            "bytes of a PNG file, or a uint8 array"
        )


def check_indices(indices: np.ndarray, palette: np.ndarray, what: str) -> None:
    """Refuse an index that has no colour."""
    if indices.size and int(indices.max()) >= len(palette):
        raise ReportError(
            f"{what}: index {int(indices.max())} has no colour; palette has {len(palette)}"
        )


def _is_figure(content: Any) -> bool:
    # Whoever holds a figure has imported matplotlib; nobody else has to.
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(content, module.Figure)
