"""The commands of `worldloom arc`."""

from __future__ import annotations

from jaxarc.cli import _info, _rollout

COMMANDS = (_rollout.COMMAND, _info.COMMAND)

__all__ = ["COMMANDS"]
