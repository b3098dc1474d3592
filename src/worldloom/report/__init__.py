"""One self-contained page that a run leaves: figures, charts, tables, replays, commands."""

from __future__ import annotations

from worldloom.report._benchmark import Benchmark as Benchmark
from worldloom.report._chart import BarChart as BarChart
from worldloom.report._chart import LineChart as LineChart
from worldloom.report._colour import gradient as gradient
from worldloom.report._page import Report as Report
from worldloom.report._picture import Picture as Picture
from worldloom.report._replay import Replay as Replay
from worldloom.report._replay import mosaic as mosaic
from worldloom.report._section import Asset as Asset
from worldloom.report._section import Fragment as Fragment
from worldloom.report._section import ReportError as ReportError
from worldloom.report._section import Section as Section
from worldloom.report._section import escape as escape
from worldloom.report._text import Commands as Commands
from worldloom.report._text import Table as Table
from worldloom.report._text import Text as Text

__all__ = [
    "Asset",
    "BarChart",
    "Benchmark",
    "Commands",
    "Fragment",
    "LineChart",
    "Picture",
    "Replay",
    "Report",
    "ReportError",
    "Section",
    "Table",
    "Text",
    "escape",
    "gradient",
    "mosaic",
]
