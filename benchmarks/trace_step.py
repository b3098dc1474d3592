"""Particle-steps a second of JAXTrace on a grid and on tetrahedra, and of NumPy on the same grid.

    python benchmarks/trace_step.py [--steps 300] [--tets 57] [--rounds 3]

Grid: 57 x 57 x 57 nodes, 40 slices, 7500 particles, RK4, every step kept, float32. NumPy does the
same arithmetic. Tetrahedra: a jittered cube with as many nodes. Rounds take turns; the best counts.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.spatial import Delaunay

import jaxtrace as jt
from jaxtrace.tracking.boundary import continuous_inlet_boundary_factory, reflective_boundary

BOX = [[0.0] * 3, [1.0] * 3]
END = 4.0
STEP = END / 1500


def flow(p, t):
    """An unsteady Taylor-Green flow in the unit cube, with no flow through its walls."""
    a = 1.0 + 0.3 * np.sin(2 * np.pi * t / 4)
    b = -0.5 + 0.3 * np.cos(2 * np.pi * t / 4)
    s, c = np.sin(np.pi * p), np.cos(np.pi * p)
    return np.stack(
        [
            a * s[..., 0] * c[..., 1] * c[..., 2],
            b * c[..., 0] * s[..., 1] * c[..., 2],
            -(a + b) * c[..., 0] * c[..., 1] * s[..., 2],
        ],
        axis=-1,
    )


def numpy_velocity(data, times, x, t):
    """Trilinear in space, linear in time, vectorised over particles."""
    n = data.shape[1]
    k = min(int(np.searchsorted(times, t, side="right")) - 1, len(times) - 2)
    w = np.float32((t - times[k]) / (times[k + 1] - times[k]))
    f = np.clip(x * (n - 1), 0, n - 1)
    i = np.minimum(f.astype(np.int32), n - 2)
    s = f - i
    flat = ((i[:, 0] * n + i[:, 1]) * n) + i[:, 2]
    total = np.zeros_like(x)
    for a in (0, 1):
        for b in (0, 1):
            for c in (0, 1):
                part = (s[:, 0] if a else 1 - s[:, 0]) * (s[:, 1] if b else 1 - s[:, 1])
                part = part * (s[:, 2] if c else 1 - s[:, 2])
                node = flat + (a * n + b) * n + c
                low, high = data[k].reshape(-1, 3)[node], data[k + 1].reshape(-1, 3)[node]
                total += part[:, None] * (low + w * (high - low))
    return total


def numpy_run(data, times, seeds, steps):
    x = seeds.copy()
    kept = np.empty((steps + 1, *seeds.shape), np.float32)
    kept[0] = x
    h = np.float32(STEP)
    for n in range(steps):
        t = n * STEP
        k1 = numpy_velocity(data, times, x, t)
        k2 = numpy_velocity(data, times, x + h / 2 * k1, t + STEP / 2)
        k3 = numpy_velocity(data, times, x + h / 2 * k2, t + STEP / 2)
        k4 = numpy_velocity(data, times, x + h * k3, t + STEP)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        x = 1 - np.abs(np.mod(x, 2) - 1)
        kept[n + 1] = x
    return kept


def tetrahedra(n, times):
    grid = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3)
    inner = (grid > 0) & (grid < n - 1)
    noise = np.random.default_rng(0).uniform(-0.25, 0.25, grid.shape)
    points = (grid + noise * inner) / (n - 1)
    cells = Delaunay(points).simplices
    volume = np.abs(np.linalg.det(points[cells[:, 1:]] - points[cells[:, :1]]))
    cells = cells[volume > 1e-9 * volume.max()]
    data = np.stack([flow(points, t).astype(np.float32) for t in times])
    began = time.perf_counter()
    field = jt.TetField(data, points, cells, times)
    seconds = time.perf_counter() - began
    print(f"mesh: {len(points)} points, {len(cells)} tets, built in {seconds:.1f} s")
    return field, data, points


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=57)
    parser.add_argument("--tets", type=int, default=57)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    times = np.linspace(0.0, END, 40)
    axis = np.linspace(0, 1, options.nodes)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)
    data = np.stack([flow(grid, t).astype(np.float32) for t in times])
    seeds = jt.uniform_grid_seeds((30, 25, 10), [[0.02] * 3, [0.98] * 3])
    field = jt.StructuredField(data, (axis, axis, axis), times)
    walls, inlet = reflective_boundary(BOX), continuous_inlet_boundary_factory(BOX)
    fields = {"grid, reflective": (field, walls), "grid, continuous inlet": (field, inlet)}
    if options.tets:
        mesh, mesh_data, points = tetrahedra(options.tets, times)
        fields["tets"] = (mesh, walls)
        scattered = jt.TimeSeriesField(mesh_data, points, times, outside="clamp")
        fields["scattered, nearest"] = (scattered, walls)
    best, ends = {}, {}
    trackers = {
        name: jt.create_tracker("rk4", field=field, boundary_condition=boundary)
        for name, (field, boundary) in fields.items()
    }
    steps = dict.fromkeys(trackers, options.steps) | {"scattered, nearest": options.steps // 10}
    for turn in range(options.rounds + 1):
        for name, tracker in trackers.items():
            n = steps[name]
            began = time.perf_counter()
            tracks = tracker.track_particles(seeds, (0.0, n * STEP), n)
            seconds = time.perf_counter() - began
            if turn:
                best[name] = min(best.get(name, np.inf), seconds)
            else:
                print(f"{name}: compiled in {tracks.report.compile_seconds:.1f} s")
            ends[name] = tracks
    n = max(options.steps // 10, 1)
    began = time.perf_counter()
    by_numpy = numpy_run(data, times, seeds, n)
    rival = len(seeds) * n / (time.perf_counter() - began)
    gap = np.abs(by_numpy - np.asarray(ends["grid, reflective"].positions)[: n + 1]).max()
    print(f"M particle-steps a second (NumPy and we differ by {gap:.1e} in positions)")
    print(f"NumPy, same arithmetic: {rival / 1e6:.3f}")
    for name, seconds in best.items():
        rate = len(seeds) * steps[name] / seconds
        alive = (ends[name].status[-1] == 0).mean()
        print(f"{name}: {rate / 1e6:.3f}, {rate / rival:.1f} x NumPy; {alive:.1%} alive")


if __name__ == "__main__":
    main()
