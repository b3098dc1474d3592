"""Probabilities that mean what they say: a temperature, found on tables never trained on."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from acbo.scm import Graph, Samples
from acbo.surrogate._loss import possible_edges
from acbo.surrogate._network import Surrogate

_SMALLEST, _LARGEST, _TRIES = 0.25, 4.0, 161


def best_temperature(
    edge_logits: Float[Array, "tables d d"],
    edges: Bool[Array, "tables d d"],
    variables: Bool[Array, "tables d"],
) -> Float[Array, ""]:
    """The number between 1/4 and 4 by which to divide log odds for the least cross-entropy.

    Below 1 the log odds were too timid, above 1 too bold.
    """
    weight = jax.vmap(possible_edges)(variables)
    truth = edges.astype(jnp.float32)
    tries = jnp.geomspace(_SMALLEST, _LARGEST, _TRIES)

    def loss(temperature: Array) -> Array:
        each = optax.sigmoid_binary_cross_entropy(edge_logits / temperature, truth)
        return (each * weight).sum()

    return tries[jnp.argmin(jax.lax.map(loss, tries))]


def calibrated(
    network: Surrogate, graphs: Graph, samples: Samples
) -> tuple[Surrogate, Float[Array, ""]]:
    """The network with its edge log odds divided by the best temperature for these tables.

    **Arguments:** `graphs` and `samples`, batched along the first axis, that the network was not
    trained on. Returns the new network and the temperature.
    """
    logits = jax.lax.map(lambda one: network(one).edge_logits, samples, batch_size=16)
    temperature = best_temperature(logits, graphs.edges, graphs.variables)

    def cooler(leaf: Array) -> Array:
        return leaf.at[0].divide(temperature)

    layer = jax.tree.map(cooler, network.narrow)
    return eqx.tree_at(lambda n: n.narrow, network, layer), temperature
