"""ARC puzzles as a JAX reinforcement-learning environment."""

from __future__ import annotations

from jaxarc.data import JaxArcTask as JaxArcTask
from jaxarc.data import TaskBuffer as TaskBuffer
from jaxarc.data import TaskSet as TaskSet
from jaxarc.data import create_mock_task as create_mock_task
from jaxarc.envs import Environment as Environment
from jaxarc.envs import JaxArcConfig as JaxArcConfig
from jaxarc.envs import create_memory_optimized_config as create_memory_optimized_config
from jaxarc.envs import create_test_config as create_test_config
from jaxarc.envs import make as make

__all__ = [
    "Environment",
    "JaxArcConfig",
    "JaxArcTask",
    "TaskBuffer",
    "TaskSet",
    "create_memory_optimized_config",
    "create_mock_task",
    "create_test_config",
    "make",
]
