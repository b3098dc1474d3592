"""The commands of `worldloom arc`."""

from __future__ import annotations

from jaxarc.cli import _info, _pictures, _rollout, _train

COMMANDS = (_rollout.COMMAND, _train.COMMAND, _info.COMMAND, *_pictures.COMMANDS)

__all__ = ["COMMANDS"]
