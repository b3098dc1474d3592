"""One small environment, and one recording of it, for all tests here: compiling takes seconds."""

from __future__ import annotations

import jax
import pytest
from visualization.watching import KEY, LENGTH, WORLDS, environment, random_policy

from jaxarc.utils import visualization as viz


@pytest.fixture(scope="session")
def env():
    return environment()


@pytest.fixture(scope="session")
def policy(env):
    return random_policy(env)


@pytest.fixture(scope="session")
def watched(env, policy):
    """State, rollout and recording."""
    key = jax.random.key(KEY)
    return viz.watch_rollout(env, policy, None, key, LENGTH, worlds=WORLDS, observations=True)


@pytest.fixture(scope="session")
def recording(watched):
    return watched[2]
