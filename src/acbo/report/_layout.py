"""Where the variables of a graph stand: causes before effects, few crossings."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

Place = tuple[float, float]

# A layer in which an edge only passes by needs less room for it than for a variable.
_LANE = 0.34


@dataclasses.dataclass(frozen=True)
class Layout:
    """Layers of variables and of lanes, numbered from `d` up, in which long edges pass by."""

    layers: list[list[int]]
    routes: dict[tuple[int, int], list[int]]
    d: int

    def places(
        self, *, along: float, across: float, upright: bool
    ) -> tuple[dict[int, Place], float, float]:
        """The centre of each variable and lane, and the width and height of the drawing.

        `upright` has layers from top to bottom, else from left to right; `along` is the distance
        between layers, `across` the room for a variable in one.
        """
        rooms = [[1.0 if i < self.d else _LANE for i in layer] for layer in self.layers]
        widest = max(sum(room) for room in rooms)
        found: dict[int, Place] = {}
        for depth, (layer, room) in enumerate(zip(self.layers, rooms, strict=True)):
            side = (widest - sum(room)) / 2
            for i, own in zip(layer, room, strict=True):
                across_by, along_by = (side + own / 2) * across, (depth + 0.5) * along
                found[i] = (across_by, along_by) if upright else (along_by, across_by)
                side += own
        size = (widest * across, len(self.layers) * along)
        width, height = size if upright else size[::-1]
        return found, width, height


def layout(probabilities: Float[np.ndarray, "d d"], *, most: int, smallest: float = 0.3) -> Layout:
    """Layers such that edges of at least `smallest` lead from earlier to later ones.

    Where such edges make a circle, the likelier ones count. A layer has at most `most` variables.
    """
    d = len(probabilities)
    edges = _without_circles(probabilities, smallest)
    rank = _ranks(edges)
    first = [np.flatnonzero(rank == r).tolist() for r in range(rank.max() + 1)]
    cut = [part for layer in _untangled(first, _links(edges)) for part in _parts(layer, most)]

    depth = {i: k for k, layer in enumerate(cut) for i in layer}
    layers = [list(layer) for layer in cut]
    routes: dict[tuple[int, int], list[int]] = {}
    links: dict[int, set[int]] = {}
    lane = d
    for i, j in np.argwhere(edges).tolist():
        way = [i]
        for passed in range(depth[i] + 1, depth[j]):
            layers[passed].append(lane)
            way.append(lane)
            lane += 1
        way.append(j)
        routes[i, j] = way[1:-1]
        for a, b in itertools.pairwise(way):
            links.setdefault(a, set()).add(b)
            links.setdefault(b, set()).add(a)
    return Layout(_untangled(layers, links), routes, d)


def _without_circles(probabilities: np.ndarray, smallest: float) -> np.ndarray:
    d = len(probabilities)
    reach = np.eye(d, dtype=bool)
    edges = np.zeros((d, d), bool)
    for flat in np.argsort(-probabilities, axis=None, kind="stable"):
        i, j = divmod(int(flat), d)
        if probabilities[i, j] < smallest:
            break
        if i != j and not reach[j, i]:
            edges[i, j] = True
            reach |= reach[:, [i]] & reach[[j], :]
    return edges


def _ranks(edges: np.ndarray) -> np.ndarray:
    """The longest way to each variable; causes stand right before their first effect."""
    rank = np.zeros(len(edges), int)
    for _ in edges:
        rank = np.maximum(rank, np.where(edges, rank[:, None] + 1, 0).max(axis=0, initial=0))
    for i in np.argsort(-rank):
        after = rank[edges[i]]
        if len(after):
            rank[i] = after.min() - 1
    return rank


def _links(edges: np.ndarray) -> dict[int, set[int]]:
    both = edges | edges.T
    return {i: set(np.flatnonzero(both[i]).tolist()) for i in range(len(edges))}


def _untangled(layers: Iterable[list[int]], links: dict[int, set[int]]) -> list[list[int]]:
    """Each entry near the middle of its neighbours, by turns from both ends."""
    layers = [list(layer) for layer in layers if layer]
    place = {i: (k + 0.5) / len(layer) for layer in layers for k, i in enumerate(layer)}
    for turn in range(8):
        for layer in layers if turn % 2 == 0 else layers[::-1]:
            middle = {}
            for i in layer:
                near = [place[j] for j in links.get(i, ()) if j not in layer]
                middle[i] = sum(near) / len(near) if near else place[i]
            layer.sort(key=lambda i: (middle[i], i))
            place |= {i: (k + 0.5) / len(layer) for k, i in enumerate(layer)}
    return layers


def _parts(layer: list[int], most: int) -> list[list[int]]:
    count = -(-len(layer) // most)
    return [part.tolist() for part in np.array_split(np.array(layer), count)]
