"""Seed 001, the guide to JAX in JaxARC: every block of it."""

from __future__ import annotations

import pytest
from seeds.harness import Defect, Seed

# The first block imports nearly all it needs itself: it is a quick start.
PRELUDE = """
import equinox as eqx
from jaxarc import create_mock_task, create_test_config
"""

SEED = Seed(
    "001",
    package="jaxarc",
    prelude=PRELUDE,
    smaller={4: [("batch_size = 32", "batch_size = 16")]},
    defects={
        2: Defect(
            "it shows how the two functions are made, and so hides the real ones for all that "
            "follows behind two of the same name that do nothing",
            [
                ("def arc_reset(key, config, task_data)", "def own_reset(key, config, task_data)"),
                ("def arc_step(state, action, config)", "def own_step(state, action, config)"),
                (
                    "# Non-arrays (config strings, ints) are static\n    ...",
                    "return arc_reset(key, config, task_data)",
                ),
                (
                    '"""Step environment with automatic JAX optimization."""\n    ...',
                    "return arc_step(state, action, config)",
                ),
            ],
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
    assert int(made["selection_mask"].sum()) == 25
    assert made["batch_masks"].shape == (16, 30, 30)
    made["validate_and_step"](made["state"], made["action"], made["config"])
    made["benchmark_performance"]()
