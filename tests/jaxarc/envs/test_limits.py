"""Every number of a configuration: the ends of its range are taken, what is beyond is refused."""

from __future__ import annotations

import pytest

from jaxarc.envs import (
    ConfigError,
    EnvironmentConfig,
    ObservationConfig,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
)

RANGES = [
    (EnvironmentConfig, "max_episode_steps", 1, 65_535),
    (EnvironmentConfig, "max_attempts", 1, 255),
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
