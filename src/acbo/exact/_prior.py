"""Weights of parent sets: their scores, and what is believed before any data."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo._errors import OptionError
from acbo.exact._score import IMPOSSIBLE, BGe, parent_set_table, relative_scores

Prior = Literal["uniform", "orders"]
PRIORS = ("uniform", "orders")


def check_prior(prior: str, edge_probability: float | Array) -> None:
    """A prior that exists; an edge probability between 0 and 1, where it is a plain number."""
    if prior not in PRIORS:
        raise OptionError(f"prior is {prior!r}; give one of {', '.join(map(repr, PRIORS))}")
    if not isinstance(edge_probability, Array) and not 0 < edge_probability < 1:
        raise OptionError(
            f"edge_probability is {edge_probability}; give a number above 0 and below 1 "
            "(0.5 favours no number of edges)"
        )


def log_weights(
    values: Float[Array, "n d"],
    intervened: Bool[Array, "n d"],
    variables: Bool[Array, " d"] | None,
    edge_probability: float | Float[Array, ""],
    *,
    max_parents: int | None,
    bge: BGe,
) -> Float[Array, "d sets"]:
    """Score plus prior odds of each parent set, relative to the best set of the variable.

    The weights of likely graphs are then sums of small numbers, which float32 keeps.
    """
    scores, _ = relative_scores(
        values, intervened, max_parents=max_parents, bge=bge, variables=variables
    )
    odds = jnp.log(edge_probability) - jnp.log1p(-edge_probability)
    sizes = jnp.asarray(parent_set_table(values.shape[1]).sum(1), jnp.float32)
    weights = scores + (sizes * odds)[None]
    return jnp.maximum(weights - weights.max(1, keepdims=True), IMPOSSIBLE)
