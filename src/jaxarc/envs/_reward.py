"""Rewards: injected objects that see one transition and give one number a world."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from jaxarc.envs._options import check_number, config_class, is_number


class Transition(NamedTuple):
    """What a reward may look at, for each world.

    - `similarity_before`, `similarity_after`: share of cells that are right, 0 ... 1; 1 only
      where grid and target agree in shape and in every cell. Always 0 in test mode, which
      does not tell.
    - `success`: a pair was solved by this step.
    - `submitted`: the grid was handed in by this step.
    """

    similarity_before: Float32[Array, "*worlds"]
    similarity_after: Float32[Array, "*worlds"]
    success: Bool[Array, "*worlds"]
    submitted: Bool[Array, "*worlds"]


@runtime_checkable
class Reward(Protocol):
    """Anything hashable that turns a transition into a reward; part of the configuration."""

    def __call__(self, transition: Transition) -> Float32[Array, "*worlds"]:
        """The reward of each world."""
        ...


@config_class
class SimilarityReward:
    """The change of similarity, a bonus for success, and a price for each step and each miss.

    - `similarity_weight`: times the change of similarity.
    - `success_bonus`: for solving a pair.
    - `step_penalty`: taken off at every step, and all that an invalid step earns.
    - `submit_penalty`: taken off for handing in a wrong grid.

    None of them is negative.
    """

    similarity_weight: float | int = 1.0
    success_bonus: float | int = 10.0
    step_penalty: float | int = 0.01
    submit_penalty: float | int = 0.0

    def __post_init__(self):
        for name in ("similarity_weight", "success_bonus", "step_penalty", "submit_penalty"):
            value = getattr(self, name)
            hint = ""
            if name.endswith("penalty") and is_number(value) and value < 0:
                hint = f"; a penalty is taken off, so a cost is {name}={-value!r}"
            check_number(self, name, low=0.0, hint=hint)

    def __call__(self, transition: Transition) -> Float32[Array, "*worlds"]:
        """The reward of each world."""
        change = transition.similarity_after - transition.similarity_before
        missed = transition.submitted & ~transition.success
        return (
            jnp.float32(self.similarity_weight) * change
            + jnp.where(transition.success, jnp.float32(self.success_bonus), 0)
            - jnp.where(missed, jnp.float32(self.submit_penalty), 0)
            - jnp.float32(self.step_penalty)
        )
