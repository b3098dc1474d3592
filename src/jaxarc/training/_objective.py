"""What is learned from what was played: advantages, and the clipped objective."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc.envs import ArcObservation
from jaxarc.training._config import PPOConfig
from jaxarc.training._network import ActorCritic


class Experience(NamedTuple):
    """What was played, and what is made of it; axes `[steps, worlds]` come first."""

    seen: ArcObservation
    choices: Int32[Array, "*steps parts"]
    log_probability: Float32[Array, "*steps"]
    value: Float32[Array, "*steps"]
    advantage: Float32[Array, "*steps"]
    """How much better than expected, not yet made even."""
    returns: Float32[Array, "*steps"]
    """What the value should have been."""


class Losses(NamedTuple):
    """The loss and its parts; `divergence` and `clipped` say how far the policy has moved."""

    loss: Float32[Array, ""]
    policy: Float32[Array, ""]
    value: Float32[Array, ""]
    entropy: Float32[Array, ""]
    divergence: Float32[Array, ""]
    """The mean of `ratio - 1 - log(ratio)`: an estimate that is never negative."""
    clipped: Float32[Array, ""]
    """The share of actions whose probability has moved further than the clip."""


def advantages(
    reward: Float32[Array, "steps worlds"],
    value: Float32[Array, "steps worlds"],
    last_value: Float32[Array, " worlds"],
    done: Bool[Array, "steps worlds"],
    *,
    discount: float | Float32[Array, ""],
    decay: float | Float32[Array, ""],
) -> Float32[Array, "steps worlds"]:
    """Generalised advantage estimates.

    **Arguments:**

    - `reward`: of each step. Where an episode was cut off, the discounted value of what it would
      have gone on to must be in it already.
    - `value`: expected before each step; `last_value`: after the last one.
    - `done`: an episode ended by this step, so that the next value is that of another one.
    """

    def back(carry, step):
        ahead, next_value = carry
        reward, value, going = step
        surprise = reward + discount * going * next_value - value
        ahead = surprise + discount * decay * going * ahead
        return (ahead, value), ahead

    going = 1 - done.astype(jnp.float32)
    start = (jnp.zeros_like(last_value), last_value)
    _, found = lax.scan(back, start, (reward, value, going), reverse=True)
    return found


def ppo_loss(network: ActorCritic, played: Experience, config: PPOConfig) -> Losses:
    """The loss of proximal policy optimisation on a batch; `played` has one leading axis.

    The policy's part is the mean of `-min(ratio * advantage, clip(ratio) * advantage)`, the value's
    half the mean squared error.
    """
    decision = network(played.seen, lambda part, logits: played.choices[:, part])
    change = decision.log_probability - played.log_probability
    ratio = jnp.exp(change)
    held = jnp.clip(ratio, 1 - config.clip_ratio, 1 + config.clip_ratio)
    policy = -jnp.minimum(ratio * played.advantage, held * played.advantage).mean()
    value = 0.5 * ((decision.value - played.returns) ** 2).mean()
    entropy = decision.entropy.mean()
    loss = policy + config.value_weight * value - config.entropy_weight * entropy
    far = (jnp.abs(ratio - 1) > config.clip_ratio).astype(jnp.float32)
    moved = jax.tree.map(lax.stop_gradient, ((ratio - 1 - change).mean(), far.mean()))
    return Losses(loss, policy, value, entropy, *moved)
