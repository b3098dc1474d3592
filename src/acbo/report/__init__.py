"""Pages about graphs, training and optimisation, made of pieces of `worldloom.report`."""

from __future__ import annotations

from acbo.report._charts import learning_curves as learning_curves
from acbo.report._charts import regret_curves as regret_curves
from acbo.report._charts import reliability_chart as reliability_chart
from acbo.report._drawing import GraphDrawing as GraphDrawing
from acbo.report._pages import add_discovery_scores as add_discovery_scores
from acbo.report._pages import add_graph as add_graph
from acbo.report._pages import add_optimisation as add_optimisation
from acbo.report._pages import add_policy_scores as add_policy_scores
from acbo.report._pages import steps_table as steps_table
from acbo.report._recording import Recording as Recording
from acbo.report._recording import record_optimisation as record_optimisation
from acbo.report._replay import OptimisationReplay as OptimisationReplay

__all__ = [
    "GraphDrawing",
    "OptimisationReplay",
    "Recording",
    "add_discovery_scores",
    "add_graph",
    "add_optimisation",
    "add_policy_scores",
    "learning_curves",
    "record_optimisation",
    "regret_curves",
    "reliability_chart",
    "steps_table",
]
