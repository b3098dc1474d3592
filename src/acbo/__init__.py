"""Amortized causal Bayesian optimisation."""

from __future__ import annotations
