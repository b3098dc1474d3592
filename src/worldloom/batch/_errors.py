"""What can go wrong with a batch."""

from __future__ import annotations

from worldloom._errors import WorldloomError


class BatchError(WorldloomError, ValueError):
    """An argument does not describe a batch."""


class BatchMemoryError(WorldloomError, MemoryError):
    """Not even a batch of one fits into memory."""
