"""`Report`: the page itself."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import hashlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from worldloom.bench import Machine
from worldloom.report._markdown import blocks, inline
from worldloom.report._section import Asset, Fragment, ReportError, Section, escape
from worldloom.report._text import command_line
from worldloom.store._files import write_whole

_MARK = (
    '<svg viewBox="0 0 24 24" aria-hidden="true"><g fill="none" stroke-width="3.2" '
    'stroke-linecap="round"><path stroke="#2f7de1" d="M8 2v20M16 2v5m0 5v10"/>'
    '<path stroke="#f0883e" d="M2 8h3m6 0h11M2 16h11m6 0h3"/></g></svg>'
)


@dataclasses.dataclass(frozen=True)
class _Headline:
    value: str
    words: str
    detail: str
    command: str


@dataclasses.dataclass
class _Part:
    heading: str
    text: str
    rows: list[tuple[Section, ...]]


class Report:
    """One self-contained HTML page: no network, no other files.

    The page has a title, headline figures, parts with a heading, and the machine it was made on.
    Every method that adds something returns the page.

    **Arguments:**

    - `title`: what the page is about.
    - `subtitle`: a sentence below it; inline Markdown.
    - `machine`: what to say about the hardware and versions; this machine by default.

    ```python
    from worldloom import report

    page = report.Report("A first run", subtitle="Three numbers and a line.")
    page.headline("3.2 M", "steps a second", command="worldloom demo")
    page.section("Loss", "It went **down**.")
    page.add(report.LineChart({"loss": [3.0, 1.0, 0.5]}, title="Training", x_label="epoch"))
    assert page.html().startswith("<!doctype html>")
    ```
    """

    def __init__(self, title: str, *, subtitle: str = "", machine: Machine | None = None):
        self._title = title
        self._subtitle = subtitle
        self._machine = machine
        self._headlines: list[_Headline] = []
        self._parts = [_Part("", "", [])]

    def headline(self, value: str, words: str, *, detail: str = "", command: str = "") -> Report:
        """Put a big number at the top.

        **Arguments:**

        - `value`: the number, as it should be read: `"38.2 M"`, `"412x"`.
        - `words`: what it counts.
        - `detail`: one more line, in small type; inline Markdown.
        - `command`: the command that measures it again.
        """
        self._headlines.append(_Headline(value, words, detail, command))
        return self

    def section(self, heading: str, text: str = "") -> Report:
        """Begin a new part of the page, with some Markdown below its heading."""
        self._parts.append(_Part(heading, text, []))
        return self

    def add(self, *sections: Section) -> Report:
        """Put something into the current part. Several at once stand side by side, if they fit."""
        self._parts[-1].rows.append(sections)
        return self

    def html(self) -> str:
        """The page as text."""
        parts = [self._render(part, name) for part, name in self._named()]
        fixed = (Asset.load("page.css"), Asset.load("page.js"))
        assets = _merge([*fixed, *(asset for part in parts for asset in part.assets)])
        styles = "\n".join(asset.text for asset in assets if asset.name.endswith(".css"))
        scripts = [asset.text for asset in assets if asset.name.endswith(".js")]
        policy = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
        icon = base64.b64encode(
            _MARK.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1).encode()
        ).decode()
        running = "\n".join(f"<script>{script}</script>" for script in scripts)
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data: blob:; \
style-src 'unsafe-inline'; script-src {policy}; form-action 'none'; base-uri 'none'">
<title>{escape(self._title)}</title>
<link rel="icon" href="data:image/svg+xml;base64,{icon}">
<style>
{styles}
</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>
<p class="brand">{_MARK}Worldloom</p>
<h1>{escape(self._title)}</h1>
{f'<p class="subtitle">{inline(self._subtitle)}</p>' if self._subtitle else ""}
{self._render_headlines()}
{self._render_navigation()}
</header>
<main id="content">
{"".join(part.html for part in parts)}
</main>
{self._render_footer()}
{running}
</body>
</html>
"""

    def save(self, path: str | Path) -> Path:
        """Write the page and return its path. A reader never sees half of it."""
        return write_whole(path, self.html().encode())

    def _named(self) -> list[tuple[_Part, str]]:
        """Every part with a name for links that no other part has."""
        named, taken = [], set()
        for part in self._parts:
            slug = re.sub(r"[^a-z0-9]+", "-", part.heading.lower()).strip("-") or "part"
            name = next(name for name in _numbered(slug) if name not in taken)
            taken.add(name)
            named.append((part, name))
        return named

    def _render(self, part: _Part, name: str) -> Fragment:
        if not (part.heading or part.text or part.rows):
            return Fragment("")
        html = [f'<section id="{name}">']
        if part.heading:
            html.append(f"<h2>{escape(part.heading)}</h2>")
        if part.text:
            html.append(f'<div class="prose">{blocks(part.text)}</div>')
        assets: list[Asset] = []
        for row in part.rows:
            fragments = [section.render() for section in row]
            assets += [asset for fragment in fragments for asset in fragment.assets]
            cells = "".join(f"<div>{fragment.html}</div>" for fragment in fragments)
            html.append(f'<div class="row">{cells}</div>')
        html.append("</section>\n")
        return Fragment("\n".join(html), tuple(assets))

    def _render_headlines(self) -> str:
        if not self._headlines:
            return ""
        cards = []
        for card in self._headlines:
            detail = f'<p class="detail">{inline(card.detail)}</p>' if card.detail else ""
            command = command_line(card.command) if card.command else ""
            cards.append(
                f'<li><strong>{escape(card.value)}</strong><span class="words">{escape(card.words)}'
                f"</span>{detail}{command}</li>"
            )
        return f'<ul class="headlines">{"".join(cards)}</ul>'

    def _render_navigation(self) -> str:
        named = [(part, name) for part, name in self._named() if part.heading]
        if len(named) < 3:
            return ""
        links = "".join(f'<a href="#{name}">{escape(part.heading)}</a>' for part, name in named)
        return f'<nav aria-label="Parts of this page">{links}</nav>'

    def _render_footer(self) -> str:
        machine = self._machine or Machine.here()
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        entries = {
            "Processor": f"{machine.cpu}, {machine.cores} core{'s' * (machine.cores != 1)}",
            "Memory": f"{machine.memory / 2**30:.0f} GiB",
            "Devices": machine.devices,
            "System": machine.system,
            **machine.versions,
            "Made": now,
        }
        pairs = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
            for name, text in entries.items()
        )
        return f'<footer><dl aria-label="Hardware and versions">{pairs}</dl></footer>'


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in itertools.count(2))


def _merge(assets: list[Asset]) -> list[Asset]:
    """Each asset once, in the order of first need."""
    merged: dict[str, Asset] = {}
    for asset in assets:
        if merged.setdefault(asset.name, asset) != asset:
            raise ReportError(
                f"two different assets are both called {asset.name!r}; give one another name"
            )
    return list(merged.values())


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
