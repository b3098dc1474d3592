"""The `worldloom` command."""

from __future__ import annotations

from worldloom.cli._as_command import as_command as as_command
from worldloom.cli._command import Command as Command
from worldloom.cli._command import FileCommand as FileCommand
from worldloom.cli._command import UsageError as UsageError
from worldloom.cli._main import main as main
from worldloom.cli._output import OutputError as OutputError
from worldloom.cli._output import OutputFile as OutputFile
from worldloom.cli._output import OutputFolder as OutputFolder
from worldloom.cli._output import check_room as check_room
from worldloom.cli._saved import naming_options as naming_options
from worldloom.cli._saved import options_of as options_of
from worldloom.cli._saved import recorded_options as recorded_options
from worldloom.cli._saved import seed_or_fresh as seed_or_fresh
from worldloom.cli._warnings import plain_warnings as plain_warnings

__all__ = [
    "Command",
    "FileCommand",
    "OutputError",
    "OutputFile",
    "OutputFolder",
    "UsageError",
    "as_command",
    "check_room",
    "main",
    "naming_options",
    "options_of",
    "plain_warnings",
    "recorded_options",
    "seed_or_fresh",
]
