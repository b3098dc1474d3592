"""What the surrogate is trained to minimise."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from acbo.scm import Graph
from acbo.surrogate._network import Prediction
from acbo.surrogate._parent_sets import parent_set_logits


def edge_loss(prediction: Prediction, graph: Graph) -> Float[Array, ""]:
    """Mean cross-entropy of the edges, in nats a pair of variables."""
    truth = graph.edges.astype(jnp.float32)
    each = jax.nn.softplus(prediction.edge_logits) - truth * prediction.edge_logits
    return (each * possible_edges(graph.variables)).sum() / count_pairs(graph.variables)


def parent_set_loss(
    prediction: Prediction,
    graph: Graph,
    target: Int[Array, ""],
    sets: Bool[Array, "k d"],
) -> Float[Array, ""]:
    """Cross-entropy of the true set of causes of `target`; 0 where it is none of `sets`."""
    logits = parent_set_logits(prediction, target, sets)
    same = (jnp.asarray(sets) == graph.edges[:, target][None, :]).all(axis=1)
    return -jnp.where(same, logits, 0.0).sum()


def acyclicity_penalty(edge_logits: Float[Array, "d d"]) -> Float[Array, ""]:
    """How far the expected graph is from having no cycle: 0 for a graph without, else positive.

    With `P` the probabilities of edges, this is the trace of `(I + P/d)^d - I`: a weighted sum over
    all closed walks.
    """
    d = edge_logits.shape[0]
    step = jnp.eye(d) + jax.nn.sigmoid(edge_logits) / d
    return jnp.trace(jnp.linalg.matrix_power(step, d)) - d


def possible_edges(variables: Bool[Array, " d"]) -> Float[Array, "d d"]:
    """1 where an edge could be: between two different variables that exist."""
    pairs = variables[:, None] & variables[None, :]
    return (pairs & ~jnp.eye(variables.shape[0], dtype=bool)).astype(jnp.float32)


def count_pairs(variables: Bool[Array, " d"]) -> Float[Array, ""]:
    """The number of possible edges, at least 1."""
    size = variables.sum().astype(jnp.float32)
    return jnp.maximum(size * (size - 1), 1.0)


class Metrics(eqx.Module):
    """What a training step reports."""

    loss: Float[Array, ""]
    edge_loss: Float[Array, ""]
    parent_set_loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    lesson: Int[Array, ""]
