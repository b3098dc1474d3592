"""The `worldloom` command."""

from __future__ import annotations

from worldloom.cli._as_command import as_command as as_command
from worldloom.cli._command import Command as Command
from worldloom.cli._command import FileCommand as FileCommand
from worldloom.cli._command import UsageError as UsageError
from worldloom.cli._main import main as main
from worldloom.cli._warnings import plain_warnings as plain_warnings

__all__ = ["Command", "FileCommand", "UsageError", "as_command", "main", "plain_warnings"]
