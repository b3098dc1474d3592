"""Particle tracking against Parcels 3 and 4, NumPy, SciPy, and the same step written in C.

All sides carry 7500 particles by RK4 through the same unsteady flow on 57 x 57 x 57 nodes and 40
slices, in float32, and take turns, round by round. On the grid all take the same 1500 steps, from
seeds in order, which are quick to look up, to particles well mixed; Parcels 4, the slowest, takes
the first 150. Parcels comes from PyPI into environments of its own and keeps no
output, which is to its advantage; the others keep every step. A ratio is the median over rounds,
with its 95 % interval. Beside each rate stands how far the particles end from where DOP853 takes
them in the flow itself. The public JAXTrace is on no package index: its rates are quoted.

    python benchmarks/trace_vs_rivals.py [--quick] [--alone] [--rounds 4]
    python benchmarks/trace_vs_rivals.py --scaling
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "trace"
sys.path.insert(0, str(HERE))

import ceiling  # noqa: E402  # pyright: ignore[reportMissingImports]
import numpy as np  # noqa: E402
import workload  # noqa: E402  # pyright: ignore[reportMissingImports]
from ours import BOX, steps_of  # noqa: E402  # pyright: ignore[reportMissingImports]
from rich import box  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from scipy.spatial import Delaunay  # noqa: E402

import jaxtrace as jt  # noqa: E402
import worldloom as wl  # noqa: E402
from jaxtrace.tracking.boundary import (  # noqa: E402
    continuous_inlet_boundary_factory,
    reflective_boundary,
)
from worldloom import bench  # noqa: E402

GROUP = "trace"
OURS, NUMPY, SCIPY = "JAXTrace, grid", "NumPy", "SciPy"
PARCELS3, PARCELS4 = "Parcels 3.1.4, C", "Parcels 4.0.2"
INLET, TETS, POINTS = "JAXTrace, inlet", "JAXTrace, tets", "JAXTrace, scattered"
TARGETS = {PARCELS3: 5, PARCELS4: 50, NUMPY: 12, SCIPY: 30}
# M particle-steps a second of the public JAXTrace (commit 3bbf532), as it was measured once.
PUBLIC_TETS, PUBLIC_POINTS = 0.030, 0.0001
LEAST = {TETS: 30 * PUBLIC_TETS, POINTS: 0.2}

# Steps of one call.
STEPS = {
    OURS: 1500,
    INLET: 1500,
    TETS: 300,
    POINTS: 100,
    PARCELS3: 1500,
    PARCELS4: 150,
    NUMPY: 1500,
    SCIPY: 1500,
}


def in_c(threads: int) -> str:
    return f"C, {threads} thread{'s' if threads > 1 else ''}"


def rivals(steps: dict[str, int], folder: Path) -> dict[str, Any]:
    """Everybody else who is installed from a package index, or stands in NumPy."""

    def rival(name: str, script: str, requirements: Any, **more: Any) -> bench.Rival:
        options = {"steps": steps[name], "folder": str(folder), "name": name, **more}
        return bench.Rival(HERE / script, requirements=requirements, options=options)

    return {
        PARCELS3: rival(
            PARCELS3, "rival_parcels3.py", ("parcels==3.1.4", "numpy<2", "setuptools<80")
        ),
        PARCELS4: rival(PARCELS4, "rival_parcels4.py", ("parcels==4.0.2",)),
        NUMPY: rival(NUMPY, "rival_numpy.py", None, scipy=False),
        SCIPY: rival(SCIPY, "rival_numpy.py", None, scipy=True),
    }


def tetrahedra(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """A jittered cube with as many points as the grid, in tetrahedra."""
    grid = np.stack(np.meshgrid(*[np.arange(nodes)] * 3, indexing="ij"), -1).reshape(-1, 3)
    inner = (grid > 0) & (grid < nodes - 1)
    noise = np.random.default_rng(0).uniform(-0.25, 0.25, grid.shape)
    points = (grid + noise * inner) / (nodes - 1)
    cells = Delaunay(points).simplices
    volume = np.abs(np.linalg.det(points[cells[:, 1:]] - points[cells[:, :1]]))
    return points, cells[volume > 1e-9 * volume.max()]


def our_fields(nodes: int) -> tuple[dict[str, tuple[Any, Any]], list[str]]:
    """Our fields and boundaries by name, and what building them took."""
    axis, times, data = workload.grid()
    walls, inlet = reflective_boundary(BOX), continuous_inlet_boundary_factory(BOX)
    grid = jt.StructuredField(data, (axis, axis, axis), times)
    fields: dict[str, tuple[Any, Any]] = {OURS: (grid, walls), INLET: (grid, inlet)}
    points, cells = tetrahedra(nodes)
    values = np.stack([workload.flow(points, t).astype(np.float32) for t in times])
    began = time.perf_counter()
    mesh = jt.TetField(values, points, cells, times)
    built = time.perf_counter()
    scattered = jt.TimeSeriesField(values, points, times, outside="clamp")
    notes = [
        f"{len(points)} points, {len(cells)} tets, {len(times)} slices: the mesh was built in "
        f"{built - began:.1f} s, the hash of points in {time.perf_counter() - built:.1f} s"
    ]
    return fields | {TETS: (mesh, walls), POINTS: (scattered, walls)}, notes


@dataclasses.dataclass
class Side:
    """One of ours: a call is a run, and the last run is kept."""

    tracker: Any
    steps: int
    last: Any = None

    def __call__(self) -> Any:
        """Run, and return where the particles end."""
        seeds = workload.seeds()
        until = self.steps * workload.STEP
        self.last = self.tracker.track_particles(seeds, (0.0, until), self.steps)
        return self.last.positions[-1]


def errors(ends: dict[str, np.ndarray], steps: dict[str, int]) -> dict[str, float]:
    """Median distance from where DOP853 takes some of the particles."""
    some = slice(None, None, 25)
    start = workload.seeds()[some]
    right = {n: workload.referee(start, n * workload.STEP) for n in {steps[name] for name in ends}}
    return {
        name: float(np.median(np.linalg.norm(end[some] - right[steps[name]], axis=1)))
        for name, end in ends.items()
    }


def against(comparison: bench.Comparison, rival: str) -> tuple[bench.Ratio, float]:
    """Our speed on the grid in units of a rival's, by the clock and by processor seconds."""
    ours, theirs = comparison[OURS], comparison[rival]
    assert ours.items is not None
    assert theirs.items is not None
    busy = (ours.items / ours.busy) / (theirs.items / theirs.busy)
    return dataclasses.replace(comparison, baseline=rival).ratio(OURS), busy


def verdict(met: bool, quiet: bool) -> str:
    return ("met" if met else "NOT MET") if quiet else "? (busy machine)"


def report(comparison: bench.Comparison, wrong: dict[str, float], quiet: bool) -> Table:
    """Rates, ratios, and what is wanted of them."""
    shown = Table(box=box.SIMPLE_HEAD, title="7500 particles, RK4", title_justify="left")
    for heading in ("", "M steps/s", "ours / theirs (95 %)", "a CPU second", "wanted", "error"):
        shown.add_column(heading)
    for name in comparison.names:
        if name in comparison.failures:
            shown.add_row(name, "failed", comparison.failures[name].strip().splitlines()[-1])
            continue
        rate = (comparison[name].rate or 0.0) / 1e6
        ratio = busy = wanted = ""
        if name in LEAST:
            wanted = f"{LEAST[name]:g} M: {verdict(rate >= LEAST[name], quiet)}"
        elif not name.startswith("JAXTrace"):
            found, by_cpu = against(comparison, name)
            ratio, busy = str(found), f"{by_cpu:.2f}x"
            if name in TARGETS:
                wanted = f"{TARGETS[name]}x: {verdict(found.value >= TARGETS[name], quiet)}"
        elif name == INLET:
            slower = 1 / dataclasses.replace(comparison, baseline=OURS).ratio(INLET).value
            wanted = f"at most 1.5x slower: {slower:.2f}x, {verdict(slower <= 1.5, quiet)}"
        far = f"{wrong[name]:.1e}" if name in wrong else ""
        shown.add_row(name, f"{rate:.3f}", ratio, busy, wanted, far)
    return shown


def scaling(script: bench.Script, options: argparse.Namespace) -> None:
    """Our rate over particles, slices and saved steps: each in a process of its own, in turn."""
    most = 5 if options.quick else 7
    many, slices, kept = [10**k for k in range(3, most + 1)], (2, 10, 40, 160), (1, 10, 300)
    for axis, cases in (
        ("particles", [(count, 40, 1) for count in many]),
        ("slices", [(7500, count, 1) for count in slices]),
        ("saved steps", [(7500, 40, count) for count in kept]),
    ):
        if options.quick and axis != "particles":
            continue
        with tempfile.TemporaryDirectory() as folder:
            variants, items, sizes, peaks = {}, {}, {}, {}
            for case in cases:
                size = case[("particles", "slices", "saved steps").index(axis)]
                name = f"{size:,} {axis}"
                peaks[name] = Path(folder) / f"{size}.txt"
                given = {"case": case, "peak": str(peaks[name])}
                variants[name] = bench.Rival(HERE / "ours.py", options=given)
                items[name], sizes[name] = case[0] * steps_of(case[0]), size
            found = bench.compare(
                variants,
                rounds=options.rounds,
                seconds=0.2,
                items=items,
                unit="particle-steps",
                title=f"particles on a grid, over {axis}",
            )
            memory = {name: int(path.read_text()) for name, path in peaks.items() if path.exists()}
            script.growth(found, axis=axis, sizes=sizes, memory=memory, memory_of="peak")


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(4, 2))
    script.parser.add_argument("--scaling", action="store_true", help="our rate over sizes, alone")
    options = script.start()
    if not options.scaling:
        measure(script, options)
    scaling(script, options)
    script.finish()


def measure(script: bench.Script, options: argparse.Namespace) -> None:
    """All sides in turn."""
    console = Console(width=max(Console().width, 130))
    steps = {name: max(3, n // (10 if options.quick else 1)) for name, n in STEPS.items()}
    fields, notes = our_fields(15 if options.quick else workload.NODES)
    sides = {
        name: Side(jt.create_tracker(field=field, boundary_condition=boundary), steps[name])
        for name, (field, boundary) in fields.items()
    }
    built = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        others = rivals(steps, folder)
        variants: dict[str, Any] = {**sides, **others}
        if options.alone:
            variants = {**sides, NUMPY: others[NUMPY]}
        ends = {}
        if not options.alone:
            library, data = ceiling.build(folder), np.ascontiguousarray(workload.grid()[2])
            for threads in (1, 2):
                steps[in_c(threads)] = steps[OURS]
                run = ceiling.program(library, data, steps[OURS], threads)
                variants[in_c(threads)] = run
                ends[in_c(threads)] = run()[-1].astype(np.float64)
        for name, side in sides.items():
            side()
            built[name] = side.last.report.compile_seconds
            with wl.count_compiles() as compiles:
                side()
            script.figure(f"{name}: compiled in", built[name], "s", limit=5)
            script.figure(f"{name}: programs that a second call compiled", compiles.total, limit=0)
            if name != INLET:
                ends[name] = np.asarray(side.last.positions[-1], np.float64)
        count = len(workload.seeds())
        comparison = bench.compare(
            variants,
            baseline=OURS,
            rounds=options.rounds,
            seconds=0.2 if options.quick else 2.0,
            items={name: count * steps[name] for name in variants},
            unit="particle-steps",
            title="7,500 particles, RK4, 57 x 57 x 57 nodes, 40 slices",
        )
        for name in variants:
            if (kept := folder / f"{name}.npy").exists():
                ends[name] = np.load(kept)
    script.case(comparison, ours=OURS, naive=NUMPY, compiling=built, show=False)
    wrong = errors(ends, steps)
    for name, far in wrong.items():
        script.figure(f"{name}: median distance from DOP853", far, "of the box")
    slower = 1 / comparison.ratio(INLET).value
    script.figure("an inlet / a reflective wall", slower, "times the time", limit=1.5)
    console.print(report(comparison, wrong, script.quiet))
    for note in notes:
        console.print(note)
    console.print(
        f"quoted, not measured here: public JAXTrace on tets {PUBLIC_TETS} M, on points "
        f"{PUBLIC_POINTS} M"
    )
    if not script.quiet:
        console.print("The machine was busy: go by the ratios of a CPU second, and measure again.")


if __name__ == "__main__":
    main()
