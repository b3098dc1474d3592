"""Surrogates for tests: a small one with random weights, and one that takes nothing to compile."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from acbo.scm import Samples
from acbo.surrogate import Prediction, Surrogate, SurrogateConfig

SIZES = SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4)


def random_surrogate() -> Surrogate:
    """A small network, drawn by NumPy: nothing to compile."""
    rng = np.random.default_rng(0)
    shapes = eqx.filter_eval_shape(Surrogate, SIZES, key=jax.random.key(0))
    return jax.tree.map(lambda s: jnp.asarray(0.4 * rng.normal(size=s.shape), s.dtype), shapes)


class Correlations(Surrogate):
    """Says a little more than correlations do. The real network takes seconds to compile."""

    def __init__(self, base: Surrogate):
        for part in dataclasses.fields(Surrogate):
            setattr(self, part.name, getattr(base, part.name))

    def __call__(self, samples: Samples) -> Prediction:
        x = samples.values
        n, d = x.shape
        skew = (x**2).T @ x / n
        logits = jnp.where(jnp.eye(d, dtype=bool), -30.0, 6 * jnp.abs(x.T @ x / n) - 2 + skew)
        return Prediction(logits, logits, jnp.zeros((d, d, 8)), jnp.zeros((d, d, 8)))

    def many(self, samples: Samples) -> Prediction:
        return jax.vmap(self)(samples)
