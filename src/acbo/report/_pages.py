"""Whole pages, and chapters of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from acbo.evaluation import (
    DiscoveryScores,
    PolicyScores,
    discovery_table,
    policy_table,
)
from acbo.report._charts import regret_curves, reliability_chart
from acbo.report._drawing import GraphDrawing
from acbo.report._recording import Recording
from acbo.report._replay import OptimisationReplay
from worldloom import report

_ROWS = 25


def add_graph(
    page: report.Report,
    probabilities: Float[np.ndarray, "d d"],
    names: Sequence[str],
    *,
    heading: str = "What causes what",
    text: str = "",
    truth: Bool[np.ndarray, "d d"] | None = None,
) -> report.Report:
    """A chapter with a drawing of edge probabilities and the table of the likely ones."""
    page.section(heading, text)
    page.add(
        GraphDrawing(
            probabilities,
            names,
            title="Direct causes",
            truth=truth,
            caption="The wider an arrow, the more probable the edge. Dashed: less likely than not. "
            "Below 0.1: not drawn.",
        )
    )
    d = len(names)
    pairs = [(i, j) for i in range(d) for j in range(d) if i != j]
    pairs = [pair for pair in pairs if probabilities[pair] >= 0.1]
    pairs.sort(key=lambda pair: -probabilities[pair])
    rows = [[names[i], names[j], f"{probabilities[i, j]:.3f}"] for i, j in pairs[:_ROWS]]
    left = f" The {_ROWS} most likely of {len(pairs)}." if len(pairs) > _ROWS else ""
    if rows:
        page.add(
            report.Table(
                ["cause", "effect", "probability"],
                rows,
                caption=f"Edges with a probability of 0.1 or more.{left}",
            )
        )
    return page


def add_optimisation(page: report.Report, recording: Recording) -> report.Report:
    """A chapter with the replay of an optimisation and the table of its steps."""
    target = recording.names[recording.target]
    page.section(
        "Step by step",
        "Each step sets one variable and sees one sample. The graph is what the surrogate believes "
        "at that moment.",
    )
    page.add(OptimisationReplay(recording))
    columns, rows = steps_table(recording)
    page.add(report.Table(columns, rows, caption=f"Interventions; the target is {target}."))
    return page


def steps_table(recording: Recording) -> tuple[list[str], list[list[str]]]:
    """Columns and rows, one row an intervention."""
    target = recording.names[recording.target]
    rows = [
        [
            f"{k + 1}. {recording.names[recording.variables[k]]} = {recording.values[k]:.2f}",
            f"{recording.seen[k]:.3f}",
            f"{recording.worth[k]:.3f}",
            f"{recording.best[k]:.3f}",
        ]
        for k in range(len(recording.worth))
    ]
    return ["set", f"{target} seen", "worth", "best"], rows


def add_discovery_scores(page: report.Report, scores: Sequence[DiscoveryScores]) -> report.Report:
    """A chapter with the figures of discovery, and whether its probabilities are honest."""
    page.section(
        "How well graphs are found",
        "Edges of held-out graphs. AUROC: the chance that a true edge has a higher probability "
        "than one that is none. ECE: by how much probabilities miss how often they come true. *ECE "
        "to exact*: by how much, in the mean of a bin, they miss the probabilities of the exact "
        "posterior on the same data.",
    )
    columns, rows = discovery_table(scores)
    page.add(report.Table(columns, rows, caption="95 % bootstrap intervals over graphs."))
    charts = [reliability_chart(score) for score in scores]
    for k in range(0, len(charts), 2):
        page.add(*charts[k : k + 2])
    return page


def add_policy_scores(page: report.Report, scores: Sequence[PolicyScores]) -> report.Report:
    """A chapter with the figures of policies, and regret against the budget."""
    page.section(
        "How fast the best intervention is found",
        "Worth: the expected target, on a scale where 0 is doing nothing and 1 is the best single "
        "intervention. *best*: within the budget; *mean*: over all interventions.",
    )
    contests = list(dict.fromkeys(score.contest for score in scores))
    for contest in contests:
        group = [score for score in scores if score.contest == contest]
        page.add(regret_curves(group))
        columns, rows = policy_table(group)
        left = group[0].left_out
        page.add(
            report.Table(
                columns,
                rows,
                caption=f"{contest.name}: {group[0].problems} problems; {left} more had nothing to "
                "gain and do not count.",
            )
        )
    return page
