"""Honest timing: variants in turn, ratios with a spread, rivals in environments of their own."""

from __future__ import annotations

from worldloom.bench._compare import compare as compare
from worldloom.bench._environment import InstallError as InstallError
from worldloom.bench._gate import Check as Check
from worldloom.bench._gate import GateResult as GateResult
from worldloom.bench._gate import RegressionError as RegressionError
from worldloom.bench._gate import gate as gate
from worldloom.bench._gate import guard as guard
from worldloom.bench._local import UnfinishedWorkError as UnfinishedWorkError
from worldloom.bench._machine import Machine as Machine
from worldloom.bench._record import Case as Case
from worldloom.bench._record import Figure as Figure
from worldloom.bench._record import Findings as Findings
from worldloom.bench._record import Growth as Growth
from worldloom.bench._record import Record as Record
from worldloom.bench._result import BenchmarkError as BenchmarkError
from worldloom.bench._result import Comparison as Comparison
from worldloom.bench._result import ComparisonFileError as ComparisonFileError
from worldloom.bench._result import Ratio as Ratio
from worldloom.bench._result import Timing as Timing
from worldloom.bench._rival import Rival as Rival
from worldloom.bench._rival import RivalError as RivalError
from worldloom.bench._script import Program as Program
from worldloom.bench._script import Script as Script
from worldloom.bench._script import build as build
from worldloom.bench._script import no_cache as no_cache

__all__ = [
    "BenchmarkError",
    "Case",
    "Check",
    "Comparison",
    "ComparisonFileError",
    "Figure",
    "Findings",
    "GateResult",
    "Growth",
    "InstallError",
    "Machine",
    "Program",
    "Ratio",
    "Record",
    "RegressionError",
    "Rival",
    "RivalError",
    "Script",
    "Timing",
    "UnfinishedWorkError",
    "build",
    "compare",
    "gate",
    "guard",
    "no_cache",
]
