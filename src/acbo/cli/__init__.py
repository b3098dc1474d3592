"""The commands of `worldloom acbo`."""

from __future__ import annotations

from acbo.cli import _bench, _discover, _eval, _optimise, _train
from acbo.cli._discover import Discover as Discover
from acbo.cli._eval import Eval as Eval
from acbo.cli._optimise import Optimise as Optimise
from acbo.cli._train import Train as Train

COMMANDS = (
    _discover.COMMAND,
    _optimise.COMMAND,
    _train.COMMAND,
    _eval.COMMAND,
    _bench.COMMAND,
)

__all__ = ["COMMANDS", "Discover", "Eval", "Optimise", "Train"]
