"""The commands of `worldloom trace`."""

from __future__ import annotations

from jaxtrace.cli import _ftle, _look, _run
from jaxtrace.cli._run import Run as Run

COMMANDS = (_run.COMMAND, *_look.COMMANDS, _ftle.COMMAND)

__all__ = ["COMMANDS", "Run"]
