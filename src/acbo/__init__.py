"""Amortized causal Bayesian optimisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worldloom._exports import lazy_exports

if TYPE_CHECKING:
    from acbo.discovery import Discovery as Discovery
    from acbo.discovery import discover as discover
    from acbo.policy import GRPOConfig as GRPOConfig
    from acbo.policy import collect_experience as collect_experience
    from acbo.policy import grpo_with_jax_surrogate as grpo_with_jax_surrogate
    from acbo.policy import update_policy_grpo as update_policy_grpo
    from acbo.pretrained import pretrained_policy as pretrained_policy
    from acbo.pretrained import pretrained_surrogate as pretrained_surrogate
    from acbo.training import ParentSetPosterior as ParentSetPosterior
    from acbo.training import SurrogateTrainingConfig as SurrogateTrainingConfig
    from acbo.training import TrainingBatch as TrainingBatch
    from acbo.training import TrainingBatchJAX as TrainingBatchJAX
    from acbo.training import TrainingExample as TrainingExample
    from acbo.training import benchmark_sustained_performance as benchmark_sustained_performance
    from acbo.training import calibrated_loss as calibrated_loss
    from acbo.training import collect_observational_data as collect_observational_data
    from acbo.training import compare_posteriors as compare_posteriors
    from acbo.training import compute_posterior_entropy as compute_posterior_entropy
    from acbo.training import convert_to_jax_batch as convert_to_jax_batch
    from acbo.training import create_adaptive_train_step as create_adaptive_train_step
    from acbo.training import create_jax_surrogate_train_step as create_jax_surrogate_train_step
    from acbo.training import create_parent_set_model as create_parent_set_model
    from acbo.training import create_surrogate_train_step as create_surrogate_train_step
    from acbo.training import create_test_batch as create_test_batch
    from acbo.training import create_test_model as create_test_model
    from acbo.training import create_training_batch as create_training_batch
    from acbo.training import generate_scm_for_difficulty as generate_scm_for_difficulty
    from acbo.training import get_marginal_parent_probabilities as get_marginal_parent_probabilities
    from acbo.training import get_most_likely_parents as get_most_likely_parents
    from acbo.training import kl_divergence_loss as kl_divergence_loss
    from acbo.training import kl_divergence_loss_jax as kl_divergence_loss_jax
    from acbo.training import measure_compilation_speedup as measure_compilation_speedup
    from acbo.training import monitor_memory_usage as monitor_memory_usage
    from acbo.training import optimized_progressive_learning as optimized_progressive_learning
    from acbo.training import prepare_static_args as prepare_static_args
    from acbo.training import restore_static_args as restore_static_args
    from acbo.training import test_config as test_config
    from acbo.training import uncertainty_weighted_loss as uncertainty_weighted_loss
    from acbo.training import uncertainty_weighted_loss_jax as uncertainty_weighted_loss_jax
    from acbo.training import update_surrogate_jax as update_surrogate_jax
    from acbo.training import validate_fallback_behavior as validate_fallback_behavior

__all__ = [
    "Discovery",
    "GRPOConfig",
    "ParentSetPosterior",
    "SurrogateTrainingConfig",
    "TrainingBatch",
    "TrainingBatchJAX",
    "TrainingExample",
    "benchmark_sustained_performance",
    "calibrated_loss",
    "collect_experience",
    "collect_observational_data",
    "compare_posteriors",
    "compute_posterior_entropy",
    "convert_to_jax_batch",
    "create_adaptive_train_step",
    "create_jax_surrogate_train_step",
    "create_parent_set_model",
    "create_surrogate_train_step",
    "create_test_batch",
    "create_test_model",
    "create_training_batch",
    "discover",
    "generate_scm_for_difficulty",
    "get_marginal_parent_probabilities",
    "get_most_likely_parents",
    "grpo_with_jax_surrogate",
    "kl_divergence_loss",
    "kl_divergence_loss_jax",
    "measure_compilation_speedup",
    "monitor_memory_usage",
    "optimized_progressive_learning",
    "prepare_static_args",
    "pretrained_policy",
    "pretrained_surrogate",
    "restore_static_args",
    "test_config",
    "uncertainty_weighted_loss",
    "uncertainty_weighted_loss_jax",
    "update_policy_grpo",
    "update_surrogate_jax",
    "validate_fallback_behavior",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    __all__,
    found_in=("training", "policy", "discovery", "pretrained"),
    rooms=(
        "data",
        "discovery",
        "evaluation",
        "exact",
        "metrics",
        "optimise",
        "policy",
        "pretrained",
        "report",
        "scm",
        "surrogate",
        "training",
    ),
)
