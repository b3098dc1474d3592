"""All directed acyclic graphs of a few variables, and their exact posterior."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acbo._errors import SizeError
from acbo.exact._prior import Prior, check_prior, log_weights
from acbo.exact._score import STANDARD, BGe, as_data, check_max_parents, parent_set_table

MAX_ENUMERATED = 5


@functools.cache
def _parents(d: int) -> Int[np.ndarray, "graphs {d}"]:
    """The parents of each variable in each graph, as sets of `parent_set_table`.

    Every graph of `d` variables is one of `d - 1` variables, and parents and children of the new
    variable that close no cycle: none of its parents comes after one of its children.
    """
    if d == 0:
        return np.zeros((1, 0), np.int32)
    smaller = _parents(d - 1)
    reach = _reach(smaller)
    new = 1 << (d - 1)
    found = []
    for children in range(new):
        chosen = [j for j in range(d - 1) if children >> j & 1]
        after = np.bitwise_or.reduce(reach[:, chosen], axis=1)
        extended = smaller.copy()
        extended[:, chosen] |= new
        for parents in range(new):
            legal = after & parents == 0
            column = np.full((int(legal.sum()), 1), parents, np.int32)
            found.append(np.concatenate([extended[legal], column], axis=1))
    table = np.concatenate(found)
    # By the bits of the adjacency matrix: first the empty graph, then a fixed order for good.
    return table[np.lexsort(table.T[::-1])]


def _reach(parents: np.ndarray) -> np.ndarray:
    """For each variable of each graph, the set of itself and of all that come after it."""
    d = parents.shape[1]
    reach = np.tile(1 << np.arange(d, dtype=np.int32), (len(parents), 1))
    for _ in range(d):
        for i in range(d):
            for j in range(d):
                child = parents[:, j] >> i & 1 == 1
                reach[:, i] |= np.where(child, reach[:, j], 0)
    return reach


@functools.cache
def linear_extensions(d: int) -> Float[np.ndarray, " graphs"]:
    """In how many orders of the variables each graph's parents all come first."""
    parents = _parents(d)
    counts = np.zeros((2**d, len(parents)))
    counts[0] = 1
    for done in range(2**d):
        for j in range(d):
            if not done >> j & 1:
                legal = parents[:, j] & ~done == 0
                counts[done | 1 << j] += np.where(legal, counts[done], 0)
    return counts[-1]


def enumerate_dags(d: int) -> Bool[np.ndarray, "graphs {d} {d}"]:
    """Every directed acyclic graph of `d <= 5` variables: `[graph, i, j]` is true for `i -> j`.

    There are 1, 3, 25, 543 and 29,281. The table is made once and shared, so it cannot be written
    to; the empty graph comes first.

    ```python
    from acbo import exact

    assert exact.enumerate_dags(3).shape == (25, 3, 3)
    ```
    """
    if not 1 <= d <= MAX_ENUMERATED:
        raise SizeError(
            f"d is {d}; graphs are enumerated for 1 to {MAX_ENUMERATED} variables "
            "(`marginals` sums over those of up to 12)"
        )
    return _graphs(d)


@functools.cache
def _graphs(d: int) -> Bool[np.ndarray, "graphs {d} {d}"]:
    table = parent_set_table(d)[_parents(d)].transpose(0, 2, 1)
    table = np.ascontiguousarray(table)
    table.flags.writeable = False
    return table


class GraphPosterior(eqx.Module):
    """The probability of every graph given data. Its rows are those of `enumerate_dags(d)`."""

    log_probabilities: Float[Array, "*batch graphs"]
    d: int = eqx.field(static=True)

    @property
    def probabilities(self) -> Float[Array, "*batch graphs"]:
        """The probability of each graph."""
        return jnp.exp(self.log_probabilities)

    @property
    def edge_probabilities(self) -> Float[Array, "*batch d d"]:
        """The probability of each edge, `[i, j]` for `i -> j`."""
        graphs = jnp.asarray(_graphs(self.d).reshape(-1, self.d**2), jnp.float32)
        edges = jnp.matmul(self.probabilities, graphs, precision="highest")
        return edges.reshape(*edges.shape[:-1], self.d, self.d)

    @property
    def parent_sets(self) -> Float[Array, "*batch d sets"]:
        """The probability of each parent set of each variable, columns as `parent_set_table(d)`."""
        chances = self.probabilities
        flat = chances.reshape(-1, chances.shape[-1])
        parents = jnp.asarray(_parents(self.d).T)

        def of(chances: Float[Array, " graphs"], parents: Array) -> Float[Array, " sets"]:
            return jnp.zeros(2**self.d).at[parents].add(chances)

        sums = jax.vmap(jax.vmap(of, in_axes=(None, 0)), in_axes=(0, None))(flat, parents)
        return sums.reshape(*chances.shape[:-1], self.d, 2**self.d)

    @property
    def most_likely(self) -> Bool[Array, "*batch d d"]:
        """The graph of highest probability. Of equals, the first in the table."""
        return jnp.asarray(_graphs(self.d))[jnp.argmax(self.log_probabilities, axis=-1)]


@functools.partial(jax.jit, static_argnames=("prior", "max_parents", "bge"))
def _graph_posterior(
    values: Array,
    intervened: Array,
    variables: Array | None,
    edge_probability: float | Array,
    *,
    prior: Prior,
    max_parents: int | None,
    bge: BGe,
) -> GraphPosterior:
    d = values.shape[1]
    weights = log_weights(
        values, intervened, variables, edge_probability, max_parents=max_parents, bge=bge
    )
    rows = jax.vmap(lambda row, sets: row[sets])(weights, jnp.asarray(_parents(d).T))
    total = rows.sum(0)
    if prior == "orders":
        total += jnp.asarray(np.log(linear_extensions(d)), jnp.float32)
    return GraphPosterior(total - jax.nn.logsumexp(total), d)


def graph_posterior(
    values: Float[Array | np.ndarray, "n d"],
    intervened: Bool[Array | np.ndarray, "n d"] | None = None,
    *,
    prior: Prior = "uniform",
    edge_probability: float | Float[Array, ""] = 0.5,
    max_parents: int | None = None,
    variables: Bool[Array | np.ndarray, " d"] | None = None,
    bge: BGe = STANDARD,
) -> GraphPosterior:
    """The exact posterior over all graphs of up to 5 variables, by enumeration.

    Linear mechanisms, Gaussian noise, the BGe score. Compiled once a shape; `jax.vmap` runs over
    data sets. It does not look at the values: NaN gives NaN (`acbo.data.read_data` looks).

    **Arguments:**

    - `values`, `intervened`: the data, and where a variable was set from outside. Standardise the
      values: the score's prior has a scale.
    - `prior`: `"uniform"` gives each acyclic graph the same weight, `"orders"` the number of
      orders of the variables that fit it, as when an order is drawn first and edges then.
    - `edge_probability`: each edge multiplies the weight of a graph by `p / (1 - p)`.
    - `max_parents`: no variable has more.
    - `variables`: false for the columns that only pad; they have no edges.

    ```python
    import jax
    from acbo import exact

    keys = jax.random.split(jax.random.key(0))
    cause = jax.random.normal(keys[0], (200,))
    effect = 0.8 * cause + 0.6 * jax.random.normal(keys[1], (200,))
    values = jax.numpy.stack([cause, effect], axis=1)
    posterior = exact.graph_posterior(values)
    # Observation alone finds the edge and cannot direct it.
    edges = posterior.edge_probabilities
    assert abs(edges[0, 1] - 0.5) < 0.01
    assert abs(edges[1, 0] - 0.5) < 0.01
    ```
    """
    check_prior(prior, edge_probability)
    check_max_parents(max_parents)
    values, intervened = as_data(values, intervened, MAX_ENUMERATED)
    return _graph_posterior(
        values,
        intervened,
        None if variables is None else jnp.asarray(variables),
        edge_probability,
        prior=prior,
        max_parents=max_parents,
        bge=bge,
    )
