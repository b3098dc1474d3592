"""Particles carried by measured flow fields."""

from __future__ import annotations
