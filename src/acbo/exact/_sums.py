"""Sums over all graphs of up to 12 variables, without listing them.

The sum of the weights of all graphs is computed by recursion over subsets of the variables; its
logarithm's derivative by the score of a parent set is the probability of that parent set.
"""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.exact._prior import Prior, check_prior, log_weights
from acbo.exact._score import (
    IMPOSSIBLE,
    MAX_VARIABLES,
    STANDARD,
    BGe,
    as_data,
    check_max_parents,
    parent_set_table,
)


def _sum_over_subsets(scores: Float[Array, "d sets"]) -> Float[Array, "d sets"]:
    """For each set, the log of the summed weights of all its subsets."""
    d = scores.shape[0]

    def one_variable(scores: Array, _: None) -> tuple[Array, None]:
        """Add what lacks the lowest bit to what has it; then the lowest bit is the highest."""
        without, with_it = scores[:, 0::2], scores[:, 1::2]
        return jnp.concatenate([without, jnp.logaddexp(without, with_it)], axis=1), None

    # After one round a variable, the bits are where they were.
    return jax.lax.scan(one_variable, scores, length=d)[0]


def log_sum_orders(scores: Float[Array, "d sets"]) -> Float[Array, ""]:
    """Log of the sum over all orders, and all graphs that fit an order.

    Friedman and Koller's sum, by Koivisto and Sood's recursion: the last variable of a set of
    first variables has its parents among the others of the set.
    """
    d, sets = scores.shape
    within = _sum_over_subsets(scores)
    bits = parent_set_table(d)
    before = np.where(bits, np.arange(sets)[:, None] & ~(1 << np.arange(d)), 0)
    last = jnp.take_along_axis(within.T, jnp.asarray(before), axis=0)
    last = jnp.where(jnp.asarray(bits), last, IMPOSSIBLE)
    sizes = jnp.asarray(bits.sum(1))

    def one_more(total: Array, size: Array) -> tuple[Array, None]:
        sums = jax.nn.logsumexp(total[before] + last, axis=1)
        return jnp.where(sizes == size, sums, total), None

    total = jnp.full(sets, IMPOSSIBLE).at[0].set(0.0)
    return jax.lax.scan(one_more, total, jnp.arange(1, d + 1))[0][-1]


@functools.cache
def _sinks(d: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each size: the sets of it, their members, and each set less each subset of it."""
    bits = parent_set_table(d)
    layers = []
    for size in range(1, d + 1):
        layer = np.flatnonzero(bits.sum(1) == size)
        members = np.array([np.flatnonzero(bits[one]) for one in layer])
        removed = (1 << members) @ parent_set_table(size)[1:].T
        layers.append((layer, members, layer[:, None] - removed))
    return layers


def log_sum_graphs(scores: Float[Array, "d sets"]) -> Float[Array, ""]:
    """Log of the sum over all directed acyclic graphs, each once.

    Inclusion and exclusion over the sinks, as in Robinson's count: graphs in which all of `R` are
    sinks have any graph on the others, and parents of `R` among those. The sum is at least as large
    as its largest term (graphs with a given sink are among those that are counted), so the
    alternating signs cost at most `2 ** d` units in the last place.
    """
    d, sets = scores.shape
    within = _sum_over_subsets(scores)
    total = jnp.full(sets, IMPOSSIBLE).at[0].set(0.0)
    for size, (layer, members, rest) in enumerate(_sinks(d), start=1):
        subsets = parent_set_table(size)[1:]
        signs = jnp.asarray(np.where(subsets.sum(1) % 2 == 0, -1, 1), jnp.float32)
        parts = within[members[:, None, :], rest[:, :, None]]
        terms = total[rest] + jnp.where(jnp.asarray(subsets)[None], parts, 0.0).sum(-1)
        largest = jax.lax.stop_gradient(terms.max(1))
        summed = (jnp.exp(terms - largest[:, None]) * signs[None]).sum(1)
        total = total.at[layer].set(largest + jnp.log(summed))
    return total[-1]


class Marginals(eqx.Module):
    """What the exact posterior says of each edge and of each parent set."""

    parent_sets: Float[Array, "*batch d sets"]
    """The probability of each parent set of each variable, columns as `parent_set_table(d)`."""

    @property
    def edge_probabilities(self) -> Float[Array, "*batch d d"]:
        """The probability of each edge, `[i, j]` for `i -> j`."""
        table = jnp.asarray(parent_set_table(self.parent_sets.shape[-2]), jnp.float32)
        chances = jnp.matmul(self.parent_sets, table, precision="highest")
        return jnp.clip(jnp.swapaxes(chances, -1, -2), 0.0, 1.0)


@functools.partial(jax.jit, static_argnames=("prior", "max_parents", "bge"))
def _marginals(
    values: Array,
    intervened: Array,
    variables: Array | None,
    edge_probability: float | Array,
    *,
    prior: Prior,
    max_parents: int | None,
    bge: BGe,
) -> Marginals:
    weights = log_weights(
        values, intervened, variables, edge_probability, max_parents=max_parents, bge=bge
    )
    log_sum = log_sum_orders if prior == "orders" else log_sum_graphs
    chances = jnp.clip(jax.grad(log_sum)(weights), 0.0, 1.0)
    return Marginals(chances / chances.sum(-1, keepdims=True))


def marginals(
    values: Float[Array | np.ndarray, "n d"],
    intervened: Bool[Array | np.ndarray, "n d"] | None = None,
    *,
    prior: Prior = "uniform",
    edge_probability: float | Float[Array, ""] = 0.5,
    max_parents: int | None = None,
    variables: Bool[Array | np.ndarray, " d"] | None = None,
    bge: BGe = STANDARD,
) -> Marginals:
    """Exact probabilities of edges and parent sets for up to 12 variables.

    The same posterior as `graph_posterior`, with the same arguments, where there are too many
    graphs to list: the recursion takes `3 ** d` terms for the prior `"uniform"` and `d * 2 ** d`
    for `"orders"`.

    ```python
    import jax
    from acbo import exact

    x = jax.random.normal(jax.random.key(0), (100, 7))
    chances = exact.marginals(x, prior="orders", edge_probability=0.2)
    assert chances.edge_probabilities.shape == (7, 7)
    assert chances.parent_sets.shape == (7, 128)
    ```
    """
    check_prior(prior, edge_probability)
    check_max_parents(max_parents)
    values, intervened = as_data(values, intervened, MAX_VARIABLES)
    return _marginals(
        values,
        intervened,
        None if variables is None else jnp.asarray(variables),
        edge_probability,
        prior=prior,
        max_parents=max_parents,
        bge=bge,
    )
