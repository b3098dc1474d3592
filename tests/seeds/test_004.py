"""Seed 004, the performance guide of ACBO: every block of it."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from seeds.harness import Defect, Seed

# What the blocks use and never define. The small model compiles in a moment; the network itself
# is trained by the slow test at the end.
PRELUDE = """
import logging
import jax
import jax.numpy as jnp
import numpy as np
import optax
from acbo import *
from acbo.surrogate import SurrogateConfig
from acbo.training import ParentSetModel

logger = logging.getLogger("seed")
condition, true_branch, false_branch = True, lambda: 1.0, lambda: 2.0
x, y, jax_loss = jnp.float32(1), jnp.float32(2), jnp.float32(0.5)

class SmallModel(ParentSetModel):
    def init(self, key, *others, **options):
        return {"score": jnp.zeros(8)}

    def logits(self, params, x, variables, target, sets, real):
        score = params["score"][: sets.shape[-1]]
        return jax.nn.log_softmax(sets.astype(jnp.float32) @ score)

key = jax.random.key(0)
parent_sets = [[frozenset(), frozenset({"X0"})]] * 2
variable_orders = [["X0", "X1", "X2"]] * 2
target_variables = ["X1", "X1"]
test_data = jax.random.normal(key, (2, 8, 3, 3))
x0 = test_data[0]
batch = TrainingBatchJAX(
    test_data, [[0.2, 0.8]] * 2, [1.0, 1.0], parent_sets, variable_orders, target_variables
)
test_config = SurrogateTrainingConfig(model_hidden_dim=8, model_n_layers=2, max_epochs=2)
small = SmallModel(SurrogateConfig(hidden=8, blocks=2), 3)
jax_train_step = create_jax_surrogate_train_step(small, optax.sgd(0.1))
params, opt_state = jax_train_step.init(key)
batch_logits, batch_expert_probs = jnp.zeros((2, 2)), batch.expert_probs
static_parent_sets, test_logits, test_probs = parent_sets[0], jnp.zeros(2), jnp.ones(2) / 2
device_params = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), params)
device_batches = jax.tree.map(lambda leaf: leaf[:, None], jax_train_step.problem(batch, key)[0])
"""

NAMES = ("parent_sets", "variable_orders", "target_variables")

SEED = Seed(
    "004",
    package="acbo",
    prelude=PRELUDE,
    defects={
        5: Defect(
            "`def f(...)` is no Python",
            [
                (
                    "def compiled_training_step(...):\n",
                    "def compiled_training_step(new_params, new_opt_state):\n"
                    "    loss, grad_norm, lr = jnp.float32(2), jnp.float32(1), 1e-3\n",
                ),
                ("def wrapper_function(...):", "def wrapper_function(*given):"),
                ("= compiled_training_step(...)", "= compiled_training_step(*given)"),
            ],
            SyntaxError,
        ),
        8: Defect(
            "`create_test_model`, `create_test_batch` and `regular_step` do not exist, a step "
            "needs more than two arguments, and a tuple is not larger than 100",
            [
                ("model, params = create_test_model()", "model = measured_model"),
                (
                    "batch = create_test_batch()",
                    "args = (*measured_start, batch, key)",
                ),
                ("speedup = measure", "speedup, *results = measure"),
                ("(jax_step, params, batch)", "(jax_step, *args)"),
                (
                    "# Test sustained performance",
                    "regular_step = create_surrogate_train_step(\n"
                    "        model, optax.adam(1e-3), kl_divergence_loss, test_config\n    )",
                ),
                ("regular_step, args)", "regular_step, args, n_runs=3)"),
            ],
        ),
        10: Defect(
            "`f(static_args...)` is no Python",
            [
                (
                    "model.apply(params, data, static_args...)",
                    "small.apply(params, key, data, variable_orders[0], 'X1', False)",
                ),
                (
                    "compiled_forward(test_params, test_data)",
                    "compiled_forward(params, test_data[0])",
                ),
            ],
            SyntaxError,
        ),
        12: Defect(
            "called, it reads `params`, `opt_state` and `key` before anything is in them, and "
            "`jax_batch_args` is nowhere made",
            [
                (
                    "# Training loop with performance monitoring",
                    "key = jax.random.key(0)\n    params, opt_state = jax_train_step.init(key)",
                ),
                ("# Fast training with JAX", "jax_batch_args = jax_batch.args"),
                ("logger.info(", "seconds.append(difficulty_time); logger.info("),
                ("def optimized_progressive_learning(", "seconds = []\ndef by_hand("),
                ("model=create_parent_set_model()", "model=small"),
                ("['easy', 'medium', 'hard']", "['easy']"),
            ],
        ),
        15: Defect(
            "a step takes four or nine arguments, and gives numbers that a program cannot trace; "
            "its computation alone, `update`, can be mapped over devices",
            [
                (
                    "jax.pmap(jax_train_step, axis_name='device')",
                    "jax.pmap(lambda p, b: jax_train_step.update(p, opt_state, b, key), 'device')",
                )
            ],
            TypeError,
            "2 arguments; call step",
        ),
        16: Defect(
            "`jax.experimental.mixed_precision` does not exist",
            [
                (
                    "from jax.experimental import mixed_precision\n",
                    "",
                ),
                (
                    "mixed_precision.create_policy(compute_dtype=jnp.float16)",
                    "create_parent_set_model({'compute_dtype': 'bfloat16'})",
                ),
            ],
            ImportError,
            "mixed_precision",
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


@pytest.mark.parametrize("ours", [False, True])
def test_what_the_blocks_computed(ours: bool):
    made = SEED.run(16, ours=ours)
    hashable = made["prepare_static_args"](*(made[name] for name in NAMES))
    assert hashable[0] == made["parent_sets_tuple"] == (((), ("X0",)),) * 2
    assert made["restore_static_args"](hashable) == tuple(made[name] for name in NAMES)
    assert made["wrapper_function"]({}, {})[2]["total_loss"] == 2.0
    made["test_loss_function_compilation"]()
    made["test_model_forward_compilation"]()
    assert made["batch_losses"].shape == (2,)
    assert jnp.isfinite(made["batch_losses"]).all()
    assert made["multi_device_results"][2].shape == (2, 7)
    result, *sizes = made["monitor_memory_usage"](lambda: 1)
    assert result == 1
    assert len(sizes) == 2


def test_progressive_learning_by_hand_runs():
    made = SEED.run(16)
    made["by_hand"](None, made["test_config"])
    assert len(made["seconds"]) == 1


@pytest.mark.slow
def test_the_speed_that_the_seed_asks_for():
    made = SEED.run(16, ours=True)
    model = made["create_parent_set_model"]({"hidden_dim": 16, "layers": 2})
    step = made["create_jax_surrogate_train_step"](model, made["optax"].adam(1e-3))
    made["measured_model"], made["measured_start"] = model, step.init(made["key"])
    made["test_performance_regression"]()


@pytest.mark.slow
def test_the_fallback_of_the_network():
    made = SEED.run(16, ours=True)
    assert made["validate_fallback_behavior"]()
