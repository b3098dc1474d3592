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
from acbo.policy._grpo import train_policy as train_policy
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
    "GRPOState",
    "GRPOStep",
    "LearnedPolicy",
    "PolicyNetwork",
    "advantages",
    "collect",
    "draw",
    "entropy",
    "features",
    "grpo_loss",
    "log_probability",
    "mode",
    "train_policy",
]
