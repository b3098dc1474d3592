"""Seed 000, the performance guide of JaxARC: every block of it."""

from __future__ import annotations

import pytest
from seeds.harness import Defect, Seed

PRELUDE = """
import jax
import jax.numpy as jnp
from jaxarc import *
from jaxarc import data

config = JaxArcConfig()
task = create_mock_task()
parser = data.load("AGI1-train")
state, obs = arc_reset(jax.random.PRNGKey(42), config, task)
point_action = PointAction(operation=jnp.array(0), row=jnp.array(5), col=jnp.array(5))
bbox_action = BboxAction(
    operation=jnp.array(0), r1=jnp.array(3), c1=jnp.array(3), r2=jnp.array(7), c2=jnp.array(7)
)
mask_action = MaskAction(operation=jnp.array(0), selection=jnp.ones((30, 30), bool))
"""

SEED = Seed(
    "000",
    package="jaxarc",
    prelude=PRELUDE,
    smaller={
        9: [("optimized_config, task)", "optimized_config, task, batch_sizes=[1, 16])")],
        12: [("(optimized_config, task)", "(optimized_config, task, max_batch_size=2)")],
        13: [("envs_per_worker=32", "envs_per_worker=16")],
        14: [
            ("(optimized_config, task)", "(optimized_config, task, 8)"),
            ("min(512", "min(16"),
            ("num_episodes=20", "num_episodes=6"),
        ],
    },
    defects={
        19: Defect(
            "`jnp.where` takes arrays, not a whole state; `jnp.mean` takes an array, not a list",
            [
                (
                    "jnp.where(should_continue, new_state, state)",
                    "jax.tree.map(lambda a, b: jnp.where(should_continue, a, b), new_state, state)",
                ),
                (
                    "jnp.mean([r['episode_reward'] for r in results])",
                    "jnp.mean(jnp.array([r['episode_reward'] for r in results]))",
                ),
            ],
            TypeError,
            "ArcState",
        ),
    },
)


@pytest.mark.parametrize("number", SEED.numbers)
def test_the_block_runs(number: int):
    SEED.run(number)


@pytest.mark.parametrize("number", SEED.numbers)
def test_the_block_runs_on_our_helpers(number: int):
    SEED.run(number, ours=True)


@pytest.mark.parametrize("number", SEED.defects)
def test_the_defect_is_real(number: int):
    SEED.check_defect(number)


def test_what_the_blocks_computed():
    made = SEED.run(20)
    assert set(made["memory_analysis"]) == {"point", "bbox", "mask"}
    assert made["optimal_batch_size"] in made["batch_results"]
    assert len(made["dynamic_results"]) == 6
    assert len(made["hierarchical_results"]) == 10
