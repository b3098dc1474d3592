"""A small environment to watch, and how to compare what it leaves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import jaxarc
from jaxarc.envs import (
    EnvironmentConfig,
    JaxArcConfig,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
)

WORLDS, LENGTH = 128, 50  # enough for two devices, and for episodes to end by time
KEY = 7


def environment(selection_format: str = "point", **options) -> jaxarc.Environment:
    setting = EnvironmentConfig(max_episode_steps=20, record_history=False, **options)
    return jaxarc.make(
        "AGI1-train",
        subset="up-to-10x10",
        config=JaxArcConfig(
            environment=setting,
            dataset=UnifiedDatasetConfig(max_grid_height=10, max_grid_width=10),
            action=UnifiedActionConfig(selection_format=selection_format),
        ),
    )


def random_policy(env: jaxarc.Environment, worlds: int = WORLDS):
    def policy(params, observation, key):
        return env.random_action(key, worlds=worlds)

    return policy


def bits(tree) -> list[bytes]:
    """Every array of a pytree, keys too, to the last bit."""
    leaves = [
        jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        for leaf in jax.tree.leaves(tree)
    ]
    return [np.asarray(leaf).tobytes() for leaf in leaves]
