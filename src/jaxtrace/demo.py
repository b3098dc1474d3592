"""What `worldloom demo` shows of tracking: a whirlwind on a grid, and who is carried away by it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import jaxtrace as jt
from jaxtrace.tracking import Tracker
from jaxtrace.tracking.boundary import mixed_boundary
from jaxtrace.visualization import Viewer
from worldloom import bench, report
from worldloom.demo import Line

NODES = 49  # along each axis of the grid
SLICES = 24
SECONDS = 12.0
BOUNDS = np.array([[-1.0, -1.0, 0.0], [1.0, 1.0, 2.0]])


def add_to(
    page: report.Report, *, particles: int = 7500, steps: int = 1500, rounds: int = 3
) -> Line:
    """Follow particles through a whirlwind, add a chapter about it, and say how it went.

    The flow is data: velocities on a grid at some times, as a measurement or a model leaves them.
    Dust is released near the ground, drawn in, and leaves through the top.
    """
    axes, times, data = whirlwind()
    field = jt.StructuredField(data, axes, times)
    walls = mixed_boundary(BOUNDS, {"x": "reflect", "y": "reflect", "z-": "reflect", "z+": "exit"})
    tracker = jt.create_tracker("rk4", field=field, boundary_condition=walls)
    low, high = BOUNDS.copy()
    high[2] = 0.25
    seeds = jt.random_seeds(particles, [low, high], seed=0)
    release = np.random.default_rng(1).uniform(0.0, 0.75 * SECONDS, particles)
    release[: particles // 4] = 0.0
    tracks = tracker.track_particles(
        seeds,
        (0.0, SECONDS),
        steps,
        release_times=release,
        save_every=_record_every(steps),
        progress="particles",
    )
    compared = _measure(tracker, data, seeds, steps, rounds)
    ratio = compared.ratio("JAXTrace").value
    rate = compared["JAXTrace"].rate or 0.0
    ended = tracks.counts()
    gone = ended.get(jt.Status.EXITED, 0)
    page.section(
        "Particles in a whirlwind",
        f"{particles:,} particles of dust in a flow that is known on {NODES} x {NODES} x {NODES} "
        f"nodes at {SLICES} times. Linear in space and time, {steps:,} Runge-Kutta steps, released "
        f"little by little near the ground; {gone:,} of them left through the top. One compiled "
        f"loop takes **{rate / 1e6:.1f} million particle-steps a second**: **{ratio:.0f} times** "
        "the rate of the same arithmetic on whole arrays in NumPy, measured in this run.",
    )
    page.add(
        Viewer(
            tracks,
            max_bytes=5_000_000,
            autoplay=True,
            caption="Drag turns, the wheel zooms after a click, space plays, c changes the colour.",
        )
    )
    return Line(
        "jaxtrace",
        f"{particles:,} particles x {steps:,} steps",
        compared,
        "JAXTrace",
        f"{gone:,} left through the top",
    )


def whirlwind() -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Axes, times and velocities `[T, x, y, z, 3]` of a vortex that leans, wanders and lifts."""
    axes = tuple(np.linspace(a, b, NODES) for a, b in BOUNDS.T)
    times = np.linspace(0.0, SECONDS, SLICES)
    x, y, z = np.meshgrid(*axes, indexing="ij")
    flow = np.empty((SLICES, NODES, NODES, NODES, 3), np.float32)
    core = 0.08 + 0.14 * z
    for i, t in enumerate(times):
        lean = 0.12 + 0.13 * z
        turn = 1.3 * z + 0.55 * t
        dx = x - lean * np.sin(turn)
        dy = y - lean * np.cos(0.8 * turn)
        r2 = dx**2 + dy**2
        spin = 0.55 * core / (r2 + core**2)
        draw = -0.45 * np.exp(-5.0 * z) + 0.16 * (1.0 - np.exp(-2.0 * z)) * np.exp(-r2 / 0.4)
        draw = draw / np.sqrt(r2 / 0.1 + 1.0)
        lift = 0.75 * (1.0 - np.exp(-4.0 * z)) * np.exp(-r2 / (2.5 * core) ** 2)
        flow[i] = np.stack([draw * dx - spin * dy, draw * dy + spin * dx, lift - 0.03 * z], -1)
    return axes, times, flow


def _measure(
    tracker: Tracker, data: np.ndarray, seeds: np.ndarray, steps: int, rounds: int
) -> bench.Comparison:
    """The same particles from the same places, by the tracker and by NumPy."""
    dt, some, few = SECONDS / steps, max(1, steps // 4), max(1, steps // 75)
    return bench.compare(
        {
            "NumPy, whole arrays": numpy_steps(data, seeds, dt, few),
            "JAXTrace": lambda: (
                tracker.track_particles(
                    seeds, (0.0, some * dt), some, save_every=_record_every(steps)
                ).positions
            ),
        },
        items={"NumPy, whole arrays": few * len(seeds), "JAXTrace": some * len(seeds)},
        rounds=rounds,
        seconds=0.05,
        unit="particle-steps",
        title="Tracking",
    )


def _record_every(steps: int) -> int:
    return max(1, steps // 120)


def numpy_steps(
    data: np.ndarray, seeds: np.ndarray, dt: float, steps: int
) -> Callable[[], np.ndarray]:
    """A function that takes `steps` Runge-Kutta steps of all particles with NumPy.

    Linear in space and time, walls that hold; `data` is `[T, x, y, z, 3]`.
    """
    low, high = BOUNDS.astype(np.float32)
    scale = np.float32(NODES - 1) / (high - low)
    between = SECONDS / (SLICES - 1)
    table = data.reshape(SLICES, -1, 3)
    ones = np.array([NODES * NODES, NODES, 1])

    def velocity(x: np.ndarray, t: float) -> np.ndarray:
        place = np.clip((x - low) * scale, 0.0, NODES - 1.001)
        cell = place.astype(np.int64)
        part = (place - cell).astype(np.float32)
        slot = min(int(t / between), SLICES - 2)
        later = np.float32(t / between - slot)
        base = cell @ ones
        result = np.zeros_like(x)
        for corner in np.ndindex(2, 2, 2):
            weight = np.prod(np.where(corner, part, 1 - part), axis=1)[:, None]
            at = base + np.dot(corner, ones)
            both = (1 - later) * table[slot][at] + later * table[slot + 1][at]
            result += weight * both
        return result

    def run() -> np.ndarray:
        x = np.asarray(seeds, np.float32)
        h = np.float32(dt)
        for n in range(steps):
            t = n * dt
            a = velocity(x, t)
            b = velocity(x + h / 2 * a, t + dt / 2)
            c = velocity(x + h / 2 * b, t + dt / 2)
            d = velocity(x + h * c, t + dt)
            x = np.clip(x + h / 6 * (a + 2 * b + 2 * c + d), low, high)
        return x

    return run
