"""The surrogate: predicts causal graphs from samples."""

from __future__ import annotations

from acbo.surrogate._calibrate import best_temperature as best_temperature
from acbo.surrogate._calibrate import calibrated as calibrated
from acbo.surrogate._curriculum import Curriculum as Curriculum
from acbo.surrogate._curriculum import Lesson as Lesson
from acbo.surrogate._evidence import local_evidence as local_evidence
from acbo.surrogate._loss import Metrics as Metrics
from acbo.surrogate._loss import acyclicity_penalty as acyclicity_penalty
from acbo.surrogate._loss import edge_loss as edge_loss
from acbo.surrogate._loss import parent_set_loss as parent_set_loss
from acbo.surrogate._network import Prediction as Prediction
from acbo.surrogate._network import Surrogate as Surrogate
from acbo.surrogate._network import SurrogateConfig as SurrogateConfig
from acbo.surrogate._parent_sets import candidate_sets as candidate_sets
from acbo.surrogate._parent_sets import parent_set_logits as parent_set_logits
from acbo.surrogate._statistics import pair_statistics as pair_statistics
from acbo.surrogate._train import TrainingConfig as TrainingConfig
from acbo.surrogate._train import TrainState as TrainState
from acbo.surrogate._train import TrainStep as TrainStep
from acbo.surrogate._train import begin_training as begin_training
from acbo.surrogate._train import train_surrogate as train_surrogate

__all__ = [
    "Curriculum",
    "Lesson",
    "Metrics",
    "Prediction",
    "Surrogate",
    "SurrogateConfig",
    "TrainState",
    "TrainStep",
    "TrainingConfig",
    "acyclicity_penalty",
    "begin_training",
    "best_temperature",
    "calibrated",
    "candidate_sets",
    "edge_loss",
    "local_evidence",
    "pair_statistics",
    "parent_set_logits",
    "parent_set_loss",
    "train_surrogate",
]
