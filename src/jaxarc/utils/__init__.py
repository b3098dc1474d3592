"""Helpers around the environment."""

from __future__ import annotations
