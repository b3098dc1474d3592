"""Catmull-Rom interpolation on any increasing nodes, as polynomials of each interval.

Tangents are those of the parabola through a node and its two neighbours; at the ends, of the last
parabola. On equal spacing that is Catmull-Rom. Quadratic functions are reproduced everywhere.
"""

from __future__ import annotations

import numpy as np


def cubic_table(nodes: np.ndarray) -> np.ndarray:
    """`[n - 1, 4, 4]`: for each interval and tap, the coefficients of 1, s, s**2, s**3.

    The taps of interval `i` are the nodes from `clip(i - 1, 0, n - 4)`; `s` runs from 0 to 1.
    """
    n = len(nodes)
    start, tangent = _tangents(np.asarray(nodes, np.float64))
    # Hermite's basis: value and slope at the left end, value and slope at the right end.
    basis = np.array([[1, 0, -3, 2], [0, 1, -2, 1], [0, 0, 3, -2], [0, 0, -1, 1]], np.float64)
    table = np.zeros((n - 1, 4, 4))
    cell = np.arange(n - 1)
    first = np.clip(cell - 1, 0, n - 4)
    width = np.diff(nodes)
    for end in (0, 1):
        np.add.at(table, (cell, cell + end - first), basis[2 * end])
        for k in range(3):
            weight = width * tangent[cell + end, k]
            np.add.at(
                table,
                (cell, start[cell + end] + k - first),
                weight[:, None] * basis[2 * end + 1],
            )
    return table


def _tangents(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each node, the first of three nodes and their weights in the slope there."""
    n = len(x)
    at = np.arange(n)
    start = np.clip(at - 1, 0, n - 3)
    a, b, c = x[start], x[start + 1], x[start + 2]
    weights = np.stack(
        [
            (2 * x - b - c) / ((a - b) * (a - c)),
            (2 * x - a - c) / ((b - a) * (b - c)),
            (2 * x - a - b) / ((c - a) * (c - b)),
        ],
        axis=1,
    )
    return start, weights
