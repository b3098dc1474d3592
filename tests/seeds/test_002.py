"""Seed 002, the guide to callbacks and memory of JaxARC's visualisation: every block of it."""

from __future__ import annotations

import numpy as np
import pytest
from seeds.harness import Defect, Seed

# The seed imports neither of these, and calls `log_grid_to_console` on a grid of the reader's.
PRELUDE = """
from pathlib import Path
import jax
import jax.numpy as jnp
import numpy as np
grid_data = jnp.array([[1, 2, 0], [3, 4, 1], [0, 2, 3]])
"""

SEED = Seed(
    "002",
    package="jaxarc",
    prelude=PRELUDE,
    defects={
        4: Defect(
            "JAX has no `jnp.random`",
            [("jnp.random.rand(1000, 1000)", "np.random.default_rng(0).random((1000, 1000))")],
            AttributeError,
            "random",
        ),
        5: Defect(
            "JAX has no `jnp.random`",
            [("jnp.random.randint(0,", "np.random.default_rng(0).integers(0,")],
            AttributeError,
            "random",
        ),
        7: Defect(
            "the loader returns a name that nothing defines, and the file is not there",
            [
                ("# Load and process data", "processed_data = path.read_bytes()"),
                (
                    "# Create lazy loader with automatic cleanup",
                    'Path("data").mkdir(); Path("data/large_dataset.pkl").write_bytes(b"grids")',
                ),
            ],
            NameError,
            "processed_data",
        ),
    },
)


@pytest.mark.parametrize("number", SEED.numbers)
def test_the_block_runs(number: int):
    SEED.run(number)


@pytest.mark.parametrize("number", SEED.defects)
def test_the_defect_is_real(number: int):
    SEED.check_defect(number)


def test_what_the_blocks_computed():
    made = SEED.run(len(SEED.numbers))
    assert made["result"].tolist() == [[2, 3, 0], [4, 5, 2], [0, 3, 4]]
    reward, similarity, success = made["simulate_episode"](3, 10.0, 2.0)
    assert float(reward) == 20.0
    assert float(similarity) == pytest.approx(np.tanh(2.0))
    assert bool(success)
    assert float(made["training_step"](1.0)) == 2.0
    assert made["data"] == b"grids"
    grids = made["jax_data"]["episode_grids"]
    assert len(grids) == 100
    assert made["jax_data"]["metadata"] == {"episode_id": "test_001", "total_steps": 100}
    assert made["total_savings"] == 65
    assert made["optimized_data"].dtype == np.float32
    assert "freed_mb" in made["cleanup_stats"]


def test_the_callbacks_of_the_blocks_print(capfd: pytest.CaptureFixture[str]):
    import jax

    made = SEED.run(len(SEED.numbers))
    capfd.readouterr()
    made["my_function"](made["grid_data"]).block_until_ready()
    jax.effects_barrier()
    assert "Debug Grid\n1 2 0" in capfd.readouterr().out
