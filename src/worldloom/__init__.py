"""Compile, batch, watch, store and measure JAX simulations."""

from __future__ import annotations

__version__ = "0.1.0"
