"""Posteriors over whole sets of causes of one target."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acbo.surrogate._network import Prediction


@lru_cache(maxsize=64)
def candidate_sets(d: int, max_parent_size: int) -> np.ndarray:
    """`[k, d]` booleans: all sets of at most `max_parent_size` of `d` variables, small ones first.

    ```python
    from acbo.surrogate import candidate_sets

    assert candidate_sets(4, 2).shape == (1 + 4 + 6, 4)
    ```
    """
    if max_parent_size < 0:
        raise ValueError(f"max_parent_size={max_parent_size}; expected at least 0")
    sets = [s for size in range(max_parent_size + 1) for s in combinations(range(d), size)]
    table = np.zeros((len(sets), d), bool)
    for row, members in enumerate(sets):
        table[row, list(members)] = True
    table.flags.writeable = False
    return table


def parent_set_logits(
    prediction: Prediction, target: Int[Array, ""] | int, sets: Bool[Array, "k d"]
) -> Float[Array, " k"]:
    """Normalised log probabilities of `sets` as the causes of `target`.

    The probability is one among the sets given. Sets that hold the target itself, or variables
    that do not exist, have practically none.
    """
    members = jnp.asarray(sets).astype(jnp.float32)
    single = prediction.cause_scores[:, target]
    pairs = prediction.cause_pairs[:, target]
    together = (members @ pairs) ** 2 - members @ pairs**2
    return jax.nn.log_softmax(members @ single + together.sum(axis=-1) / 2)
