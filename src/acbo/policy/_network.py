"""The policy: which variable, and which value."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from acbo._errors import OptionError
from acbo.optimise import Action, View
from acbo.policy._features import NUMBERS, Features, features
from acbo.surrogate import Surrogate


class Choice(NamedTuple):
    """A distribution over actions.

    **Attributes:**

    - `logits`: of the variables; those that may not be set have none.
    - `centre`: the value of each variable, as a share of the limit.
    - `spread`: standard deviation of that share.
    """

    logits: Float[Array, " d"]
    centre: Float[Array, " d"]
    spread: Float[Array, ""]


class PolicyNetwork(eqx.Module):
    """Starts as "set the variable whose effect, less its cost, may be largest to its limit", and
    learns from there.

    Every variable is treated alike; it knows of the others through means over them.
    """

    look: eqx.nn.Linear
    think: eqx.nn.Linear
    compare: eqx.nn.Linear
    say: eqx.nn.Linear
    sharpness: Float[Array, ""]
    curiosity: Float[Array, ""]
    log_spread: Float[Array, ""]

    def __init__(self, tokens: int, *, hidden: int = 64, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        self.look = eqx.nn.Linear(NUMBERS + tokens, hidden, key=keys[0])
        self.think = eqx.nn.Linear(hidden, hidden, key=keys[1])
        self.compare = eqx.nn.Linear(2 * hidden, hidden, key=keys[2])
        say = eqx.nn.Linear(hidden, 2, key=keys[3])
        self.say = jax.tree.map(lambda leaf: 0.01 * leaf, say)
        self.sharpness = jnp.float32(12.0)
        self.curiosity = jnp.float32(2.0)
        self.log_spread = jnp.float32(-2.0)

    def __call__(self, seen: Features) -> Choice:
        """The distribution of the next action."""
        x = jnp.concatenate([seen.numbers, seen.tokens], axis=-1)
        x = jax.nn.gelu(_linear(self.think, jax.nn.gelu(_linear(self.look, x))))
        here = seen.allowed.astype(x.dtype)[:, None]
        mean = (x * here).sum(axis=0, keepdims=True) / jnp.maximum(here.sum(), 1.0)
        x = jnp.concatenate([x, jnp.broadcast_to(mean, x.shape)], axis=-1)
        said = _linear(self.say, jax.nn.gelu(_linear(self.compare, x)))
        # What is learned with the last intervention is of no use.
        curiosity = self.curiosity * jnp.sqrt(seen.left)
        reach = jnp.abs(seen.effect) + curiosity * seen.doubt - seen.cost
        logits = self.sharpness * reach + 4 * said[:, 0]
        # Beyond the limit even where the effect is small: a target that rises, rises to the end.
        centre = 1.4 * jnp.tanh(16 * seen.effect + 4 * said[:, 1])
        return Choice(
            jnp.where(seen.allowed, logits, -1e9),
            centre,
            jnp.exp(jnp.clip(self.log_spread, -3.0, 0.0)),
        )


class Decision(NamedTuple):
    """A drawn action: the variable, and the share of the limit before it is cut."""

    variable: Array
    share: Array


def draw(key: PRNGKeyArray, choice: Choice) -> Decision:
    """One action of a distribution."""
    first, second = jax.random.split(key)
    variable = jax.random.categorical(first, choice.logits).astype(jnp.int32)
    share = choice.centre[variable] + choice.spread * jax.random.normal(second)
    return Decision(variable, share)


def mode(choice: Choice) -> Decision:
    """The most likely action."""
    variable = jnp.argmax(choice.logits).astype(jnp.int32)
    return Decision(variable, choice.centre[variable])


def log_probability(choice: Choice, decision: Decision) -> Float[Array, ""]:
    """Log density of a decision, up to a constant."""
    gap = (decision.share - choice.centre[decision.variable]) / choice.spread
    which = jax.nn.log_softmax(choice.logits)[decision.variable]
    return which - 0.5 * gap**2 - jnp.log(choice.spread)


def entropy(choice: Choice) -> Float[Array, ""]:
    """Entropy of the choice of a variable."""
    p = jax.nn.softmax(choice.logits)
    return -(p * jnp.where(p > 0, jax.nn.log_softmax(choice.logits), 0.0)).sum()


def divergence(choice: Choice, other: Choice) -> Float[Array, ""]:
    """Kullback-Leibler divergence of the choice of a variable from that of another policy."""
    p = jax.nn.softmax(choice.logits)
    gap = jax.nn.log_softmax(choice.logits) - jax.nn.log_softmax(other.logits)
    return (p * jnp.where(p > 0, gap, 0.0)).sum()


class LearnedPolicy(eqx.Module):
    """A policy of `acbo.optimise`: a network on a surrogate, taking its most likely action."""

    network: PolicyNetwork
    surrogate: Surrogate

    def __check_init__(self):
        tokens = self.network.look.weight.shape[1] - NUMBERS
        hidden = self.surrogate.config.hidden
        if tokens != 2 * hidden:
            raise OptionError(
                f"the policy looks at surrogates with hidden={tokens // 2}, this one has hidden="
                f"{hidden}: give the surrogate it was trained with, or train a policy on this one "
                "(acbo.policy.train_policy, or `worldloom acbo train policy --surrogate FILE`)"
            )

    def __call__(self, key: PRNGKeyArray, view: View) -> Action:
        """See `acbo.optimise.Policy`."""
        seen = features(view, self.surrogate)
        decision = mode(self.network(seen))
        return Action(decision.variable, jnp.clip(decision.share, -1.0, 1.0) * view.limit)


def _linear(layer: eqx.nn.Linear, x: Float[Array, "*batch n"]) -> Float[Array, "*batch m"]:
    """A linear layer along the last axis of anything, as one matrix product."""
    out = x @ layer.weight.T
    assert layer.bias is not None
    return out + layer.bias.reshape((1,) * (out.ndim - 1) + (-1,))
