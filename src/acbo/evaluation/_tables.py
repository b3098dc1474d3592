"""Scores as rows of text, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence

from acbo.evaluation._contest import PolicyScores
from acbo.evaluation._discovery import DiscoveryScores
from acbo.metrics import Interval

Rows = tuple[list[str], list[list[str]]]


def discovery_table(scores: Sequence[DiscoveryScores]) -> Rows:
    """Columns and rows, one row a cell."""
    columns = ["cell", "AUROC", "goal", "F1", "SHD", "ECE", "log loss", "ms"]
    with_exact = any(score.exact is not None for score in scores)
    if with_exact:
        columns += ["exact AUROC", "ECE to exact", "gap to exact"]
    rows = []
    for score in scores:
        row = [
            str(score.cell),
            between(score.auroc),
            "" if score.cell.goal is None else f"{score.cell.goal:.2f}",
            between(score.f1),
            f"{float(score.shd.estimate):.2f}",
            between(score.calibration_error),
            f"{float(score.log_loss.estimate):.3f}",
            f"{score.milliseconds:.2f}",
        ]
        if with_exact:
            near = score.exact
            row += (
                ["", "", ""]
                if near is None
                else [
                    between(near.auroc),
                    between(near.calibration_error),
                    f"{float(near.gap.estimate):.3f}",
                ]
            )
        rows.append(row)
    return columns, rows


def policy_table(scores: Sequence[PolicyScores]) -> Rows:
    """Columns and rows, one row a policy and contest."""
    columns = ["policy", "problems", "best", "mean", "at half", "parent F1", "AUROC", "ms"]
    rows = []
    for score in scores:
        half = 1 - float(score.regret.estimate[(len(score.regret.estimate) - 1) // 2])
        rows.append(
            [
                score.policy,
                score.contest.name,
                between(score.best),
                between(score.mean),
                f"{half:.3f}",
                f"{float(score.parent_f1.estimate):.2f}",
                f"{float(score.parent_auroc.estimate):.2f}",
                f"{score.milliseconds:.3f}",
            ]
        )
    return columns, rows


def between(interval: Interval) -> str:
    """`0.973 (0.961-0.984)`."""
    low, high = float(interval.low), float(interval.high)
    return f"{float(interval.estimate):.3f} ({low:.3f}-{high:.3f})"
