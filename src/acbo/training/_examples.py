"""A small model, a batch and a configuration to try a training step on."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from acbo.training._batch import (
    TrainingBatch,
    TrainingBatchJAX,
    TrainingExample,
    convert_to_jax_batch,
)
from acbo.training._config import SurrogateTrainingConfig
from acbo.training._model import ParentSetModel, create_parent_set_model
from acbo.training._posterior import ParentSetPosterior

test_config = SurrogateTrainingConfig(
    model_hidden_dim=8, model_n_layers=2, model_n_heads=2, batch_size=2, max_epochs=2
)
"""Sizes that compile in seconds."""


def create_test_model() -> tuple[ParentSetModel, Any]:
    """The network in the sizes of `test_config`, and parameters: always the same."""
    model = create_parent_set_model(test_config.model_kwargs, test_config.max_parent_size)
    return model, model.init(jax.random.key(0))


def create_test_batch() -> TrainingBatchJAX:
    """Two tables of three variables with an expert's answer for each: always the same.

    ```python
    import jax
    from acbo.training import (
        create_jax_surrogate_train_step, create_test_batch, create_test_model, test_config
    )

    model, params = create_test_model()
    step = create_jax_surrogate_train_step(model, config=test_config)
    opt_state = step.optimizer.init(params)
    *_, metrics = step(params, opt_state, create_test_batch(), jax.random.key(1))
    assert metrics["total_loss"] >= 0
    ```
    """
    rng = np.random.default_rng(0)
    examples = []
    for target in ("X0", "X1"):
        table = np.zeros((8, 3, 3), np.float32)
        table[..., 0] = rng.normal(size=(8, 3))
        table[:, int(target[1]), 2] = 1
        posterior = ParentSetPosterior(target, [set(), {"X2"}], [0.3, 0.7])
        examples.append(TrainingExample(table, posterior, target, ["X0", "X1", "X2"]))
    return convert_to_jax_batch(TrainingBatch(examples))
