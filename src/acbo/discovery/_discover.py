"""`discover`: a table in, edge probabilities out."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from acbo._errors import AcboWarning, SizeError
from acbo.data import Dataset, read_data
from acbo.data._dataset import checked
from acbo.discovery._doubts import doubts
from acbo.discovery._orders import LARGEST, over_orders
from acbo.pretrained import pretrained_surrogate
from acbo.scm import Samples
from acbo.surrogate import Prediction, Surrogate, candidate_sets, parent_set_logits
from worldloom._way import way

MAX_VARIABLES = 20
"""How many variables the network in the package was trained for."""

# One program for each pair of these; a table is padded to the next.
_VARIABLES = (5, 10, 20)
_ROWS = (128, 1024)


@dataclasses.dataclass(frozen=True, eq=False)
class Discovery:
    """What the data say about the graph."""

    names: tuple[str, ...]
    edge_probabilities: Float[np.ndarray, "d d"]
    """`[i, j]`: how probable it is that variable i is a direct cause of variable j."""
    prediction: Prediction
    """What the network said, in arrays."""
    doubts: tuple[str, ...] = ()
    """Why the probabilities may be surer than the data allow, one sentence each."""

    def __repr__(self) -> str:
        count = int(self.graph().sum())
        return f"Discovery({len(self.names)} variables, {count} edges more likely than not)"

    def __str__(self) -> str:
        pairs = np.argwhere(~np.eye(len(self.names), dtype=bool))
        ordered = sorted(pairs.tolist(), key=lambda p: -self.edge_probabilities[p[0], p[1]])
        likely = [(i, j) for i, j in ordered if self.edge_probabilities[i, j] >= 0.1]
        if not likely:
            return "no edge has a probability of 0.1 or more"
        width = max(len(name) for name in self.names)
        return "\n".join(
            f"{self.names[i]:>{width}} -> {self.names[j]:<{width}}  "
            f"{self.edge_probabilities[i, j]:.2f}"
            for i, j in likely
        )

    def parents(self, target: str | int) -> dict[str, float]:
        """The probability of every other variable to be a direct cause of `target`, best first."""
        j = self._index(target)
        found = {
            name: float(self.edge_probabilities[i, j])
            for i, name in enumerate(self.names)
            if i != j
        }
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def parent_sets(self, target: str | int, *, max_size: int = 3) -> dict[tuple[str, ...], float]:
        """The probability of each set of at most `max_size` variables to be exactly the direct
        causes of `target`, best first. They add up to 1.
        """
        j = self._index(target)
        others = [i for i in range(len(self.names)) if i != j]
        sets = candidate_sets(len(others), min(max_size, len(others)))
        full = np.zeros((len(sets), self.prediction.edge_logits.shape[0]), bool)
        full[:, others] = sets
        chances = np.exp(parent_set_logits(self.prediction, j, jnp.asarray(full)))
        order = np.argsort(-chances)
        return {
            tuple(self.names[i] for i in np.flatnonzero(full[k])): float(chances[k]) for k in order
        }

    def graph(self, threshold: float = 0.5) -> Bool[np.ndarray, "d d"]:
        """One graph without cycles: likely edges first, and none that would close a cycle."""
        d = len(self.names)
        edges = np.zeros((d, d), bool)
        leads = np.eye(d, dtype=bool)  # from i there is a way to j
        for flat in np.argsort(-self.edge_probabilities, axis=None, kind="stable"):
            i, j = divmod(int(flat), d)
            if self.edge_probabilities[i, j] < threshold or i == j:
                continue
            if not leads[j, i]:
                edges[i, j] = True
                leads |= leads[:, [i]] & leads[[j], :]
        return edges

    def _index(self, target: str | int) -> int:
        if isinstance(target, str):
            if target not in self.names:
                known = ", ".join(self.names)
                raise KeyError(f"target={target!r} is no variable; there are {known}")
            return self.names.index(target)
        if not 0 <= target < len(self.names):
            raise IndexError(
                f"target={target}; there are {len(self.names)} variables, counted from 0"
            )
        return target


def discover(
    data: Any,
    interventions: Any = None,
    *,
    names: Sequence[str] | None = None,
    acyclic: bool = False,
    network: Surrogate | None = None,
) -> Discovery:
    """Find the causal graph behind a table of samples.

    A network that was trained on many simulated systems answers in milliseconds, once its program
    is compiled: one for tables of up to 5, 10 and 20 variables, and of up to 128 and 1,024 rows.
    Larger tables are taken in parts of at most 1,024 rows, and the log odds averaged: the answer
    is then as sure as 1,024 rows allow.

    Where a table is such that the network would be sure without evidence, an `AcboWarning` gives
    the reason and its numbers, and `doubts` of the answer keeps it: few rows, variables set in all
    of them, columns that say the same, categories, outliers, rows that depend on each other, hidden
    causes that interventions show, probabilities that cannot all be true.

    **Arguments:**

    - `data`, `interventions`, `names`: as for `acbo.data.read_data`: an array, a data frame or a
      file; a mask that is true where a value was set from outside, or the name of a column. A
      `Dataset` is taken as it is.
    - `acyclic`: sum over all orders of the variables, so that no probability rests on a graph with
      a cycle; see `over_orders`. Takes about a second for 20 variables.
    - `network`: another trained network instead of the one in the package. It takes as many
      variables as it was trained for (`network.config.trained_for`; no limit where nobody said).

    ```python
    import numpy as np
    import acbo

    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    table = np.stack([x, 2 * x + rng.normal(size=200)], axis=1)
    found = acbo.discover(table, names=["rain", "river"])
    assert found.edge_probabilities.shape == (2, 2)
    ```
    """
    if isinstance(data, Dataset):
        dataset = checked(data)
    else:
        dataset = read_data(data, interventions, names=names)
    n, d = dataset.values.shape
    own = network is not None
    network = pretrained_surrogate() if network is None else network
    _check_size(d, network, own=own, acyclic=acyclic)
    parts = math.ceil(n / _ROWS[-1])
    table = dataset.standardised()
    predictions = [_predict(network, _padded(table, slice(k, None, parts))) for k in range(parts)]
    prediction = jax.tree.map(lambda *leaves: sum(leaves) / parts, *predictions)
    logits = np.asarray(prediction.edge_logits, np.float64)[:d, :d]
    alone = np.where(np.eye(d, dtype=bool), 0.0, 1 / (1 + np.exp(-logits)))
    reasons = doubts(dataset, alone, shipped=not own)
    for reason in reasons:
        warnings.warn(reason, AcboWarning, stacklevel=2)
    edges = over_orders(logits) if acyclic else alone
    return Discovery(dataset.names, edges.astype(np.float32), prediction, reasons)


def _check_size(d: int, network: Surrogate, *, own: bool, acyclic: bool) -> None:
    """Refuse what this network was not trained for, and what takes too many subsets."""
    most = network.config.trained_for
    if most is not None and d > most:
        whose = "your network" if own else "the network in the package"
        raise SizeError(
            f"data has {d} variables; discover takes at most {most}, for which {whose} was "
            f"trained. Choose some of them, or train a network on tables of {d} "
            f"(acbo.surrogate.train_surrogate, `worldloom acbo train surrogate --variables {d}`)"
        )
    if acyclic and d > LARGEST:
        raise SizeError(
            f"data has {d} variables; sums over their subsets take at most {LARGEST}. "
            + way("Leave acyclic=True out, or choose some of them", "Choose some of them")
        )


@eqx.filter_jit
def _predict(network: Surrogate, samples: Samples) -> Prediction:
    return network(samples)


def _padded(dataset: Dataset, rows: slice) -> Samples:
    """Some rows of a table, in arrays of a size that has a program."""
    values = dataset.values[rows]
    intervened = dataset.intervened[rows]
    n, d = values.shape
    more = ((0, _next(n, _ROWS) - n), (0, _next(d, _VARIABLES) - d))
    return Samples(
        jnp.asarray(np.pad(values, more)),
        jnp.asarray(np.pad(intervened, more)),
        jnp.arange(n + more[0][1]) < n,
        jnp.arange(d + more[1][1]) < d,
    )


def _next(size: int, sizes: tuple[int, ...]) -> int:
    """The smallest of the sizes that is enough, or a multiple of the largest."""
    return next((s for s in sizes if s >= size), -(-size // sizes[-1]) * sizes[-1])
