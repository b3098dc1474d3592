"""Group-relative policy optimisation: rollouts of the same problem are each other's baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import worldloom as wl
from acbo._descent import follow, warm_cosine
from acbo.optimise import Action, Problem, ProblemPrior, act, begin, look
from acbo.policy._features import Features, features
from acbo.policy._network import (
    Decision,
    PolicyNetwork,
    divergence,
    draw,
    entropy,
    log_probability,
)
from acbo.surrogate import Surrogate


@dataclass(frozen=True)
class GRPOConfig:
    """How to train a policy.

    **Arguments:**

    - `group_size`: rollouts of the same problem.
    - `problems`: problems in a step.
    - `total_steps`: steps; each plays, then makes `epochs` updates on what was played.
    - `learning_rate`, `clip`: of Adam, and the largest norm of a gradient.
    - `clip_ratio`: how far an action's probability may move in one step and still count.
    - `entropy_coeff`: reward for not deciding too early.
    - `kl_penalty_coeff`: how strongly the policy is held to the one that training began with.
    - `improvement_coeff`: reward for exceeding the best intervention so far.
    - `information_coeff`: reward for what the surrogate learns about the causes of the target.
    - `variables`, `observed`, `budget`: sizes of the problems; interventions in a rollout.
    - `prior`: where problems come from.
    """

    group_size: int = 8
    problems: int = 32
    total_steps: int = 300
    learning_rate: float = 1e-3
    clip: float = 1.0
    clip_ratio: float = 0.2
    entropy_coeff: float = 0.003
    kl_penalty_coeff: float = 0.0
    improvement_coeff: float = 0.0
    information_coeff: float = 0.0
    epochs: int = 3
    variables: tuple[int, int] = (3, 5)
    observed: int = 20
    budget: int = 10
    prior: ProblemPrior = field(default_factory=ProblemPrior)

    def __post_init__(self):
        for name in ("problems", "total_steps", "epochs", "observed", "budget"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}; expected at least 1")
        if self.group_size < 2:
            raise ValueError(f"group_size={self.group_size}; a group compares at least 2 rollouts")
        if not 0 < self.clip_ratio < 1:
            raise ValueError(f"clip_ratio={self.clip_ratio}; expected a share between 0 and 1")

    def optimiser(self) -> optax.GradientTransformation:
        """Adam with clipping and a cosine."""
        rate = warm_cosine(self.learning_rate, self.total_steps * self.epochs, last=0.05)
        return optax.chain(optax.clip_by_global_norm(self.clip), optax.adam(rate))


class Experience(NamedTuple):
    """What was played; axes `[problems, group, budget]` come first."""

    seen: Features
    decision: Decision
    log_probability: Float[Array, "problems group budget"]
    worth: Float[Array, "problems group budget"]
    reward: Float[Array, "problems group budget"]


class GRPOMetrics(eqx.Module):
    """What a step of training reports."""

    reward: Float[Array, ""]
    worth: Float[Array, ""]
    best: Float[Array, ""]
    entropy: Float[Array, ""]
    loss: Float[Array, ""]


class GRPOState(eqx.Module):
    """All that training a policy carries."""

    network: PolicyNetwork
    optimiser: optax.OptState
    key: PRNGKeyArray


def collect(
    key: PRNGKeyArray, network: PolicyNetwork, surrogate: Surrogate, config: GRPOConfig
) -> Experience:
    """Play: `problems` problems, each `group_size` times from the same first samples."""

    def rollout(key: PRNGKeyArray, start: PRNGKeyArray, problem: Problem):
        def step(game, t):
            choose, see = jax.random.split(jax.random.fold_in(key, t))
            view = look(game, problem, config.budget)
            seen = features(view, surrogate)
            choice = network(seen)
            decision = draw(choose, choice)
            action = Action(decision.variable, jnp.clip(decision.share, -1.0, 1.0) * view.limit)
            before = jnp.maximum(game.best, 0.0)
            game, made = act(see, game, action, problem)
            improved = jnp.maximum(game.best, 0.0) - before
            known = _certainty(seen)
            out = (
                seen,
                decision,
                log_probability(choice, decision),
                made.worth,
                made.reward + config.improvement_coeff * improved,
                known,
            )
            return game, out

        game = begin(start, problem, observed=config.observed, budget=config.budget)
        _, out = lax.scan(step, game, jnp.arange(config.budget))
        seen, decision, logp, worth, reward, known = out
        gained = jnp.concatenate([known[1:] - known[:-1], jnp.zeros(1)])
        return Experience(seen, decision, logp, worth, reward + config.information_coeff * gained)

    def group(key: PRNGKeyArray) -> Experience:
        draw_, size, start, play_ = jax.random.split(key, 4)
        low, high = config.variables
        size = jax.random.randint(size, (), low, high + 1)
        problem = config.prior.problem(draw_, high, size=size)
        keys = jax.random.split(play_, config.group_size)
        return jax.vmap(lambda key: rollout(key, start, problem))(keys)

    return jax.vmap(group)(jax.random.split(key, config.problems))


def advantages(
    reward: Float[Array, "problems group budget"],
) -> Float[Array, "problems group budget"]:
    """How much better than its group: half of the whole rollout, half of what was still to come."""
    whole = reward.mean(axis=2, keepdims=True)
    ahead = jnp.flip(jnp.cumsum(jnp.flip(reward, axis=2), axis=2), axis=2) / reward.shape[2]

    def relative(x: Array) -> Array:
        return (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + 1e-2)

    return 0.5 * relative(whole) + 0.5 * relative(ahead)


def grpo_loss(
    network: PolicyNetwork, reference: PolicyNetwork, played: Experience, config: GRPOConfig
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The clipped objective, and the mean entropy of choices."""
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), played)
    advantage = advantages(played.reward).reshape(-1)
    choice = jax.vmap(network)(flat.seen)
    ratio = jnp.exp(jax.vmap(log_probability)(choice, flat.decision) - flat.log_probability)
    held = jnp.clip(ratio, 1 - config.clip_ratio, 1 + config.clip_ratio)
    gain = jnp.minimum(ratio * advantage, held * advantage).mean()
    spread = jax.vmap(entropy)(choice).mean()
    loss = -gain - config.entropy_coeff * spread
    if config.kl_penalty_coeff:
        apart = jax.vmap(divergence)(choice, jax.vmap(reference)(flat.seen)).mean()
        loss = loss + config.kl_penalty_coeff * apart
    return loss, spread


def learn(
    network: PolicyNetwork,
    reference: PolicyNetwork,
    memory: optax.OptState,
    played: Experience,
    config: GRPOConfig,
) -> tuple[PolicyNetwork, optax.OptState, tuple[Array, Array]]:
    """`config.epochs` updates on what was played; also the loss and the entropy before each."""
    optimiser = config.optimiser()

    def update(carry, _):
        network, memory = carry
        told, gradient = eqx.filter_value_and_grad(grpo_loss, has_aux=True)(
            network, reference, played, config
        )
        return follow(optimiser, gradient, memory, network), told

    (network, memory), told = lax.scan(update, (network, memory), None, config.epochs)
    return network, memory, told


class GRPOStep(eqx.Module):
    """Play, then learn from it: a step of `worldloom.run`."""

    surrogate: Surrogate
    reference: PolicyNetwork
    config: GRPOConfig = eqx.field(static=True)

    def __call__(self, state: GRPOState, t: Int[Array, ""]) -> tuple[GRPOState, GRPOMetrics]:
        """One step of training."""
        key = jax.random.fold_in(state.key, t)
        played = collect(key, state.network, self.surrogate, self.config)
        network, memory, (loss, spread) = learn(
            state.network, self.reference, state.optimiser, played, self.config
        )
        metrics = GRPOMetrics(
            reward=played.reward.mean(),
            worth=played.worth.mean(),
            best=played.worth.max(axis=2).mean(),
            entropy=spread[0],
            loss=loss[0],
        )
        return GRPOState(network, memory, state.key), metrics


def train_policy(
    key: PRNGKeyArray,
    surrogate: Surrogate,
    *,
    config: GRPOConfig | None = None,
    checkpoint: wl.Checkpoint | str | Path | None = None,
    resume: bool = False,
    progress: bool | str | wl.Progress = "training the policy",
) -> wl.RunResult:
    """Train a policy on a surrogate, in one compiled loop. `state.network` is the policy.

    `checkpoint`, `resume` and `progress` are as in `worldloom.run`.
    """
    config = GRPOConfig() if config is None else config
    first, second = jax.random.split(key)
    network = PolicyNetwork(2 * surrogate.config.hidden, key=first)
    memory = config.optimiser().init(eqx.filter(network, eqx.is_array))
    return wl.run(
        GRPOStep(surrogate, network, config),
        GRPOState(network, memory, second),
        length=config.total_steps,
        save=wl.Every(),
        checkpoint=checkpoint,
        resume=resume,
        progress=progress,
    )


def _certainty(seen: Features) -> Float[Array, ""]:
    """Minus the entropy of the beliefs about the causes of the target, in nats."""
    p = jnp.clip(seen.numbers[:, 0], 1e-6, 1 - 1e-6)
    return (p * jnp.log(p) + (1 - p) * jnp.log(1 - p)).sum()
