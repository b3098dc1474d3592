"""What a page is made of: pieces of HTML that say which scripts and styles they need."""

from __future__ import annotations

import dataclasses
import html
import importlib.resources
from typing import Protocol, runtime_checkable

from worldloom._errors import WorldloomError


class ReportError(WorldloomError, ValueError):
    """A page cannot be made of what was given."""


@dataclasses.dataclass(frozen=True)
class Asset:
    """A script or a style sheet. A page holds each one once, however many pieces need it.

    **Arguments:**

    - `name`: what it is called; the ending says what it is, `.js` or `.css`.
    - `text`: its source. A script runs after the whole page has been read.
    """

    name: str
    text: str

    def __post_init__(self) -> None:
        if not self.name.endswith((".js", ".css")):
            raise ReportError(f"Asset: name={self.name!r}; expected it to end in .js or .css")
        if "</script" in self.text.lower() or "</style" in self.text.lower():
            raise ReportError(f"Asset {self.name!r} has a closing tag in its text; split the word")

    @classmethod
    def load(cls, name: str, *, package: str = "worldloom.report") -> Asset:
        """Read the file `name` from the folder `assets` of a package."""
        file = importlib.resources.files(package) / "assets" / name
        return cls(name, file.read_text(encoding="utf-8"))


@dataclasses.dataclass(frozen=True)
class Fragment:
    """A piece of a page.

    **Arguments:**

    - `html`: goes into the page as it is. Text that is not yours belongs in
        [`worldloom.report.escape`][] first. The page runs no inline scripts: put those in `assets`.
    - `assets`: scripts and styles that the piece needs, in the order they need each other.
    """

    html: str
    assets: tuple[Asset, ...] = ()


@runtime_checkable
class Section(Protocol):
    """Anything that can be put on a page: a value with one method.

    ```python
    import dataclasses
    from worldloom import report

    @dataclasses.dataclass(frozen=True)
    class Quote:
        words: str

        def render(self) -> report.Fragment:
            style = report.Asset("quote.css", ".quote { font-style: italic }")
            return report.Fragment(f"<p class='quote'>{report.escape(self.words)}</p>", (style,))

    page = report.Report("Sayings").add(Quote("1 < 2"))
    assert "1 &lt; 2" in page.html()
    ```
    """

    def render(self) -> Fragment:
        """The piece of HTML, and what it needs."""
        ...


def escape(text: object) -> str:
    """Text that is safe inside HTML, in and out of attributes."""
    return html.escape(str(text), quote=True)


def caption(text: str) -> str:
    """The line below a picture; nothing for nothing."""
    from worldloom.report._markdown import inline

    return f"<figcaption>{inline(text)}</figcaption>" if text else ""
