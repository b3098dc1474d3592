"""The `worldloom` command."""

from __future__ import annotations

from worldloom.cli._command import Command as Command
from worldloom.cli._command import UsageError as UsageError
from worldloom.cli._main import main as main

__all__ = ["Command", "UsageError", "main"]
