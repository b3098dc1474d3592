"""Honest timing: variants in turn, ratios with a spread, rivals in environments of their own."""

from __future__ import annotations

from worldloom.bench._compare import compare as compare
from worldloom.bench._environment import InstallError as InstallError
from worldloom.bench._gate import Check as Check
from worldloom.bench._gate import GateResult as GateResult
from worldloom.bench._gate import RegressionError as RegressionError
from worldloom.bench._gate import gate as gate
from worldloom.bench._local import UnfinishedWorkError as UnfinishedWorkError
from worldloom.bench._machine import Machine as Machine
from worldloom.bench._result import BenchmarkError as BenchmarkError
from worldloom.bench._result import Comparison as Comparison
from worldloom.bench._result import ComparisonFileError as ComparisonFileError
from worldloom.bench._result import Ratio as Ratio
from worldloom.bench._result import Timing as Timing
from worldloom.bench._rival import Rival as Rival
from worldloom.bench._rival import RivalError as RivalError

__all__ = [
    "BenchmarkError",
    "Check",
    "Comparison",
    "ComparisonFileError",
    "GateResult",
    "InstallError",
    "Machine",
    "Ratio",
    "RegressionError",
    "Rival",
    "RivalError",
    "Timing",
    "UnfinishedWorkError",
    "compare",
    "gate",
]
