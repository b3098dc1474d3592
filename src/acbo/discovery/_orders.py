"""Edge probabilities under the rule that a graph has no cycle."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from acbo._errors import SizeError

LARGEST = 20


def over_orders(edge_logits: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """Probabilities of edges, summed over all orders of the variables and all graphs that fit one.

    `edge_logits[i, j]` is the log odds of `i -> j` when edges are looked at one by one. The result
    has no cycles in it: for a pair, the probabilities of both directions add up to at most 1. A
    graph counts once for each order that it fits, as in order MCMC.

    The sum has as many terms as there are orders, but needs only one pass over the subsets of the
    variables, `2^d`; `d` is at most 20.

    ```python
    import numpy as np
    from acbo.discovery import over_orders

    sure = np.array([[-30.0, 9.0], [9.0, -30.0]])
    assert np.allclose(over_orders(sure), [[0, 0.5], [0.5, 0]], atol=1e-3)
    ```
    """
    logits = np.asarray(edge_logits, np.float64)
    d = logits.shape[0]
    if d > LARGEST:
        raise SizeError(f"edge_logits has {d} variables; sums over orders take at most {LARGEST}")
    gain = np.logaddexp(0.0, logits)  # what i adds for j by coming before it
    np.fill_diagonal(gain, 0.0)

    members = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)
    sizes = members.sum(axis=1)
    layers = [np.flatnonzero(sizes == size) for size in range(d + 1)]
    bit = 1 << np.arange(d)

    # Log of the summed weights of all orders of a set, and of all orders of what is left.
    first = np.full(2**d, -np.inf)
    rest = np.full(2**d, -np.inf)
    first[0] = rest[-1] = 0.0
    for layer in layers[:-1]:
        step = np.where(members[layer], -np.inf, members[layer] @ gain)
        for j in range(d):
            here = layer[~members[layer, j]]
            added = first[here] + step[~members[layer, j], j]
            first[here | bit[j]] = np.logaddexp(first[here | bit[j]], added)
    for layer in reversed(layers[:-1]):
        step = members[layer] @ gain
        after = np.where(members[layer], -np.inf, rest[layer[:, None] | bit[None, :]])
        rest[layer] = np.logaddexp.reduce(step + after, axis=1)

    before = np.zeros((d, d))
    for layer in layers[:-1]:
        inside = members[layer]
        step = inside @ gain
        after = np.where(inside, -np.inf, rest[layer[:, None] | bit[None, :]])
        share = np.exp(first[layer][:, None] + step + after - first[-1])  # j comes next
        before += inside.T.astype(np.float64) @ share
    edges = before / (1 + np.exp(-logits))
    np.fill_diagonal(edges, 0.0)
    return np.clip(edges, 0.0, 1.0)
