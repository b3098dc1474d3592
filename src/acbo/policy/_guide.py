"""The names under which the guide to ACBO knows the training of policies."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

import worldloom as wl
from acbo._keys import key_and_seed
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
    seed: int | None = None
    """Of the key that was drawn because none was given."""


def grpo_with_jax_surrogate(
    grpo_config: GRPOConfig | None = None,
    surrogate_config: SurrogateTrainingConfig | None = None,
    *,
    key: PRNGKeyArray | None = None,
    progress: bool = True,
) -> GRPOResult:
    """Train a surrogate on systems like those of the game, then a policy on it.

    Each of the two is one compiled loop. `surrogate_config.max_epochs` is the number of updates of
    the surrogate; its tables have `samples` rows, of which a share `interventional` sets something.
    `key` is a fresh one by default, whose seed is in the result.
    """
    game = GRPOConfig() if grpo_config is None else grpo_config
    sizes = SurrogateTrainingConfig() if surrogate_config is None else surrogate_config
    own, seed = key_and_seed(key, "grpo_with_jax_surrogate")
    first, second = jax.random.split(own)
    lesson = Lesson(game.variables, (sizes.samples, sizes.samples), sizes.batch_size)
    share = sizes.interventional
    learned = train_surrogate(
        first,
        Curriculum(
            (lesson,),
            ((game.prior.family, 1.0),),
            observational=0.0,
            interventional=(share, share),
        ),
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
    return GRPOResult(played.state.network, surrogate, learned, played, seed)


def collect_experience(
    policy_params: PolicyNetwork,
    surrogate_params: Surrogate,
    *,
    config: GRPOConfig | None = None,
    key: PRNGKeyArray | None = None,
) -> Experience:
    """Play new problems with a policy. `key` is a fresh one by default."""
    config = GRPOConfig() if config is None else config
    own, _ = key_and_seed(key, "collect_experience")
    return _collect(own, policy_params, surrogate_params, config)


def update_policy_grpo(
    surrogate_params: Surrogate,
    trajectories: Experience,
    policy_params: PolicyNetwork | None = None,
    *,
    config: GRPOConfig | None = None,
    key: PRNGKeyArray | None = None,
) -> PolicyNetwork:
    """A policy after learning from what was played.

    Without `policy_params` it is a new one, as at the beginning of a training; `key` makes it, by
    default a fresh one.
    """
    config = GRPOConfig() if config is None else config
    if policy_params is None:
        own, _ = key_and_seed(key, "update_policy_grpo")
        policy_params = PolicyNetwork(2 * surrogate_params.config.hidden, key=own)
    memory = config.optimiser().init(eqx.filter(policy_params, eqx.is_array))
    policy, _, _ = _learn(policy_params, policy_params, memory, trajectories, config)
    return policy


_collect = eqx.filter_jit(collect)
_learn = eqx.filter_jit(learn)
