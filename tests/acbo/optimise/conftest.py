from __future__ import annotations

import jax
import pytest

from acbo.optimise import Problem, ProblemPrior
from acbo.scm import Family

PRIOR = ProblemPrior(family=Family(edges_per_variable=(1.5, 1.5)))


@pytest.fixture(scope="session")
def problem() -> Problem:
    """A linear problem of five variables, padded to six."""
    return jax.jit(lambda key: PRIOR.problem(key, 6, size=5))(jax.random.key(3))
