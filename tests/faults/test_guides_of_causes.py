"""Issue 24, 4.1: what the guide of ACBO shows works as it is written there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acbo
import acbo.policy._guide as guide
from acbo.policy import GRPOConfig, grpo_with_jax_surrogate
from acbo.surrogate import SurrogateConfig
from acbo.training import (
    ParentSetModel,
    SurrogateTrainingConfig,
    create_parent_set_model,
    create_surrogate_train_step,
    measure_compilation_speedup,
)

KEY = jax.random.key(0)
SCHEDULE = optax.linear_schedule(0.4, 0.0, 4)
FALLING = [0.4, 0.3, 0.2, 0.1]


class One(ParentSetModel):
    """One number as parameters."""

    def __init__(self):
        super().__init__(SurrogateConfig(hidden=8, blocks=2), 2)

    def init(self, key, *others, **options):
        return jnp.ones(())

    def logits(self, params, x, variables, target, sets, real):
        return jax.nn.log_softmax(params * sets.sum(axis=1).astype(jnp.float32))


@pytest.mark.parametrize(
    ("optimizer", "rates"),
    [
        (optax.sgd(0.25), [0.25] * 4),
        (optax.adam(0.25), [0.25] * 4),
        (optax.sgd(SCHEDULE), FALLING),
        (optax.adamw(SCHEDULE), FALLING),
        (optax.lion(SCHEDULE), FALLING),
        (optax.chain(optax.clip(1.0), optax.rmsprop(SCHEDULE)), FALLING),
        (optax.named_chain(("a", optax.clip(1.0)), ("b", optax.adam(SCHEDULE))), FALLING),
        (optax.inject_hyperparams(optax.adam)(learning_rate=SCHEDULE), FALLING),
        (
            optax.chain(
                optax.clip_by_global_norm(1.0),
                optax.inject_hyperparams(optax.adamw)(learning_rate=SCHEDULE),
            ),
            FALLING,
        ),
        (
            optax.chain(
                optax.scale_by_adam(), optax.scale_by_schedule(SCHEDULE), optax.scale(-1.0)
            ),
            FALLING,
        ),
        (optax.apply_if_finite(optax.adam(SCHEDULE), 3), FALLING),
        (optax.MultiSteps(optax.adam(SCHEDULE), 2).gradient_transformation(), [0.4, 0.4, 0.3, 0.3]),
        (SurrogateTrainingConfig(learning_rate=0.02).optimizer(), [0.02] * 4),
    ],
)
def test_the_learning_rate_is_that_of_the_optimizer(optimizer, rates):
    step = create_surrogate_train_step(One(), optimizer)
    params, state = step.init(KEY)
    problem, _ = step.problem(acbo.create_test_batch(), KEY)
    update = jax.jit(step.update)
    told = []
    for _ in rates:
        params, state, numbers = update(params, state, problem, KEY)
        told.append(float(numbers[3]))
    np.testing.assert_allclose(told, rates, rtol=1e-5)


def test_an_optimizer_that_does_not_tell_has_no_learning_rate():
    own = optax.GradientTransformation(
        lambda params: (), lambda updates, state, params=None: (-0.1 * updates, state)
    )
    step = create_surrogate_train_step(One(), own, config=SurrogateTrainingConfig())
    params, state = step.init(KEY)
    assert np.isnan(step(params, state, acbo.create_test_batch(), KEY)[2]["learning_rate"])


def test_the_speedup_is_the_tuple_of_the_guide():
    def chain(x):
        for _ in range(20):
            x = jnp.sin(x)
        return x

    found = measure_compilation_speedup(jax.jit(chain), jnp.ones(10), rounds=2)
    assert found[0] == float(found)
    assert len(found) == 3
    np.testing.assert_allclose(found[1], found[2], rtol=1e-6)
    speedup, *results = found
    assert speedup == found[0]
    assert len(found[1:]) == len(results) == 2


def test_the_guide_measures_a_step_by_parameters_and_batch():
    batch = acbo.create_test_batch()
    step = acbo.create_jax_surrogate_train_step(One(), optax.sgd(0.1), config=acbo.test_config)
    assert measure_compilation_speedup(step, jnp.ones(()), batch, rounds=1) > 0


def test_grpo_teaches_its_surrogate_what_its_configuration_says(monkeypatch):
    seen = {}

    class Stop(Exception):
        pass

    def instead(key, curriculum, **options):
        seen.update(curriculum=curriculum, **options)
        raise Stop

    monkeypatch.setattr(guide, "train_surrogate", instead)
    sizes = SurrogateTrainingConfig(
        samples=37, interventional=0.25, model_hidden_dim=8, model_n_layers=2, model_n_heads=2
    )
    with pytest.raises(Stop):
        grpo_with_jax_surrogate(GRPOConfig(), sizes, key=KEY)
    curriculum = seen["curriculum"]
    (lesson,) = curriculum.lessons
    _, samples = jax.jit(lambda key: curriculum.studies(key, lesson))(KEY)
    rows = np.asarray(samples.rows).sum(axis=1)
    assert (rows == 37).all()
    share = np.asarray(samples.intervened).any(axis=2).sum() / rows.sum()
    assert share == pytest.approx(0.25, abs=0.06)


@given(
    st.fixed_dictionaries(
        {
            "model_hidden_dim": st.integers(-1, 9),
            "model_n_layers": st.integers(-1, 5),
            "model_n_heads": st.integers(0, 4),
            "compute_dtype": st.sampled_from(["float32", "bfloat16", "float16", "int8"]),
        }
    )
)
@settings(max_examples=60, deadline=None)
def test_a_configuration_that_passes_makes_a_network(sizes):
    """And one that does not pass names what is wrong as the configuration does."""
    told = ""
    try:
        config = SurrogateTrainingConfig(**sizes)
        model = create_parent_set_model(config.model_kwargs, config.max_parent_size)
        jax.eval_shape(model.init, KEY)
    except ValueError as error:
        told = str(error)
    assert not told or any(name in told for name in sizes)
    assert "blocks" not in told
