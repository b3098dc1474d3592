from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate import Surrogate, SurrogateConfig

SIZES = SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4)


@pytest.fixture(scope="session")
def surrogate() -> Surrogate:
    """A small network with random weights, drawn by NumPy: nothing to compile."""
    rng = np.random.default_rng(0)
    shapes = eqx.filter_eval_shape(Surrogate, SIZES, key=jax.random.key(0))
    return jax.tree.map(lambda s: jnp.asarray(0.4 * rng.normal(size=s.shape), s.dtype), shapes)
