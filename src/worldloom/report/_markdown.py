"""A small, safe part of Markdown: paragraphs, lists, code, emphasis, links."""

from __future__ import annotations

import re

from worldloom.report._section import escape

_INLINE = re.compile(
    r"(?P<code>`[^`]+`)"
    r"|\*\*(?P<strong>.+?)\*\*"
    r"|(?<![\w*])\*(?P<em>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])"
    r"|\[(?P<label>[^\]]+)\]\((?P<target>[^()\s]+)\)"
)
_SAFE_TARGET = re.compile(r"(https?://|mailto:|#|\.{0,2}/|[\w-]+(\.[\w-]+)*([/#?]|$))", re.ASCII)


def blocks(text: str) -> str:
    """Paragraphs, bullet lists and fenced code as HTML. Everything else in `text` is only text."""
    parts = []
    for is_code, chunk in _split_fences(text):
        if is_code:
            parts.append(f"<pre><code>{escape(chunk)}</code></pre>")
            continue
        for block in re.split(r"\n\s*\n", chunk.strip()):
            lines = [line.strip() for line in block.splitlines()]
            if all(line.startswith(("- ", "* ")) for line in lines) and lines:
                items = "".join(f"<li>{inline(line[2:])}</li>" for line in lines)
                parts.append(f"<ul>{items}</ul>")
            elif block.strip():
                parts.append(f"<p>{inline(' '.join(lines))}</p>")
    return "\n".join(parts)


def inline(text: str) -> str:
    """Emphasis, code and links within a line as HTML."""
    parts, end = [], 0
    for match in _INLINE.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(_inline_element(match))
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def _inline_element(match: re.Match[str]) -> str:
    if code := match["code"]:
        return f"<code>{escape(code[1:-1])}</code>"
    if strong := match["strong"]:
        return f"<strong>{inline(strong)}</strong>"
    if em := match["em"]:
        return f"<em>{inline(em)}</em>"
    if not _SAFE_TARGET.match(match["target"]):  # javascript:, data: and their like
        return escape(match[0])
    return f'<a href="{escape(match["target"])}">{inline(match["label"])}</a>'


def _split_fences(text: str) -> list[tuple[bool, str]]:
    """Alternate between prose and the inside of ``` fences."""
    pieces, lines, in_code = [], [], False
    for line in text.splitlines():
        if line.strip().startswith("```"):
            pieces.append((in_code, "\n".join(lines)))
            lines, in_code = [], not in_code
        else:
            lines.append(line)
    return [*pieces, (in_code, "\n".join(lines))]
