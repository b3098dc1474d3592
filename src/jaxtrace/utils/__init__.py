"""Looking at memory while tracks are computed."""

from __future__ import annotations

from jaxtrace.utils._memory import track_memory as track_memory
from jaxtrace.utils._memory import track_operation_memory as track_operation_memory

__all__ = ["track_memory", "track_operation_memory"]
