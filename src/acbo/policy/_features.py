"""What a policy looks at: the surrogate's belief, and effects computed from it."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo.optimise import View, believed_effects, effects, outcome_edges
from acbo.scm import standardise
from acbo.surrogate import Surrogate


class Features(NamedTuple):
    """One row a variable.

    **Attributes:**

    - `effect`: what is believed of the target's change, in its own deviations, when a variable is
      set to its limit.
    - `doubt`: the standard deviation of that belief.
    - `numbers`: beliefs and estimates of size about 1.
    - `tokens`: the surrogate's embedding of the pair (variable, target), both ways.
    - `allowed`: which variables may be set.
    - `limit`: how far.
    - `left`: the share of the budget that is left.
    - `cost`: of setting each variable, in the target's deviations, as `effect` is.
    """

    effect: Float[Array, " d"]
    doubt: Float[Array, " d"]
    numbers: Float[Array, "d 10"]
    tokens: Float[Array, "d twice_hidden"]
    allowed: Bool[Array, " d"]
    limit: Float[Array, ""]
    left: Float[Array, ""]
    cost: Float[Array, "*d"] | float = 0.0


NUMBERS = 10


def features(view: View, surrogate: Surrogate) -> Features:
    """Look at a view through a surrogate."""
    prediction = surrogate(standardise(view.samples))
    believed = jax.nn.sigmoid(prediction.edge_logits)
    edges = outcome_edges(view, believed)
    y = view.target
    found = effects(view)
    unit = view.limit / found.scale[y]
    # The same view has the same features: the graphs drawn depend on nothing else.
    key = jax.random.fold_in(jax.random.key(0), view.used)
    belief = believed_effects(key, view, edges)
    effect = jnp.where(view.allowed, belief.mean * unit, 0.0)
    doubt = jnp.where(view.allowed, belief.deviation * unit, 0.0)

    left = 1 - view.used.astype(jnp.float32) / jnp.maximum(view.budget, 1).astype(jnp.float32)
    numbers = jnp.stack(
        [
            edges[:, y],
            believed[y, :],
            jnp.tanh(effect / 4),
            jnp.tanh(doubt),
            jnp.tanh(found.slope * unit / 4),
            jnp.tanh(found.error * unit / 4),
            found.times_set / 3.0,
            found.correlation,
            jnp.log(found.scale / found.scale[y]) / 2,
            jnp.broadcast_to(left, found.slope.shape),
        ],
        axis=-1,
    )
    tokens = jnp.concatenate([prediction.tokens[:, y], prediction.tokens[y, :]], axis=-1)
    cost = view.cost / found.scale[y]
    return Features(effect, doubt, numbers, tokens, view.allowed, view.limit, left, cost)
