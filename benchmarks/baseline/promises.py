"""`docs/promises.md`: what the guides promised, what is measured here, the command, the verdict.

    python benchmarks/baseline/promises.py            # write the page
    python benchmarks/baseline/promises.py --print    # print it

The rows are in `promises.toml`. A number of ours is never typed there: `{...}` names an entry of
`performance.json`, and is replaced by what was measured.

    {ratio:SCRIPT|CASE|OTHER}      how many times as fast ours is, with its interval
    {cpu:SCRIPT|CASE|OTHER}        the same for a CPU second
    {compile:SCRIPT|CASE}          seconds that ours took to compile
    {time:SCRIPT|CASE}             time of a call of ours
    {rate:SCRIPT|CASE}             items a second of ours
    {rate:SCRIPT|GROWTH|VARIANT}   items a second at one size
    {times:SCRIPT|GROWTH|VARIANT}  times the speed at the first size
    {each:SCRIPT|GROWTH|VARIANT}   time of one item at one size
    {figure:SCRIPT|NAME}           a single figure

A row whose entry was not measured says so. With `judge = "..."` (a reference as above, without the
braces) and `at_least` or `at_most`, the verdict follows from the number.
"""

from __future__ import annotations

import argparse
import math
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from worldloom import bench
from worldloom.bench._draw import duration, magnitude
from worldloom.bench._markdown import table
from worldloom.bench._result import figure

HERE = Path(__file__).parent
ROWS, FIGURES = HERE / "promises.toml", HERE / "performance.json"
PAGE = HERE.parents[1] / "docs" / "promises.md"
HEADINGS = ("promised", "measured here", "command", "verdict")


SIZES = ("KB", "KiB", "%", "times smaller")  # units that no busy machine changes
KINDS = {"ratio", "cpu", "compile", "time", "rate", "times", "each", "figure"}


class Found(NamedTuple):
    """What stands in braces: as text, as a number, and the interval of that, if it has one."""

    text: str
    value: float
    low: float | None = None
    high: float | None = None


def look_up(record: bench.Record, reference: str) -> Found:
    """What was measured under a name."""
    kind, _, rest = reference.partition(":")
    if kind not in KINDS:
        raise ValueError(f"{reference!r}: no kind of figure {kind!r}; there are {sorted(KINDS)}")
    script, name, *more = rest.split("|")
    if kind == "figure":
        one = record.figure(script, name)
        return Found(f"{figure(one.value)} {one.unit}".strip(), one.value)
    if kind in ("times", "each") or (kind == "rate" and more):
        growth = record.growth(script, name).comparison
        timing, ratio = growth[more[0]], growth.ratio(more[0])
        if kind == "times":
            return _ratio(ratio)
        if kind == "rate":
            return _rate(timing.rate or 0, growth.unit)
        return _duration(timing.median / (timing.items or 1))
    case = record.case(script, name)
    timing = case.comparison[case.ours]
    if kind == "ratio":
        ratio = case.ratio(more[0])
        return Found("failed", 0.0) if ratio is None else _ratio(ratio)
    if kind == "cpu":
        busy = case.cpu_ratio(more[0]) or 0.0
        return Found(f"{figure(busy)}x", busy)
    if kind == "rate":
        return _rate(timing.rate or 0, case.comparison.unit)
    compiling = case.compile_seconds(case.ours) or 0.0
    return _duration(compiling if kind == "compile" else timing.median)


def _ratio(ratio: bench.Ratio) -> Found:
    return Found(str(ratio), ratio.value, ratio.low, ratio.high)


def _rate(rate: float, unit: str) -> Found:
    return Found(f"{magnitude(rate)} {unit}/s", rate)


def _duration(seconds: float) -> Found:
    return Found(duration(seconds), seconds)


def filled(text: str, record: bench.Record) -> str:
    """The text with every brace replaced; one that was not measured is named as such."""

    def replace(match: re.Match[str]) -> str:
        try:
            return look_up(record, match[1]).text
        except KeyError:
            return "(not in this run)"

    return re.sub(r"\{([^{}]+)\}", replace, " ".join(text.split()))


def verdict(row: dict[str, Any], record: bench.Record) -> str:
    """`kept` or `not kept` where the row says how to judge a number, and its remark.

    Where the limit lies inside the interval of a ratio, the verdict says that it is not sure.
    """
    words = [" ".join(row["verdict"].split())] if row.get("verdict") else []
    if "judge" in row:
        try:
            found = look_up(record, row["judge"])
        except KeyError:
            return ": ".join(["**not measured**", *words])
        low, high = row.get("at_least", -math.inf), row.get("at_most", math.inf)
        word = "**kept**" if low <= found.value <= high else "**not kept**"
        if found.low is not None and found.high is not None:
            unsure = any(found.low < limit < found.high for limit in (low, high))
            word += ", but not surely" * unsure
        if "not kept" in word and disturbed(row, record):
            word += ", on a busy machine"
        words.insert(0, word)
    return ": ".join(words)


def disturbed(row: dict[str, Any], record: bench.Record) -> bool:
    """Whether the number depends on times, and the machine was busy when they were taken."""
    kind, _, rest = row["judge"].partition(":")
    script, name, *_ = rest.split("|")
    if kind == "figure" and record.figure(script, name).unit in SIZES:
        return False
    return not all(found.quiet for found in record.findings if found.script == script)


def references(document: dict[str, Any]) -> list[str]:
    """Everything in braces in the rows."""
    rows = [row for guide in document["guide"] for row in guide["row"]]
    named = [found for row in rows for found in re.findall(r"\{([^{}]+)\}", row["measured"])]
    return named + [row["judge"] for row in rows if "judge" in row]


def page(document: dict[str, Any], record: bench.Record) -> str:
    """The whole page."""
    lines = [
        "# Promises",
        "",
        "<!-- Written by `benchmarks/baseline/promises.py`. A change by hand fails a test. -->",
        "",
        *document["introduction"].strip().splitlines(),
        "",
    ]
    for guide in document["guide"]:
        lines += [f"## {guide['title']}", ""]
        rows = []
        for row in guide["row"]:
            command = f"`{row['command']}`" if row.get("command") else ""
            measured = filled(row["measured"], record)
            promised = " ".join(row["promised"].split())
            rows.append((promised, measured, command, verdict(row, record)))
        lines += table(HEADINGS, rows)
        for contradiction in guide.get("contradictions", []):
            lines.append("- " + " ".join(contradiction.split()))
        lines += [""] * bool(guide.get("contradictions"))
    return "\n".join(lines).rstrip() + "\n"


def written() -> str:
    """The page that the two files make."""
    document = tomllib.loads(ROWS.read_text(encoding="utf-8"))
    return page(document, bench.Record.from_json(FIGURES))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--print", action="store_true", help="print the page instead of writing it")
    if parser.parse_args().print:
        print(written())
    else:
        PAGE.write_text(written(), encoding="utf-8")
        print(PAGE)


if __name__ == "__main__":
    main()
