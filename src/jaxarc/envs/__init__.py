"""The ARC environment: configuration, actions, state, reset and step."""

from __future__ import annotations

from jaxarc.envs._config import EnvironmentConfig as EnvironmentConfig
from jaxarc.envs._config import JaxArcConfig as JaxArcConfig
from jaxarc.envs._config import ObservationConfig as ObservationConfig
from jaxarc.envs._config import UnifiedActionConfig as UnifiedActionConfig
from jaxarc.envs._config import UnifiedDatasetConfig as UnifiedDatasetConfig
from jaxarc.envs._config import VisualizationConfig as VisualizationConfig
from jaxarc.envs._config import create_memory_optimized_config as create_memory_optimized_config
from jaxarc.envs._config import create_test_config as create_test_config
from jaxarc.envs._environment import Environment as Environment
from jaxarc.envs._environment import Rollout as Rollout
from jaxarc.envs._environment import make as make
from jaxarc.envs._observation import ArcObservation as ArcObservation
from jaxarc.envs._options import ConfigError as ConfigError
from jaxarc.envs._reward import Reward as Reward
from jaxarc.envs._reward import SimilarityReward as SimilarityReward
from jaxarc.envs._reward import Transition as Transition
from jaxarc.envs._state import ArcState as ArcState
from jaxarc.envs.functional import StepInfo as StepInfo
from jaxarc.envs.functional import arc_reset as arc_reset
from jaxarc.envs.functional import arc_step as arc_step
from jaxarc.envs.functional import batch_reset as batch_reset
from jaxarc.envs.functional import batch_step as batch_step
from jaxarc.envs.structured_actions import ActionError as ActionError
from jaxarc.envs.structured_actions import BboxAction as BboxAction
from jaxarc.envs.structured_actions import MaskAction as MaskAction
from jaxarc.envs.structured_actions import PointAction as PointAction
from worldloom import mesh as _mesh

_mesh.use_every_core()  # rollouts spread over them; too late once anything is computed

__all__ = [
    "ActionError",
    "ArcObservation",
    "ArcState",
    "BboxAction",
    "ConfigError",
    "Environment",
    "EnvironmentConfig",
    "JaxArcConfig",
    "MaskAction",
    "ObservationConfig",
    "PointAction",
    "Reward",
    "Rollout",
    "SimilarityReward",
    "StepInfo",
    "Transition",
    "UnifiedActionConfig",
    "UnifiedDatasetConfig",
    "VisualizationConfig",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
    "create_memory_optimized_config",
    "create_test_config",
    "make",
]
