"""Does a step that cannot be compiled still do what it should?"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from acbo._errors import AcboWarning
from acbo.training._examples import create_test_batch, create_test_model, test_config
from acbo.training._losses import kl_divergence_loss_jax
from acbo.training._model import ParentSetModel
from acbo.training._step import SurrogateTrainStep, create_adaptive_train_step


@dataclass(frozen=True)
class FallbackReport:
    """What `validate_fallback_behavior` found: true where there is no problem.

    **Attributes:**

    - `problems`: what is wrong, one sentence each.
    - `reason`: why the steps could not be compiled, as they told.
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
    """Give an adaptive step what cannot be compiled, and look at what it does.

    First an optimizer, then a loss, then a model that decides by the values it sees. Each time the
    step has to say so, once, to go on, and to give the parameters and the loss that the step has
    with an equal part that can be compiled.

    `create_step` is called as `create_adaptive_train_step` is, with `model`, by default a small
    network. That takes a while: an uncompiled step is slow.
    """
    batch, key = create_test_batch(), jax.random.key(0)
    if model is None:
        model, _ = create_test_model()
    good = SurrogateTrainStep(model, optax.sgd(0.1), config=test_config)
    params, opt_state = good.init(key)
    expected, _, numbers = good(params, opt_state, batch, key)
    looking = _ModelThatLooks(model.config, model.max_parent_size, model)
    problems, reasons, differences = [], [], [0.0]
    for part, model_of_part, optimizer, options in (
        ("optimizer", model, optax.chain(_looks_at_values(), optax.sgd(0.1)), {}),
        ("loss", model, optax.sgd(0.1), {"loss_fn": _loss_that_looks}),
        ("model", looking, optax.sgd(0.1), {}),
    ):
        opt_state = optimizer.init(params)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                step = create_step(
                    model_of_part,
                    optimizer,
                    config=test_config,
                    use_jax_compilation=True,
                    **options,
                )
                found, _, metrics = step(params, opt_state, batch, key)
                step(params, opt_state, batch, key)
            except Exception as error:
                # Whatever it is, it belongs into the report.
                problems.append(f"{part}: it does not go on: {type(error).__name__}: {error}")
                continue
        told = [str(one.message) for one in caught if issubclass(one.category, AcboWarning)]
        reasons += told[:1]
        if len(told) != 1:
            problems.append(f"{part}: it says {len(told)} times that it falls back; expected once")
        differences.append(_apart(expected, found))
        if not differences[-1] <= tolerance:
            problems.append(f"{part}: parameters differ by {differences[-1]:.2g}")
        if set(metrics) != set(numbers):
            problems.append(f"{part}: its metrics are {sorted(metrics)}")
        elif not abs(metrics["total_loss"] - numbers["total_loss"]) <= tolerance:
            problems.append(
                f"{part}: its loss is {metrics['total_loss']}, not {numbers['total_loss']}"
            )
    return FallbackReport(tuple(problems), "; ".join(reasons), max(differences))


def _looks_at_values() -> optax.GradientTransformation:
    """Does nothing, and cannot be traced."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        if float(optax.tree.norm(updates)) < 0:
            raise AssertionError("a norm is not negative")
        return updates, state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def _loss_that_looks(logits: Array, probs: Array, sets: Any) -> Array:
    if float(logits.max()) > 1:
        raise AssertionError("log probabilities are not above 0")
    return kl_divergence_loss_jax(logits, probs, sets)


@dataclass(frozen=True)
class _ModelThatLooks(ParentSetModel):
    """A model that decides by what it has computed."""

    inner: ParentSetModel

    def logits(
        self, params: Any, x: Array, variables: Array, target: Array, sets: Array, real: Array
    ) -> Array:
        """See `ParentSetModel.logits`."""
        logits = self.inner.logits(params, x, variables, target, sets, real)
        return logits if float(logits.max()) <= 1 else jnp.zeros_like(logits)


def _apart(first: Any, second: Any) -> float:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
