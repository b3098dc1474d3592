"""What the exact posterior must be: float64, one graph at a time, by other formulas."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
from scipy import stats


def log_density(values: np.ndarray, *, mean_strength: float = 1.0, degrees: float = 2.0) -> float:
    """Log density of rows under a normal-Wishart prior, one row after the other.

    Each row is drawn from the predictive distribution given those before it, a multivariate t;
    that needs neither multivariate gamma functions nor a determinant of all rows.
    """
    size = values.shape[1]
    if size == 0:
        return 0.0
    scale = mean_strength * (degrees - 1) / (mean_strength + 1)
    mean, weight, matrix, freedom = np.zeros(size), mean_strength, scale * np.eye(size), degrees + 1
    total = 0.0
    for row in values.astype(float):
        shape = matrix * (weight + 1) / (weight * freedom)
        total += float(stats.multivariate_t(mean, shape, df=freedom).logpdf(row))
        step = row - mean
        matrix = matrix + weight / (weight + 1) * np.outer(step, step)
        mean, weight, freedom = mean + step / (weight + 1), weight + 1, freedom + 1
    return total


def local_score(values: np.ndarray, intervened: np.ndarray, j: int, parents: list[int]) -> float:
    rows = values[~intervened[:, j]]
    return log_density(rows[:, [*parents, j]]) - log_density(rows[:, parents])


def all_scores(values: np.ndarray, intervened: np.ndarray) -> np.ndarray:
    """As `exact.local_scores`, slowly."""
    d = values.shape[1]
    table = np.full((d, 2**d), -np.inf)
    for j, s in itertools.product(range(d), range(2**d)):
        if not s >> j & 1:
            parents = [i for i in range(d) if s >> i & 1]
            table[j, s] = local_score(values, intervened, j, parents)
    return table


def dags(d: int) -> list[np.ndarray]:
    """Every adjacency matrix that networkx calls acyclic."""
    places = [(i, j) for i in range(d) for j in range(d) if i != j]
    found = []
    for chosen in itertools.product([False, True], repeat=len(places)):
        edges = [place for place, here in zip(places, chosen, strict=True) if here]
        graph = nx.DiGraph(edges)
        if nx.is_directed_acyclic_graph(graph):
            matrix = np.zeros((d, d), bool)
            for i, j in edges:
                matrix[i, j] = True
            found.append(matrix)
    return found


def graph_score(table: np.ndarray, graph: np.ndarray) -> float:
    sets = (graph * (1 << np.arange(len(graph)))[:, None]).sum(0)
    return float(sum(table[j, s] for j, s in enumerate(sets)))


def orders_that_fit(graph: np.ndarray) -> int:
    d = len(graph)
    return sum(
        all(order.index(i) < order.index(j) for i, j in np.argwhere(graph))
        for order in itertools.permutations(range(d))
    )


def generate(
    seed: int, d: int, n: int, *, interventional: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standardised values, intervened, graph: linear-Gaussian, d expected edges.

    In half of the rows of interventional data, one variable is set to a value in +-[1, 3].
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(d)
    graph = np.zeros((d, d), bool)
    for a, b in itertools.combinations(range(d), 2):
        graph[order[a], order[b]] = rng.random() < 2 / (d - 1)
    weights = graph * rng.choice([-1, 1], (d, d)) * rng.uniform(0.5, 2, (d, d))
    noise = rng.uniform(0.5, 1.5, d) * rng.normal(size=(n, d))
    intervened = np.zeros((n, d), bool)
    if interventional:
        half = n // 2
        intervened[np.arange(half), rng.integers(0, d, half)] = True
    settings = rng.choice([-1, 1], (n, d)) * rng.uniform(1, 3, (n, d))
    values = np.zeros((n, d))
    for j in order:
        values[:, j] = np.where(
            intervened[:, j], settings[:, j], values @ weights[:, j] + noise[:, j]
        )
    values = (values - values.mean(0)) / values.std(0)
    return values.astype(np.float32), intervened, graph
