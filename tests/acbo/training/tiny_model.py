"""A model that compiles in a moment, and problems to train it on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from acbo.surrogate import SurrogateConfig
from acbo.training import ParentSetModel, ParentSetPosterior, TrainingBatch, TrainingExample


class TinyModel(ParentSetModel):
    """Scores a set by the covariances of its members with the target, and by its size."""

    def __init__(self):
        super().__init__(SurrogateConfig(hidden=8, blocks=2), 2)

    def init(self, key, *others, **options):
        return {"weight": jax.random.normal(key, (3,)), "size": jnp.zeros(())}

    def logits(self, params, x, variables, target, sets, real):
        values = x[..., 0]
        covariance = values.T @ values[:, target] / values.shape[0]
        members = sets.astype(jnp.float32)
        powers = jnp.stack([covariance, jnp.abs(covariance), covariance**2])
        score = params["weight"] @ (powers @ members.T) + params["size"] * members.sum(axis=1)
        return jnp.where(real, jax.nn.log_softmax(jnp.where(real, score, -1e4)), -1e4)


def example(target="X1", names=("X0", "X1", "X2"), rows=8, seed=0):
    """A table of noise, and an expert who knows two sets."""
    rng = np.random.default_rng(seed)
    table = np.zeros((rows, len(names), 3), np.float32)
    table[..., 0] = rng.normal(size=(rows, len(names)))
    table[:, names.index(target), 2] = 1
    other = next(name for name in names if name != target)
    posterior = ParentSetPosterior(target, [set(), {other}], [0.3, 0.7])
    return TrainingExample(table, posterior, target, list(names), 0.5)


def batch(**options):
    return TrainingBatch([example(**options), example(seed=1, **options)])
