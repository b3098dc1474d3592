"""Words on a page: text, tables, commands."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Sequence
from typing import Any

from worldloom.report._markdown import blocks, inline
from worldloom.report._section import Fragment, ReportError, caption, escape

_NUMBER = re.compile(r"[-+~<>≤≥]?\s*[\d.,]+(e[-+]?\d+)?(\s?[^\s\d]{1,4})?(\s*\(.*\))?")


@dataclasses.dataclass(frozen=True)
class Text:
    """Paragraphs in a small part of Markdown.

    Blank lines end a paragraph; `**strong**`, `*emphasis*`, `` `code` ``, `[label](target)`,
    lists with `- ` and fenced code work. HTML in it is shown, not obeyed.
    """

    markdown: str

    def render(self) -> Fragment:
        """The paragraphs."""
        return Fragment(f'<div class="prose">{blocks(self.markdown)}</div>')


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows and columns. Columns of numbers are set flush right.

    **Arguments:**

    - `columns`: the headings.
    - `rows`: as many cells each as there are headings. Strings may have inline Markdown.
    - `caption`: a line below.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ReportError(
                    f"Table: row {number} has {len(row)} cells for {len(self.columns)} columns"
                )

    def render(self) -> Fragment:
        """The table, which scrolls inside its own box where the screen is narrow."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        kinds = [' class="number"' if _numbers(column) else "" for column in columns]
        heads = zip(self.columns, kinds, strict=True)
        head = "".join(f'<th scope="col"{kind}>{inline(name)}</th>' for name, kind in heads)
        body = "".join(f"<tr>{_row(row, kinds)}</tr>" for row in self.rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        label = escape(self.caption or "Table")
        return Fragment(
            f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}'
            f"</div>{caption(self.caption)}</figure>"
        )


@dataclasses.dataclass(frozen=True)
class Commands:
    """Shell commands, each with what it does and a button that copies it.

    **Arguments:**

    - `commands`: pairs of a command and a short description, which may be empty.
    """

    commands: Sequence[tuple[str, str]]

    def render(self) -> Fragment:
        """A list of them."""
        items = "".join(
            f"<li>{command_line(command)}<span>{inline(words)}</span></li>"
            for command, words in self.commands
        )
        return Fragment(f'<ul class="commands">{items}</ul>')


def command_line(command: str) -> str:
    """A command with its button. The button appears where there are scripts to serve it."""
    words = " ".join(f"<span>{escape(word)}</span>" for word in command.split(" "))
    return f'<span class="command"><code>{words}</code></span>'


def _numbers(column: Sequence[Any]) -> bool:
    """Whether a column holds numbers; some of its cells may be empty."""
    filled = [cell for cell in column if cell != ""]
    return bool(filled) and all(map(_numeric, filled))


def _numeric(cell: Any) -> bool:
    return isinstance(cell, numbers.Number) or bool(_NUMBER.fullmatch(str(cell).strip()))


def _row(row: Sequence[Any], kinds: Sequence[str]) -> str:
    pairs = zip(row, kinds, strict=True)
    return "".join(f"<td{kind}>{_cell(cell)}</td>" for cell, kind in pairs)


def _cell(cell: Any) -> str:
    if isinstance(cell, float):
        return escape(f"{cell:,.4g}" if abs(cell) < 1e4 else f"{cell:,.0f}")
    if isinstance(cell, int):
        return escape(f"{cell:,}")
    return inline(str(cell))
