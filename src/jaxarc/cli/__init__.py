"""The commands of `worldloom arc`."""

from __future__ import annotations

from jaxarc.cli import _info, _pictures, _rollout

COMMANDS = (_rollout.COMMAND, _info.COMMAND, *_pictures.COMMANDS)

__all__ = ["COMMANDS"]
