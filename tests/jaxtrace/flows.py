"""Flows with known answers, and SciPy's DOP853 as referee."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial import Delaunay

import jaxtrace as jt


def rotation(x, t):
    return jnp.stack([-x[1], x[0]])


def double_gyre(x, t):
    a = 0.25 * jnp.sin(2 * jnp.pi * t / 10)
    f = a * x[0] ** 2 + (1 - 2 * a) * x[0]
    slope = 2 * a * x[0] + 1 - 2 * a
    u = -jnp.pi * 0.1 * jnp.sin(jnp.pi * f) * jnp.cos(jnp.pi * x[1])
    v = jnp.pi * 0.1 * jnp.cos(jnp.pi * f) * jnp.sin(jnp.pi * x[1]) * slope
    return jnp.stack([u, v])


def abc(x, t):
    a, b, c = 3**0.5 + 0.5 * t * jnp.sin(jnp.pi * t), 2**0.5, 1.0
    return jnp.stack(
        [
            a * jnp.sin(x[2]) + c * jnp.cos(x[1]),
            b * jnp.sin(x[0]) + a * jnp.cos(x[2]),
            c * jnp.sin(x[1]) + b * jnp.cos(x[0]),
        ]
    )


def abc_numpy(t, y):
    x = y.reshape(3, -1)
    a, b, c = 3**0.5 + 0.5 * t * np.sin(np.pi * t), 2**0.5, 1.0
    return np.stack(
        [
            a * np.sin(x[2]) + c * np.cos(x[1]),
            b * np.sin(x[0]) + a * np.cos(x[2]),
            c * np.sin(x[1]) + b * np.cos(x[0]),
        ]
    ).ravel()


def gyre_numpy(t, y):
    x = y.reshape(2, -1)
    a = 0.25 * np.sin(2 * np.pi * t / 10)
    f = a * x[0] ** 2 + (1 - 2 * a) * x[0]
    slope = 2 * a * x[0] + 1 - 2 * a
    u = -np.pi * 0.1 * np.sin(np.pi * f) * np.cos(np.pi * x[1])
    v = np.pi * 0.1 * np.cos(np.pi * f) * np.sin(np.pi * x[1]) * slope
    return np.stack([u, v]).ravel()


def referee(rhs, seeds, span):
    """Where DOP853 says that particles end."""
    y0 = np.asarray(seeds, np.float64).T.ravel()
    found = solve_ivp(rhs, span, y0, method="DOP853", rtol=1e-11, atol=1e-12)
    return found.y[:, -1].reshape(np.shape(seeds)[1], -1).T


def tets(n: int, *, jitter: float = 0.25, seed: int = 0):
    """Points and tetrahedra of a jittered cube, boundary nodes on the walls."""
    grid = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3)
    inner = (grid > 0) & (grid < n - 1)
    noise = np.random.default_rng(seed).uniform(-jitter, jitter, grid.shape)
    points = (grid + noise * inner) / (n - 1)
    cells = Delaunay(points).simplices
    edges = points[cells[:, 1:]] - points[cells[:, :1]]
    volume = np.abs(np.linalg.det(edges))
    return points, cells[volume > 1e-9 * volume.max()]


def cube_tets(low, high, n):
    """A regular block of `n**3` cubes, six tetrahedra each."""
    axes = [np.linspace(a, b, n + 1) for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    i, j, k = np.meshgrid(*[np.arange(n)] * 3, indexing="ij")
    corner = lambda a, b, c: (((i + a) * (n + 1) + j + b) * (n + 1) + k + c).ravel()  # noqa: E731
    paths = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    cells = []
    for path in paths:
        at, nodes = [0, 0, 0], [corner(0, 0, 0)]
        for axis in path:
            at[axis] = 1
            nodes.append(corner(*at))
        cells.append(np.stack(nodes, 1))
    return points, np.concatenate(cells)


def jittered(n: int, seed: int = 0):
    """A block of `n**3` cubes, six tetrahedra each, with its inner points moved about."""
    points, cells = cube_tets([0, 0, 0], [1, 1, 1], n)
    inner = (points > 0.25 / n) & (points < 1 - 0.25 / n)
    noise = np.random.default_rng(seed).uniform(-0.12, 0.12, points.shape) / n
    return (points + noise * inner).astype(np.float32).astype(np.float64), cells


def nonconforming(n: int = 4):
    """Two blocks side by side, the second twice as fine: hanging nodes, duplicated points."""
    a, cells_a = cube_tets([0, 0, 0], [0.5, 1, 1], n)
    b, cells_b = cube_tets([0.5, 0, 0], [1, 1, 1], 2 * n)
    return np.concatenate([a, b]), np.concatenate([cells_a, cells_b + len(a)])


def rotating_tracker(**options):
    return jt.create_tracker("rk4", field=jt.AnalyticField(rotation, dim=2), **options)
