"""ARC puzzles as a JAX reinforcement-learning environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worldloom._exports import lazy_exports

if TYPE_CHECKING:
    from jaxarc.data import JaxArcTask as JaxArcTask
    from jaxarc.data import LazyTaskLoader as LazyTaskLoader
    from jaxarc.data import MemoryMappedTaskLoader as MemoryMappedTaskLoader
    from jaxarc.data import TaskBuffer as TaskBuffer
    from jaxarc.data import TaskSet as TaskSet
    from jaxarc.data import create_mock_task as create_mock_task
    from jaxarc.data import extract_task_id_from_index as extract_task_id_from_index
    from jaxarc.envs import BboxAction as BboxAction
    from jaxarc.envs import Environment as Environment
    from jaxarc.envs import EnvironmentConfig as EnvironmentConfig
    from jaxarc.envs import JaxArcConfig as JaxArcConfig
    from jaxarc.envs import MaskAction as MaskAction
    from jaxarc.envs import PointAction as PointAction
    from jaxarc.envs import UnifiedActionConfig as UnifiedActionConfig
    from jaxarc.envs import UnifiedDatasetConfig as UnifiedDatasetConfig
    from jaxarc.envs import VisualizationConfig as VisualizationConfig
    from jaxarc.envs import arc_reset as arc_reset
    from jaxarc.envs import arc_step as arc_step
    from jaxarc.envs import batch_reset as batch_reset
    from jaxarc.envs import batch_step as batch_step
    from jaxarc.envs import create_memory_optimized_config as create_memory_optimized_config
    from jaxarc.envs import create_test_config as create_test_config
    from jaxarc.envs import make as make
    from jaxarc.utils.batching import DynamicBatchProcessor as DynamicBatchProcessor
    from jaxarc.utils.batching import find_optimal_batch_size as find_optimal_batch_size
    from jaxarc.utils.batching import hierarchical_batch_processing as hierarchical_batch_processing
    from jaxarc.utils.compilation import debug_jit_compilation as debug_jit_compilation
    from jaxarc.utils.compilation import profile_jit_compilation as profile_jit_compilation
    from jaxarc.utils.compilation import verify_config_hashability as verify_config_hashability
    from jaxarc.utils.compilation import warm_up_functions as warm_up_functions
    from jaxarc.utils.error_handling import JAXErrorHandler as JAXErrorHandler
    from jaxarc.utils.memory import StateMemoryPool as StateMemoryPool
    from jaxarc.utils.memory import analyze_memory_usage_by_format as analyze_memory_usage_by_format
    from jaxarc.utils.memory import detect_memory_leaks as detect_memory_leaks
    from jaxarc.utils.memory import get_fields_per_action as get_fields_per_action
    from jaxarc.utils.memory import profile_memory_usage as profile_memory_usage
    from jaxarc.utils.performance import PerformanceMonitor as PerformanceMonitor
    from jaxarc.utils.performance import benchmark_performance as benchmark_performance
    from jaxarc.utils.performance import (
        create_optimized_episode_runner as create_optimized_episode_runner,
    )
    from jaxarc.utils.performance import profile_with_jax_profiler as profile_with_jax_profiler
    from jaxarc.utils.serialization import load_state_efficiently as load_state_efficiently
    from jaxarc.utils.serialization import save_state_efficiently as save_state_efficiently

__all__ = [
    "BboxAction",
    "DynamicBatchProcessor",
    "Environment",
    "EnvironmentConfig",
    "JAXErrorHandler",
    "JaxArcConfig",
    "JaxArcTask",
    "LazyTaskLoader",
    "MaskAction",
    "MemoryMappedTaskLoader",
    "PerformanceMonitor",
    "PointAction",
    "StateMemoryPool",
    "TaskBuffer",
    "TaskSet",
    "UnifiedActionConfig",
    "UnifiedDatasetConfig",
    "VisualizationConfig",
    "analyze_memory_usage_by_format",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "benchmark_performance",
    "create_memory_optimized_config",
    "create_mock_task",
    "create_optimized_episode_runner",
    "create_test_config",
    "debug_jit_compilation",
    "detect_memory_leaks",
    "extract_task_id_from_index",
    "find_optimal_batch_size",
    "get_fields_per_action",
    "hierarchical_batch_processing",
    "load_state_efficiently",
    "make",
    "profile_jit_compilation",
    "profile_memory_usage",
    "profile_with_jax_profiler",
    "save_state_efficiently",
    "verify_config_hashability",
    "warm_up_functions",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    __all__,
    found_in=(
        "data",
        "envs",
        "utils.error_handling",
        "utils.serialization",
        "utils.compilation",
        "utils.memory",
        "utils.batching",
        "utils.performance",
    ),
    rooms=(
        "bitgrid",
        "data",
        "envs",
        "operations",
        "training",
        "utils",
    ),
)
