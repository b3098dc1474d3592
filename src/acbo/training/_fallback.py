"""Does a step that cannot be compiled still do what it should?"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import optax

from acbo._errors import AcboWarning
from acbo.training._batch import TrainingBatch, TrainingExample
from acbo.training._config import SurrogateTrainingConfig
from acbo.training._model import ParentSetModel
from acbo.training._posterior import ParentSetPosterior
from acbo.training._step import SurrogateTrainStep, create_adaptive_train_step


@dataclass(frozen=True)
class FallbackReport:
    """What `validate_fallback_behavior` found: true where there is no problem.

    **Attributes:**

    - `problems`: what is wrong, one sentence each.
    - `reason`: why the step could not be compiled, as it told.
    - `difference`: the largest difference between any two parameters that should be equal.
    """

    problems: tuple[str, ...]
    reason: str
    difference: float

    def __bool__(self) -> bool:
        return not self.problems


def validate_fallback_behavior(
    create_step: Callable[..., Any] = create_adaptive_train_step,
    *,
    model: ParentSetModel | None = None,
    tolerance: float = 1e-4,
) -> FallbackReport:
    """Give an adaptive step an optimizer that cannot be compiled, and look at what it does.

    It has to say so, once, to go on, and to give the parameters and the loss that the step has
    with an equal optimizer that can be compiled.

    `create_step` is called as `create_adaptive_train_step` is, with `model`, by default a small
    network. That takes a while: an uncompiled step is slow.
    """
    config = SurrogateTrainingConfig(model_hidden_dim=8, model_n_layers=2, model_n_heads=2)
    batch, key = _batch(), jax.random.key(0)
    good = SurrogateTrainStep(model, optax.sgd(0.1), config=config)
    params, opt_state = good.init(key)
    expected, _, numbers = good(params, opt_state, batch, key)

    broken = optax.chain(_looks_at_values(), optax.sgd(0.1))
    step = create_step(model, broken, config=config, use_jax_compilation=True)
    opt_state = broken.init(params)
    problems = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found, _, metrics = step(params, opt_state, batch, key)
            step(params, opt_state, batch, key)
        except Exception as error:
            # Whatever it is, it belongs into the report.
            return FallbackReport((f"it does not go on: {type(error).__name__}: {error}",), "", 0.0)
    told = [str(one.message) for one in caught if issubclass(one.category, AcboWarning)]
    if len(told) != 1:
        problems.append(f"it says {len(told)} times that it falls back; expected once")
    difference = _apart(expected, found)
    if not difference <= tolerance:
        problems.append(f"parameters differ by {difference:.2g}")
    if set(metrics) != set(numbers):
        problems.append(f"its metrics are {sorted(metrics)}")
    elif not abs(metrics["total_loss"] - numbers["total_loss"]) <= tolerance:
        problems.append(f"its loss is {metrics['total_loss']}, not {numbers['total_loss']}")
    return FallbackReport(tuple(problems), told[0] if told else "", difference)


def _batch() -> TrainingBatch:
    """Two tables of three variables."""
    rng = np.random.default_rng(0)
    examples = []
    for target in ("X0", "X1"):
        table = np.zeros((8, 3, 3), np.float32)
        table[..., 0] = rng.normal(size=(8, 3))
        table[:, int(target[1]), 2] = 1
        posterior = ParentSetPosterior(target, [set(), {"X2"}], [0.3, 0.7])
        examples.append(TrainingExample(table, posterior, target, ["X0", "X1", "X2"]))
    return TrainingBatch(examples)


def _looks_at_values() -> optax.GradientTransformation:
    """Does nothing, and cannot be traced."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        if float(optax.tree.norm(updates)) < 0:
            raise AssertionError("a norm is not negative")
        return updates, state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def _apart(first: Any, second: Any) -> float:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
