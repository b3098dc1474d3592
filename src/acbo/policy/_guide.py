"""The names under which the guide to ACBO knows the training of policies."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

import worldloom as wl
from acbo.policy._grpo import Experience, GRPOConfig, collect, learn, train_policy
from acbo.policy._network import PolicyNetwork
from acbo.surrogate import (
    Curriculum,
    Lesson,
    Surrogate,
    SurrogateConfig,
    TrainingConfig,
    train_surrogate,
)
from acbo.training import SurrogateTrainingConfig


class GRPOResult(NamedTuple):
    """A policy, the surrogate that it looks through, and how both were trained."""

    policy: PolicyNetwork
    surrogate: Surrogate
    surrogate_run: wl.RunResult
    policy_run: wl.RunResult


def grpo_with_jax_surrogate(
    grpo_config: GRPOConfig | None = None,
    surrogate_config: SurrogateTrainingConfig | None = None,
    *,
    key: PRNGKeyArray | None = None,
    progress: bool = True,
) -> GRPOResult:
    """Train a surrogate on tables like those of the game, then a policy on it.

    Each of the two is one compiled loop. `surrogate_config.max_epochs` is the number of updates of
    the surrogate.
    """
    game = GRPOConfig() if grpo_config is None else grpo_config
    sizes = SurrogateTrainingConfig() if surrogate_config is None else surrogate_config
    first, second = jax.random.split(jax.random.key(0) if key is None else key)
    lesson = Lesson(game.variables, (game.observed, game.observed + game.budget), sizes.batch_size)
    learned = train_surrogate(
        first,
        Curriculum((lesson,), ((game.prior.family, 1.0),)),
        surrogate=SurrogateConfig(
            hidden=sizes.model_hidden_dim,
            blocks=sizes.model_n_layers,
            heads=sizes.model_n_heads,
            compute_dtype=sizes.compute_dtype,
        ),
        config=TrainingConfig(
            steps=sizes.max_epochs,
            learning_rate=sizes.learning_rate,
            weight_decay=sizes.weight_decay,
            clip=sizes.clip,
            max_parent_size=sizes.max_parent_size,
        ),
        progress="training the surrogate" if progress else False,
    )
    surrogate = learned.state.average
    played = train_policy(
        second,
        surrogate,
        config=game,
        progress="training the policy" if progress else False,
    )
    return GRPOResult(played.state.network, surrogate, learned, played)


def collect_experience(
    policy_params: PolicyNetwork,
    surrogate_params: Surrogate,
    *,
    config: GRPOConfig | None = None,
    key: PRNGKeyArray | None = None,
) -> Experience:
    """Play new problems with a policy."""
    config = GRPOConfig() if config is None else config
    key = jax.random.key(0) if key is None else key
    return _collect(key, policy_params, surrogate_params, config)


def update_policy_grpo(
    surrogate_params: Surrogate,
    trajectories: Experience,
    policy_params: PolicyNetwork | None = None,
    *,
    config: GRPOConfig | None = None,
    key: PRNGKeyArray | None = None,
) -> PolicyNetwork:
    """A policy after learning from what was played.

    Without `policy_params` it is a new one, as at the beginning of a training.
    """
    config = GRPOConfig() if config is None else config
    if policy_params is None:
        key = jax.random.key(0) if key is None else key
        policy_params = PolicyNetwork(2 * surrogate_params.config.hidden, key=key)
    memory = config.optimiser().init(eqx.filter(policy_params, eqx.is_array))
    policy, _, _ = _learn(policy_params, policy_params, memory, trajectories, config)
    return policy


_collect = eqx.filter_jit(collect)
_learn = eqx.filter_jit(learn)
