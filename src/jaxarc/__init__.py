"""ARC puzzles as a JAX reinforcement-learning environment."""

from __future__ import annotations
