"""The flow that all sides carry particles through. NumPy alone: rivals import it too."""

from __future__ import annotations

from pathlib import Path

import numpy as np

NODES, SLICES, END = 57, 40, 4.0
SEEDS = (30, 25, 10)
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


def grid(nodes=NODES, slices=SLICES):
    """Axis, times, and velocities `[slices, nodes, nodes, nodes, 3]` in float32."""
    axis, times = np.linspace(0.0, 1.0, nodes), np.linspace(0.0, END, slices)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)
    return axis, times, np.stack([flow(points, t).astype(np.float32) for t in times])


def seeds(count=SEEDS):
    """Places on a lattice, `[N, 3]` in float32."""
    axes = [np.linspace(0.02, 0.98, n) for n in count]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3).astype(np.float32)


def referee(places, until):
    """Where DOP853 takes places in the flow itself."""
    from scipy.integrate import solve_ivp

    def rhs(t, y):
        return flow(y.reshape(-1, 3), t).ravel()

    start = places.astype(np.float64).ravel()
    end = solve_ivp(rhs, (0.0, until), start, method="DOP853", rtol=1e-10, atol=1e-12)
    return end.y[:, -1].reshape(-1, 3)


def leave(folder, name, places):
    """Where the particles of a side end, for the referee."""
    np.save(Path(folder) / f"{name}.npy", np.asarray(places, np.float64))
