"""A policy that chooses interventions, on the surrogate's embeddings, trained by GRPO."""

from __future__ import annotations

from acbo.policy._features import Features as Features
from acbo.policy._features import features as features
from acbo.policy._grpo import Experience as Experience
from acbo.policy._grpo import GRPOConfig as GRPOConfig
from acbo.policy._grpo import GRPOMetrics as GRPOMetrics
from acbo.policy._grpo import GRPOState as GRPOState
from acbo.policy._grpo import GRPOStep as GRPOStep
from acbo.policy._grpo import advantages as advantages
from acbo.policy._grpo import collect as collect
from acbo.policy._grpo import grpo_loss as grpo_loss
from acbo.policy._grpo import learn as learn
from acbo.policy._grpo import train_policy as train_policy
from acbo.policy._guide import GRPOResult as GRPOResult
from acbo.policy._guide import collect_experience as collect_experience
from acbo.policy._guide import grpo_with_jax_surrogate as grpo_with_jax_surrogate
from acbo.policy._guide import update_policy_grpo as update_policy_grpo
from acbo.policy._network import Choice as Choice
from acbo.policy._network import Decision as Decision
from acbo.policy._network import LearnedPolicy as LearnedPolicy
from acbo.policy._network import PolicyNetwork as PolicyNetwork
from acbo.policy._network import draw as draw
from acbo.policy._network import entropy as entropy
from acbo.policy._network import log_probability as log_probability
from acbo.policy._network import mode as mode

__all__ = [
    "Choice",
    "Decision",
    "Experience",
    "Features",
    "GRPOConfig",
    "GRPOMetrics",
    "GRPOResult",
    "GRPOState",
    "GRPOStep",
    "LearnedPolicy",
    "PolicyNetwork",
    "advantages",
    "collect",
    "collect_experience",
    "draw",
    "entropy",
    "features",
    "grpo_loss",
    "grpo_with_jax_surrogate",
    "learn",
    "log_probability",
    "mode",
    "train_policy",
    "update_policy_grpo",
]
