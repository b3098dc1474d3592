from __future__ import annotations

import pytest
from surrogates import Correlations, random_surrogate

from acbo.surrogate import Surrogate


@pytest.fixture(scope="session")
def surrogate() -> Surrogate:
    return random_surrogate()


@pytest.fixture(scope="session")
def quick(surrogate) -> Surrogate:
    return Correlations(surrogate)
