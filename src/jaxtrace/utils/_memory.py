"""Memory of pieces of work, through the meter of the engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from worldloom.watch import MemoryMeter

_meters: list[MemoryMeter] = []


@contextlib.contextmanager
def track_memory(*, show: bool = True) -> Iterator[MemoryMeter]:
    """Measure the operations inside, and print a table at the end. Costs under 1 % of a core.

    ```python
    from jaxtrace.utils import track_memory, track_operation_memory

    with track_memory(show=False) as meter:
        with track_operation_memory("load"):
            data = bytearray(1_000_000)
    assert meter.phases[0].name == "load"
    ```
    """
    meter = MemoryMeter()
    _meters.append(meter)
    try:
        yield meter
    finally:
        _meters.remove(meter)
        if show and meter.phases:
            meter.print()


@contextlib.contextmanager
def track_operation_memory(name: str) -> Iterator[MemoryMeter]:
    """Measure one operation; inside `track_memory` it becomes a row of that table."""
    meter = _meters[-1] if _meters else MemoryMeter()
    with meter.phase(name):
        yield meter
    if not _meters:
        meter.print()
