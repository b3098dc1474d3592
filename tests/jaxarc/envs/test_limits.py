"""Numbers of a configuration have ends; the parts of a random action are drawn apart."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxarc.envs import (
    ConfigError,
    EnvironmentConfig,
    JaxArcConfig,
    ObservationConfig,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
)
from jaxarc.envs._environment import random_action

RANGES = [
    (EnvironmentConfig, "max_episode_steps", 1, 65_535),
    (EnvironmentConfig, "max_attempts", 1, 15),
    (EnvironmentConfig, "debug_level", 0, 1),
    (UnifiedDatasetConfig, "max_grid_height", 1, 32),
    (UnifiedDatasetConfig, "max_grid_width", 1, 32),
    (ObservationConfig, "demos", 0, 10),
]


@pytest.mark.parametrize(("kind", "name", "low", "high"), RANGES)
def test_the_ends_of_a_range_are_taken_and_what_is_beyond_is_refused(kind, name, low, high):
    for value in (low, high):
        assert getattr(kind(**{name: value}), name) == value
    for value in (low - 1, high + 1):
        with pytest.raises(ConfigError, match=f"{name}={value}"):
            kind(**{name: value})


def test_the_last_operation_is_one_and_the_next_is_none():
    assert UnifiedActionConfig(allowed_operations=(41, 0)).allowed_operations == (0, 41)
    for value in (-1, 42):
        with pytest.raises(ConfigError, match="ids 0 to 41"):
            UnifiedActionConfig(allowed_operations=(0, value))


@pytest.mark.parametrize("kind", ["point", "bbox"])
def test_the_places_of_random_actions_are_drawn_apart(kind):
    config = JaxArcConfig(action=UnifiedActionConfig(selection_format=kind))
    action = random_action(config, 4000, jax.random.key(0))
    places = [np.asarray(leaf) for leaf in jax.tree.leaves(action)]
    together = np.corrcoef(np.stack(places).astype(float))
    np.testing.assert_allclose(together, np.eye(len(places)), atol=0.08)
