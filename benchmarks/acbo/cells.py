"""The cells of the comparison: random linear-Gaussian systems, and data from them."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np


@dataclasses.dataclass(frozen=True)
class Cell:
    """Variables, samples, whether half of these are under intervention, and what is promised."""

    d: int
    n: int
    interventional: bool
    target: float

    @property
    def title(self) -> str:
        """As in `d=5, n=100, half interventional`."""
        how = "half interventional" if self.interventional else "observational"
        return f"d={self.d}, n={self.n}, {how}"


CELLS = (
    Cell(5, 100, True, 0.97),
    Cell(5, 100, False, 0.86),
    Cell(10, 100, True, 0.95),
    Cell(10, 1000, True, 0.97),
    Cell(20, 1000, True, 0.94),
)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Data sets of one cell, standardised, with the graphs they are from."""

    values: np.ndarray
    intervened: np.ndarray
    graphs: np.ndarray


def draw(cell: Cell, count: int, seed: int = 0) -> Batch:
    """Erdos-Renyi graphs with `d` expected edges, the same for every run with the same seed.

    Weights are +-U(0.5, 2) and noise deviations U(0.5, 1.5). In half of the samples of
    interventional data one variable, drawn at random, is set to +-U(1, 3).
    """
    streams = np.random.default_rng([seed, cell.d, cell.n, cell.interventional]).spawn(count)
    drawn = [_one(cell, rng) for rng in streams]
    values, intervened, graphs = (np.stack(parts) for parts in zip(*drawn, strict=True))
    return Batch(values, intervened, graphs)


def _one(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    d, n = cell.d, cell.n
    order = rng.permutation(d)
    graph = np.zeros((d, d), bool)
    while not graph.any():  # a graph without edges has no AUROC
        for a, b in itertools.combinations(range(d), 2):
            graph[order[a], order[b]] = rng.random() < 2 / (d - 1)
    weights = graph * rng.choice([-1, 1], (d, d)) * rng.uniform(0.5, 2, (d, d))
    noise = rng.uniform(0.5, 1.5, d) * rng.normal(size=(n, d))
    intervened = np.zeros((n, d), bool)
    if cell.interventional:
        half = n // 2
        intervened[np.arange(half), rng.integers(0, d, half)] = True
    settings = rng.choice([-1, 1], (n, d)) * rng.uniform(1, 3, (n, d))
    values = np.zeros((n, d))
    for j in order:
        natural = values @ weights[:, j] + noise[:, j]
        values[:, j] = np.where(intervened[:, j], settings[:, j], natural)
    values = (values - values.mean(0)) / values.std(0)
    return values.astype(np.float32), intervened, graph
