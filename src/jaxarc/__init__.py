"""ARC puzzles as a JAX reinforcement-learning environment."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxarc.data import JaxArcTask as JaxArcTask
    from jaxarc.data import TaskBuffer as TaskBuffer
    from jaxarc.data import TaskSet as TaskSet
    from jaxarc.data import create_mock_task as create_mock_task
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
    from jaxarc.utils.error_handling import JAXErrorHandler as JAXErrorHandler

__all__ = [
    "BboxAction",
    "Environment",
    "EnvironmentConfig",
    "JAXErrorHandler",
    "JaxArcConfig",
    "JaxArcTask",
    "MaskAction",
    "PointAction",
    "TaskBuffer",
    "TaskSet",
    "UnifiedActionConfig",
    "UnifiedDatasetConfig",
    "VisualizationConfig",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "create_memory_optimized_config",
    "create_mock_task",
    "create_test_config",
    "make",
]

_MODULES = ("data", "envs", "utils.error_handling")
_ROOMS = ("bitgrid", "data", "envs", "operations", "utils")


def __getattr__(name: str) -> Any:
    # `worldloom arc --help` does not wait for JAX: a name is fetched when first used.
    if name in _ROOMS:
        return importlib.import_module(f"jaxarc.{name}")
    for place in _MODULES if name in __all__ else ():
        module = importlib.import_module(f"jaxarc.{place}")
        if name in module.__all__:
            globals()[name] = value = getattr(module, name)
            return value
    raise AttributeError(f"module 'jaxarc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
