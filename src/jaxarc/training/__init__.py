"""Training a policy on ARC tasks: proximal policy optimisation in one compiled program."""

from __future__ import annotations

from jaxarc.training._config import PPOConfig as PPOConfig
from jaxarc.training._network import ActorCritic as ActorCritic
from jaxarc.training._network import Decision as Decision
from jaxarc.training._objective import Experience as Experience
from jaxarc.training._objective import Losses as Losses
from jaxarc.training._objective import advantages as advantages
from jaxarc.training._objective import ppo_loss as ppo_loss
from jaxarc.training._tasks import environment_for as environment_for
from jaxarc.training._tasks import tiny_tasks as tiny_tasks
from jaxarc.training._train import Metrics as Metrics
from jaxarc.training._train import TrainState as TrainState
from jaxarc.training._train import TrainStep as TrainStep
from jaxarc.training._train import begin_training as begin_training
from jaxarc.training._train import train as train

__all__ = [
    "ActorCritic",
    "Decision",
    "Experience",
    "Losses",
    "Metrics",
    "PPOConfig",
    "TrainState",
    "TrainStep",
    "advantages",
    "begin_training",
    "environment_for",
    "ppo_loss",
    "tiny_tasks",
    "train",
]
