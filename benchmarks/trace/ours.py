"""JAXTrace in a process of its own: its rate, and the peak of its memory, at one size."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import workload

import jaxtrace as jt
from jaxtrace.tracking.boundary import reflective_boundary

BOX = [[0.0] * 3, [1.0] * 3]


def steps_of(particles: int) -> int:
    """Steps of one call, so that it takes a second or less."""
    return 300 if particles <= 10**4 else 30 if particles <= 10**6 else 10


def setup(*, case: Sequence[int], peak: str, dtype: str = "float32") -> Callable[[], Any]:
    """A run of so many particles, `2**20` at a time, through so many slices, of which so many steps
    are kept. After each the peak of the memory is written to a file, if one is named."""
    jt.configure(dtype=dtype)
    particles, slices, kept = case
    axis, times, data = workload.grid(slices=slices)
    tracker = jt.create_tracker(
        field=jt.StructuredField(data, (axis, axis, axis), times),
        boundary_condition=reflective_boundary(BOX),
        batch_size=2**20,
    )
    seeds = np.random.default_rng(0).uniform(0.02, 0.98, (particles, 3)).astype(np.float32)
    steps = steps_of(particles)
    every: dict[str, Any] = {"save_every": steps // kept} if kept > 1 else {"save_positions": False}

    def run() -> Any:
        tracks = tracker.track_particles(seeds, (0.0, steps * workload.STEP), steps, **every)
        if peak:
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            Path(peak).write_text(str(most), encoding="utf-8")
        return tracks.positions[-1]

    return run
