"""Exact posteriors of linear-Gaussian causal graphs: what a learned answer is held against."""

from __future__ import annotations

from acbo.exact._enumerate import GraphPosterior as GraphPosterior
from acbo.exact._enumerate import enumerate_dags as enumerate_dags
from acbo.exact._enumerate import graph_posterior as graph_posterior
from acbo.exact._mcmc import OrderSample as OrderSample
from acbo.exact._mcmc import order_mcmc as order_mcmc
from acbo.exact._score import BGe as BGe
from acbo.exact._score import local_scores as local_scores
from acbo.exact._score import parent_set_table as parent_set_table
from acbo.exact._sums import Marginals as Marginals
from acbo.exact._sums import marginals as marginals

__all__ = [
    "BGe",
    "GraphPosterior",
    "Marginals",
    "OrderSample",
    "enumerate_dags",
    "graph_posterior",
    "local_scores",
    "marginals",
    "order_mcmc",
    "parent_set_table",
]
