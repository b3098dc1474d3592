"""The demo: thousands of small chemical worlds in one program, and a page that shows them."""

from __future__ import annotations

from worldloom.demo._main import Scale as Scale
from worldloom.demo._main import main as main
from worldloom.demo._table import Line as Line

__all__ = ["Line", "Scale", "main"]
