"""Issue 24, 4.1: what cannot be compiled runs, with the right gradients and numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from acbo.scm import Samples
from acbo.surrogate import SurrogateConfig
from acbo.surrogate._evidence import local_evidence
from acbo.training import (
    ParentSetModel,
    ParentSetPosterior,
    TrainingBatch,
    TrainingExample,
    TrainStepError,
    create_adaptive_train_step,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
    create_test_model,
    kl_divergence_loss_jax,
    optimized_progressive_learning,
    test_config,
    update_surrogate_jax,
    validate_fallback_behavior,
)

KEY = jax.random.key(0)


class Small(ParentSetModel):
    """Scores a set by what its members have in common with the target."""

    def __init__(self):
        super().__init__(SurrogateConfig(hidden=8, blocks=2), 2)

    def init(self, key, *others, **options):
        return {"weight": jax.random.normal(key, (2,)), "size": jnp.zeros(())}

    def score(self, params, x, target, sets):
        covariance = x[..., 0].T @ x[..., 0][:, target] / x.shape[0]
        members = sets.astype(jnp.float32)
        powers = jnp.stack([covariance, covariance**2])
        return params["weight"] @ (powers @ members.T) + params["size"] * members.sum(axis=1)

    def logits(self, params, x, variables, target, sets, real):
        score = self.score(params, x, target, sets)
        return jnp.where(real, jax.nn.log_softmax(jnp.where(real, score, -1e4)), -1e4)


class LooksAtScores(Small):
    """Decides by values: `if`, `float` and NumPy."""

    def score(self, params, x, target, sets):
        score = super().score(params, x, target, sets)
        if float(score.max()) > 1e6 or np.asarray(score).min() < -1e6:
            return jnp.zeros_like(score)
        if x[..., 0].sum() > 0:
            return 2.0 * score
        return 2.0 * score


class Doubled(Small):
    """The same without a look."""

    def score(self, params, x, target, sets):
        return 2.0 * super().score(params, x, target, sets)


class TakesScoresOut(Small):
    """Computes with values that left JAX: their gradient is lost."""

    def score(self, params, x, target, sets):
        score = super().score(params, x, target, sets)
        return score + jnp.asarray(3 * np.asarray(score))


def by_if(logits, probs, sets):
    kl = kl_divergence_loss_jax(logits, probs, sets)
    if kl > 0.05:
        return 2 * kl
    return kl


def by_float(logits, probs, sets):
    kl = kl_divergence_loss_jax(logits, probs, sets)
    return (2 if float(kl) > 0.05 else 1) * kl


def by_item(logits, probs, sets):
    kl = kl_divergence_loss_jax(logits, probs, sets)
    return (2 if kl.item() > 0.05 else 1) * kl


def all_in_numpy(logits, probs, sets):
    p, q = np.asarray(probs), np.asarray(logits)
    kl = float((np.where(p > 0, p * np.log(np.maximum(p, 1e-30)), 0.0) - p * q).sum())
    return np.float32((2 if kl > 0.05 else 1) * kl)


def as_it_should_be(logits, probs, sets):
    kl = kl_divergence_loss_jax(logits, probs, sets)
    return jnp.where(kl > 0.05, 2 * kl, kl)


def table(names: str, seed: int) -> TrainingExample:
    rng = np.random.default_rng(seed)
    values = np.zeros((8, len(names), 3), np.float32)
    values[..., 0] = rng.normal(size=(8, len(names)))
    values[:, 1, 2] = 1
    posterior = ParentSetPosterior("b", [set(), {"a"}], [0.3, 0.7])
    return TrainingExample(values, posterior, "b", list(names), 0.5)


def batch(names: str = "abc") -> TrainingBatch:
    return TrainingBatch([table(names, 0), table(names, 1), table(names, 2)])


def updated(step: Any, params: Any, problem: TrainingBatch) -> tuple[np.ndarray, dict[str, float]]:
    params, _, metrics = step(params, step.optimizer.init(params), problem, KEY)
    leaves = jax.tree.leaves(params)
    return np.concatenate([np.asarray(leaf).reshape(-1) for leaf in leaves]), metrics


@pytest.mark.parametrize("names", ["ab", "abcd"])
@pytest.mark.parametrize("loss", [by_if, by_float, by_item, all_in_numpy])
def test_a_loss_that_looks_runs_with_the_right_gradient(loss, names):
    model, problem = Small(), batch(names)
    params = model.init(KEY)
    right = create_jax_surrogate_train_step(model, optax.sgd(0.1), as_it_should_be)
    expected, told = updated(right, params, problem)
    adaptive = create_adaptive_train_step(model, optax.sgd(0.1), loss)
    with pytest.warns(match="runs uncompiled"):
        found, metrics = updated(adaptive, params, problem)
    # Without JAX's own gradient there is that by differences, in float32.
    close = {"atol": 1e-5 if loss is all_in_numpy else 2e-6}
    np.testing.assert_allclose(found, expected, **close)
    for name in metrics.keys() - {"step_time"}:
        assert metrics[name] == pytest.approx(told[name], abs=1e-4), name
    reference = create_surrogate_train_step(model, optax.sgd(0.1), loss)
    np.testing.assert_allclose(updated(reference, params, problem)[0], expected, **close)


def test_a_model_that_looks_runs_with_the_right_gradient():
    params = Small().init(KEY)
    right = create_jax_surrogate_train_step(Doubled(), optax.sgd(0.1), as_it_should_be)
    expected, _ = updated(right, params, batch())
    adaptive = create_adaptive_train_step(LooksAtScores(), optax.sgd(0.1), by_float)
    with pytest.warns(match="runs uncompiled"):
        found, _ = updated(adaptive, params, batch())
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_a_model_whose_gradient_is_lost_is_refused():
    params = Small().init(KEY)
    step = create_surrogate_train_step(TakesScoresOut(), optax.sgd(0.1))
    with pytest.raises(TrainStepError, match="computes with values that left JAX"):
        updated(step, params, batch())


def test_two_variables_have_no_pairs_of_causes_and_no_loop_over_them():
    """`zero-length scan is not supported in disable_jit() mode`, it said."""
    values = jax.random.normal(KEY, (12, 2))
    everywhere = jnp.ones(12, bool), jnp.ones(2, bool)
    samples = Samples(values, jnp.zeros((12, 2), bool), *everywhere)
    with jax.disable_jit():
        found = local_evidence(samples)
    np.testing.assert_allclose(found, jax.jit(local_evidence)(samples), atol=1e-4)


@pytest.mark.slow
def test_the_network_runs_uncompiled_on_two_variables():
    model, params = create_test_model()
    fast = create_jax_surrogate_train_step(model, optax.sgd(0.1), config=test_config)
    slow = create_surrogate_train_step(model, optax.sgd(0.1), config=test_config)
    expected, _ = updated(fast, params, batch("ab"))
    np.testing.assert_allclose(updated(slow, params, batch("ab"))[0], expected, atol=1e-4)


def test_the_validator_tries_a_loss_and_a_model_too():
    """A step that falls back for optimizers only was good before."""

    def for_optimizers_only(model, optimizer, **options):
        step = create_adaptive_train_step(model, optimizer, **options)
        step.gradient_by_example = None
        return step

    report = validate_fallback_behavior(for_optimizers_only, model=Small())
    assert {one.partition(":")[0] for one in report.problems} == {"loss", "model"}
    assert validate_fallback_behavior(model=Small())


def test_loops_of_a_step_that_looks():
    """On given data it goes on one by one; a loop that draws its data refuses in our words."""
    step = create_adaptive_train_step(Small(), optax.sgd(0.1), by_float, config=test_config)
    right = create_jax_surrogate_train_step(Small(), optax.sgd(0.1), as_it_should_be)
    params = Small().init(KEY)
    with pytest.warns(match="runs uncompiled"):
        found = update_surrogate_jax(step, batch(), params, epochs=3, key=KEY)
    expected = update_surrogate_jax(right, batch(), params, epochs=3, key=KEY)
    np.testing.assert_allclose(found["weight"], expected["weight"], atol=1e-5)
    with pytest.raises(TrainStepError, match="all steps are one compiled loop"):
        optimized_progressive_learning(
            None, test_config, step=step, difficulties=("easy",), key=KEY
        )
