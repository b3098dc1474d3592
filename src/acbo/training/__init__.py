"""Training steps, batches, losses and measurements: doors into the surrogate network."""

from __future__ import annotations

from acbo.training._batch import TrainingBatch as TrainingBatch
from acbo.training._batch import TrainingBatchJAX as TrainingBatchJAX
from acbo.training._batch import TrainingExample as TrainingExample
from acbo.training._batch import convert_to_jax_batch as convert_to_jax_batch
from acbo.training._config import SurrogateTrainingConfig as SurrogateTrainingConfig
from acbo.training._examples import create_test_batch as create_test_batch
from acbo.training._examples import create_test_model as create_test_model
from acbo.training._examples import test_config as test_config
from acbo.training._fallback import FallbackReport as FallbackReport
from acbo.training._fallback import validate_fallback_behavior as validate_fallback_behavior
from acbo.training._losses import calibrated_loss as calibrated_loss
from acbo.training._losses import kl_divergence_loss as kl_divergence_loss
from acbo.training._losses import kl_divergence_loss_jax as kl_divergence_loss_jax
from acbo.training._losses import uncertainty_weighted_loss as uncertainty_weighted_loss
from acbo.training._losses import uncertainty_weighted_loss_jax as uncertainty_weighted_loss_jax
from acbo.training._measure import MemoryUse as MemoryUse
from acbo.training._measure import Speedup as Speedup
from acbo.training._measure import (
    benchmark_sustained_performance as benchmark_sustained_performance,
)
from acbo.training._measure import measure_compilation_speedup as measure_compilation_speedup
from acbo.training._measure import monitor_memory_usage as monitor_memory_usage
from acbo.training._model import ParentSetModel as ParentSetModel
from acbo.training._model import create_parent_set_model as create_parent_set_model
from acbo.training._posterior import ParentSetPosterior as ParentSetPosterior
from acbo.training._posterior import compare_posteriors as compare_posteriors
from acbo.training._posterior import compute_posterior_entropy as compute_posterior_entropy
from acbo.training._posterior import (
    get_marginal_parent_probabilities as get_marginal_parent_probabilities,
)
from acbo.training._posterior import get_most_likely_parents as get_most_likely_parents
from acbo.training._problems import collect_observational_data as collect_observational_data
from acbo.training._problems import create_training_batch as create_training_batch
from acbo.training._problems import generate_scm_for_difficulty as generate_scm_for_difficulty
from acbo.training._progressive import ProgressiveResult as ProgressiveResult
from acbo.training._progressive import (
    optimized_progressive_learning as optimized_progressive_learning,
)
from acbo.training._progressive import update_surrogate_jax as update_surrogate_jax
from acbo.training._static import prepare_static_args as prepare_static_args
from acbo.training._static import restore_static_args as restore_static_args
from acbo.training._step import SurrogateTrainStep as SurrogateTrainStep
from acbo.training._step import TrainStepError as TrainStepError
from acbo.training._step import create_adaptive_train_step as create_adaptive_train_step
from acbo.training._step import create_jax_surrogate_train_step as create_jax_surrogate_train_step
from acbo.training._step import create_surrogate_train_step as create_surrogate_train_step

__all__ = [
    "FallbackReport",
    "MemoryUse",
    "ParentSetModel",
    "ParentSetPosterior",
    "ProgressiveResult",
    "Speedup",
    "SurrogateTrainStep",
    "SurrogateTrainingConfig",
    "TrainStepError",
    "TrainingBatch",
    "TrainingBatchJAX",
    "TrainingExample",
    "benchmark_sustained_performance",
    "calibrated_loss",
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
    "generate_scm_for_difficulty",
    "get_marginal_parent_probabilities",
    "get_most_likely_parents",
    "kl_divergence_loss",
    "kl_divergence_loss_jax",
    "measure_compilation_speedup",
    "monitor_memory_usage",
    "optimized_progressive_learning",
    "prepare_static_args",
    "restore_static_args",
    "test_config",
    "uncertainty_weighted_loss",
    "uncertainty_weighted_loss_jax",
    "update_surrogate_jax",
    "validate_fallback_behavior",
]
