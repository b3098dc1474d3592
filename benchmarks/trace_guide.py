"""What a guide to particle tracking promises: compiling, batches, precision, what watching costs.

7500 particles by RK4 through an unsteady flow on 57 x 57 x 57 nodes and 40 slices, compiled and
operation by operation (`use_jax_jit=False`); in batches of 500; with velocities kept, a progress
callback, memory tracked. `docs/promises.md` holds the figures against what was promised.

    python benchmarks/trace_guide.py [--rounds 5] [--quick]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "trace"
sys.path.insert(0, str(HERE))

import jax  # noqa: E402
import workload  # noqa: E402  # pyright: ignore[reportMissingImports]
from ours import BOX  # noqa: E402  # pyright: ignore[reportMissingImports]

import jaxtrace as jt  # noqa: E402
from jaxtrace.tracking.boundary import (  # noqa: E402
    continuous_inlet_boundary_factory,
    reflective_boundary,
)
from jaxtrace.utils import track_memory, track_operation_memory  # noqa: E402
from worldloom import bench  # noqa: E402

GROUP = "trace"
OURS, NAIVE = "one batch, compiled", "operation by operation"
SLOW_STEPS = 2


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(5, 3))
    options = script.start()
    axis, times, data = workload.grid()
    field = jt.StructuredField(data, (axis, axis, axis), times)
    walls, seeds = reflective_boundary(BOX), workload.seeds()
    steps = 150 if options.quick else 1500

    def tracker(boundary: Any = walls, **more: Any) -> Any:
        return jt.create_tracker("rk4", field, boundary, **more)

    def run(made: Any, count: int = steps) -> Callable[[], Any]:
        span = (0.0, count * workload.STEP)
        return lambda: made.track_particles(seeds, span, count).positions[-1]

    plain = tracker()
    for title in ("the first run of 7500 x 1500", "a later run of 7500 x 1500"):
        began = time.perf_counter()
        jax.block_until_ready(run(plain, 1500)())
        script.figure(title, time.perf_counter() - began, "s")

    def tracked() -> Any:
        with track_memory(show=False), track_operation_memory("track"):
            return run(plain)()

    variants = {
        NAIVE: run(tracker(use_jax_jit=False, device_count=1), SLOW_STEPS),
        OURS: run(plain),
        "batches of 500": run(tracker(batch_size=500)),
        "velocities kept": run(tracker(record_velocities=True)),
        "progress callback": run(tracker(progress_callback=lambda part: None)),
        "memory tracked": tracked,
        "continuous inlet": run(tracker(continuous_inlet_boundary_factory(BOX))),
    }
    items = {name: len(seeds) * (SLOW_STEPS if name == NAIVE else steps) for name in variants}
    found = bench.compare(
        variants,
        rounds=options.rounds,
        items=items,
        unit="particle-steps",
        title="7,500 particles on a grid",
    )
    script.case(found, ours=OURS, naive=NAIVE)
    kinds = {
        dtype: bench.Rival(
            HERE / "ours.py", options={"case": [7500, 40, 1], "peak": "", "dtype": dtype}
        )
        for dtype in ("float32", "float64")
    }
    precise = bench.compare(
        kinds,
        rounds=options.rounds,
        items=7500 * 300,
        unit="particle-steps",
        title="7,500 particles in 32 and 64 bits",
    )
    script.case(precise, ours="float32")
    script.finish()


if __name__ == "__main__":
    main()
