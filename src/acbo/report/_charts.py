"""Curves of training, of regret, of reliability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acbo._errors import DataError
from acbo.evaluation import DiscoveryScores, PolicyScores
from acbo.policy import GRPOMetrics
from acbo.surrogate import Metrics
from worldloom import report

_MOST_LINES = 6


def learning_curves(records: Any, *, title: str = "") -> report.LineChart:
    """The records of a training as a chart: running means over a fiftieth of the steps.

    **Arguments:**

    - `records`: of `train_surrogate` or `train_policy`, saved every step.
    """
    if isinstance(records, Metrics):
        lesson = np.asarray(records.lesson)
        loss = np.asarray(records.edge_loss, float)
        if not len(loss):
            raise DataError("records has no steps")
        lines: dict[str, Any] = {"all lessons": _smooth(np.arange(len(loss)), loss)}
        several = np.unique(lesson)
        if 1 < len(several) < _MOST_LINES:
            for k in several:
                lines[f"lesson {k + 1}"] = _smooth(np.flatnonzero(lesson == k), loss[lesson == k])
        return report.LineChart(
            lines,
            title=title or "Loss of the surrogate",
            x_label="step",
            y_label="nats a pair of variables",
        )
    if isinstance(records, GRPOMetrics):
        if not len(np.asarray(records.best)):
            raise DataError("records has no steps")
        lines = {
            name: _smooth(np.arange(len(values)), np.asarray(values, float))
            for name, values in (("best of the budget", records.best), ("mean", records.worth))
        }
        return report.LineChart(
            lines,
            title=title or "Worth of interventions while the policy learns",
            x_label="step",
            y_label="1 is the best intervention",
        )
    raise DataError(
        f"records is a {type(records).__name__}; expected the records of train_surrogate "
        "(Metrics) or of train_policy (GRPOMetrics)"
    )


def _smooth(steps: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Running means; the first mean ends at the first full window."""
    window = max(1, len(values) // 50)
    total = np.cumsum(np.insert(values, 0, 0.0))
    return steps[window - 1 :], (total[window:] - total[:-window]) / window


def regret_curves(scores: Sequence[PolicyScores], *, title: str = "") -> report.LineChart:
    """Simple regret against the interventions made, one line a policy.

    A chart has six lines at most: the learned policy and the best of the others by their mean.
    """
    if not scores:
        raise DataError("scores is empty; give the scores of at least one policy")
    ranked = sorted(
        scores, key=lambda score: (score.policy != "learned", -float(score.mean.estimate))
    )
    kept, rest = ranked[:_MOST_LINES], ranked[_MOST_LINES:]
    budget = len(scores[0].regret.estimate)
    left = f" Not drawn: {', '.join(score.policy for score in rest)}." if rest else ""
    return report.LineChart(
        {
            score.policy: (np.arange(1, budget + 1), np.asarray(score.regret.estimate))
            for score in kept
        },
        title=title or f"Regret, {scores[0].contest.name}",
        x_label="interventions",
        y_label="1 - best so far",
        caption=f"Mean over {scores[0].problems} problems; 0 is the best single intervention."
        f"{left}",
    )


def reliability_chart(scores: DiscoveryScores) -> report.LineChart:
    """What was said against what came true, in ten bins of probability."""
    table = scores.reliability
    filled = np.asarray(table.count) > 0
    said = np.asarray(table.predicted)[filled]
    came = np.asarray(table.observed)[filled]
    return report.LineChart(
        {"edges": (said, came), "honest": (np.array([0.0, 1.0]), np.array([0.0, 1.0]))},
        title=f"Reliability: {scores.cell}",
        x_label="probability said",
        y_label="share of edges that exist",
        caption=f"Calibration error {float(scores.calibration_error.estimate):.3f} over "
        f"{scores.graphs} graphs.",
    )
