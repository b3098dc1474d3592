from __future__ import annotations

import jax
import pytest

from acbo.scm import Family, Samples
from acbo.surrogate import Surrogate, SurrogateConfig

SIZES = SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4)


@pytest.fixture(scope="session")
def small() -> Surrogate:
    """A small network with random weights."""
    return Surrogate(SIZES, key=jax.random.key(0))


@pytest.fixture(scope="session")
def table() -> Samples:
    """Forty samples of four variables, half of them with interventions."""
    draw = jax.jit(lambda key: Family().study(key, 4, 40, interventional=0.5).samples)
    return draw(jax.random.key(1))
