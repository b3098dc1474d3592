"""The training step: one computation, compiled or not, and built once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiny_model

from acbo._errors import AcboWarning
from acbo.training import (
    ParentSetPosterior,
    SurrogateTrainingConfig,
    TrainingBatch,
    TrainingBatchJAX,
    TrainingExample,
    TrainStepError,
    convert_to_jax_batch,
    create_adaptive_train_step,
    create_jax_surrogate_train_step,
    create_parent_set_model,
    create_surrogate_train_step,
    uncertainty_weighted_loss,
    validate_fallback_behavior,
)

KEY = jax.random.key(0)
METRICS = {
    "total_loss",
    "kl_loss",
    "gradient_norm",
    "learning_rate",
    "mean_expert_accuracy",
    "predicted_entropy",
    "expert_entropy",
    "step_time",
}


@pytest.fixture(scope="module")
def step():
    return create_jax_surrogate_train_step(tiny_model.TinyModel(), optax.adam(0.01))


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def assert_same_update(step, batch):
    """Compiled and uncompiled agree in losses, parameters and the direction they moved."""
    params, opt_state = step.init(KEY)
    fast, fast_state, fast_metrics = step.compiled(params, opt_state, batch, KEY)
    slow, slow_state, slow_metrics = step.uncompiled(params, opt_state, batch, KEY)
    assert set(fast_metrics) == set(slow_metrics) == METRICS
    for name in METRICS - {"step_time"}:
        assert type(fast_metrics[name]) is type(slow_metrics[name]) is float
        assert fast_metrics[name] == pytest.approx(slow_metrics[name], rel=1e-4, abs=1e-6)
    np.testing.assert_allclose(flat(fast), flat(slow), atol=1e-5)
    np.testing.assert_allclose(flat(fast_state), flat(slow_state), atol=1e-5)
    one, other = flat(fast) - flat(params), flat(slow) - flat(params)
    assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.9999
    assert np.linalg.norm(one) > 0


def test_compiled_and_uncompiled_are_the_same_computation():
    step = create_surrogate_train_step(
        tiny_model.TinyModel(), optax.sgd(0.1, momentum=0.9), uncertainty_weighted_loss
    )
    assert_same_update(step, tiny_model.batch())


@pytest.mark.slow
def test_compiled_and_uncompiled_are_the_same_computation_for_the_network():
    # Plain gradient descent: Adam would divide what rounding left of a zero gradient by itself.
    config = SurrogateTrainingConfig(model_hidden_dim=8, model_n_layers=2, model_n_heads=2)
    step = create_jax_surrogate_train_step(optimizer=optax.sgd(0.1, momentum=0.9), config=config)
    assert_same_update(step, tiny_model.batch())
    report = validate_fallback_behavior()
    assert report, report.problems


def test_metrics_are_those_of_the_batch(step):
    params, opt_state = step.init(KEY)
    batch = tiny_model.batch()
    _, _, metrics = step(params, opt_state, batch, KEY)
    # The numbers again, example by example, in NumPy.
    expected, entropy = [], []
    for example in batch.examples:
        x = np.asarray(example.observational_data)[..., 0]
        covariance = x.T @ x[:, 1] / len(x)
        members = np.array([[0, 0, 0], [1, 0, 0]])
        powers = np.stack([covariance, abs(covariance), covariance**2])
        score = np.asarray(params["weight"]) @ powers @ members.T
        log_q = score - np.log(np.exp(score).sum())
        p = np.array([0.3, 0.7])
        expected.append((p * (np.log(p) - log_q)).sum())
        entropy.append(-(np.exp(log_q) * log_q).sum())
    assert metrics["kl_loss"] == metrics["total_loss"]
    assert metrics["kl_loss"] == pytest.approx(np.mean(expected), abs=1e-5)
    assert metrics["predicted_entropy"] == pytest.approx(np.mean(entropy), abs=1e-5)
    assert metrics["expert_entropy"] == pytest.approx(0.6108643, abs=1e-5)
    assert metrics["mean_expert_accuracy"] == 0.5
    assert metrics["learning_rate"] == pytest.approx(0.01)
    assert metrics["step_time"] > 0


def test_the_learning_rate_is_read_from_the_optimizer():
    optimizer = optax.inject_hyperparams(optax.sgd)(learning_rate=0.25)
    step = create_jax_surrogate_train_step(tiny_model.TinyModel(), optimizer)
    *_, metrics = step(*step.init(KEY), tiny_model.batch(), KEY)
    assert metrics["learning_rate"] == 0.25


def test_training_lowers_the_loss(step):
    params, opt_state = step.init(KEY)
    batch = convert_to_jax_batch(tiny_model.batch())
    losses = []
    for _ in range(50):
        params, opt_state, metrics = step(params, opt_state, batch, KEY)
        losses.append(metrics["total_loss"])
    assert losses[-1] < 0.8 * losses[0]


def test_names_never_compile_anything_and_both_calls_are_the_same(step, no_recompile):
    params, opt_state = step.init(KEY)
    first = convert_to_jax_batch(tiny_model.batch())
    expected = step(params, opt_state, first, KEY)[0]
    other = tiny_model.batch(names=("a", "b", "c"), target="c", rows=8)
    with no_recompile():
        step(params, opt_state, convert_to_jax_batch(other), KEY)
        sets = [[frozenset(), frozenset({"X0"})], [set(), {"X0"}]]
        orders, targets = [["X0", "X1", "X2"]] * 2, ["X1", "X1"]
        numbers = first.args[3:]
        by_parts = step(params, opt_state, sets, orders, targets, *numbers, KEY)[0]
    np.testing.assert_array_equal(flat(by_parts), flat(expected))
    different = step(params, opt_state, convert_to_jax_batch(other), KEY)[0]
    assert not np.array_equal(flat(different), flat(expected))


def test_sizes_up_to_a_maximum_never_compile_anything(step, no_recompile):
    def problem(d, n):
        return tiny_model.batch(names=tuple("abcde"[:d]), target="a", rows=n)

    params, opt_state = step.init(KEY)
    sizes = {"samples": 12, "variables": 5, "sets": 4}
    batches = [
        convert_to_jax_batch(
            tiny_model.batch(names=tuple("abcde"[:d]), target="a", rows=n), **sizes
        )
        for d, n in [(3, 8), (5, 12), (2, 4)]
    ]
    step(params, opt_state, batches[0], KEY)
    with no_recompile():
        for batch in batches[1:]:
            step(params, opt_state, batch, KEY)


def test_the_wrong_call_says_what_is_right(step):
    params, opt_state = step.init(KEY)
    with pytest.raises(TrainStepError, match="3 arguments; call step"):
        step(params, opt_state, tiny_model.batch())
    with pytest.raises(ValueError, match="batch is a list"):
        step(params, opt_state, [1, 2], KEY)


def test_a_step_that_cannot_be_compiled_says_why():
    def clip_by_hand(updates, state, params=None):
        if optax.tree.norm(updates) > 1:
            updates = jax.tree.map(lambda u: u / 2, updates)
        return updates, state

    optimizer = optax.GradientTransformation(lambda params: (), clip_by_hand)
    step = create_jax_surrogate_train_step(tiny_model.TinyModel(), optimizer)
    with pytest.raises(TrainStepError, match=r"TracerBoolConversionError.*jnp\.where"):
        step(*step.init(KEY), tiny_model.batch(), KEY)
    adaptive = create_adaptive_train_step(tiny_model.TinyModel(), optimizer)
    with pytest.warns(AcboWarning, match="runs uncompiled"):
        found = adaptive(*step.init(KEY), tiny_model.batch(), KEY)
    assert "TracerBoolConversionError" in adaptive.fallback_reason
    assert set(found[2]) == METRICS
    # Warnings are errors here: nothing is said twice.
    adaptive(*step.init(KEY), tiny_model.batch(), KEY)


def test_a_wrong_loss_is_no_reason_to_fall_back():
    def wrong(logits, probs, sets):
        raise KeyError("mistake")

    step = create_adaptive_train_step(tiny_model.TinyModel(), loss_fn=wrong)
    with pytest.raises(KeyError, match="mistake"):
        step(*step.init(KEY), tiny_model.batch(), KEY)


def test_the_fallback_is_good():
    report = validate_fallback_behavior(model=tiny_model.TinyModel())
    assert report, report.problems
    assert "ConcretizationTypeError" in report.reason


def test_a_bad_fallback_is_found():
    tiny = tiny_model.TinyModel()
    report = validate_fallback_behavior(
        lambda model, optimizer, **options: create_jax_surrogate_train_step(
            model, optimizer, config=options["config"]
        ),
        model=tiny,
    )
    assert not report
    assert "does not go on" in report.problems[0]

    def other_update(model, optimizer, *, config, use_jax_compilation):
        def update(updates, state, params=None):
            updates, state = optimizer.update(updates, state, params)
            return jax.tree.map(lambda u: 3 * u, updates), state

        return create_surrogate_train_step(
            model, optax.GradientTransformation(optimizer.init, update)
        )

    problems = " ".join(validate_fallback_behavior(other_update, model=tiny).problems)
    assert "it says 0 times" in problems
    assert "parameters differ" in problems


def test_batches_are_checked():
    with pytest.raises(ValueError, match="at least one example"):
        TrainingBatch([])
    with pytest.raises(ValueError, match="at least one example"):
        TrainingBatchJAX(np.zeros((0, 3, 2, 3)), np.zeros((0, 1)), [], [], [], [])
    with pytest.raises(ValueError, match="as many of each"):
        TrainingBatchJAX(np.zeros((1, 3, 2, 3)), np.zeros((2, 1)), [1], [[()]], [["X", "Y"]], ["X"])
    posterior = ParentSetPosterior("X", [set(), {"Q"}], [1, 1])
    with pytest.raises(ValueError, match="2 names"):
        TrainingExample(np.zeros((3, 4, 3), np.float32), posterior, "X", ["X", "Y"])
    stranger = TrainingExample(np.zeros((3, 2, 3), np.float32), posterior, "X", ["X", "Y"])
    with pytest.raises(ValueError, match="'Q' is no variable; the variables are X, Y"):
        convert_to_jax_batch(TrainingBatch([stranger]))
    with pytest.raises(ValueError, match="samples is 4; the largest example has 8"):
        convert_to_jax_batch(tiny_model.batch(), samples=4)


def test_a_batch_is_padded_to_its_largest_example():
    small, large = tiny_model.example(names=("X0", "X1")), tiny_model.example(rows=11)
    batch = convert_to_jax_batch(TrainingBatch([small, large]))
    assert batch.batch_size == 2
    assert batch.observational_data.shape == (2, 11, 3, 3)
    assert batch.tables.variables.tolist() == [[True, True, False], [True, True, True]]
    assert batch.tables.targets.tolist() == [1, 1]
    np.testing.assert_array_equal(batch.observational_data[0, 8:], 0)
    leaves, structure = jax.tree.flatten(batch)
    again = jax.tree.unflatten(structure, leaves)
    assert again.parent_sets == batch.parent_sets
    assert hash(structure) == hash(jax.tree.structure(again))


def test_configurations_are_values():
    config = SurrogateTrainingConfig(batch_size=4)
    assert config == SurrogateTrainingConfig(batch_size=4)
    assert hash(config) == hash(SurrogateTrainingConfig(batch_size=4))
    for wrong in (
        {"learning_rate": 0.0},
        {"batch_size": 0},
        {"max_epochs": 0},
        {"max_parent_size": -1},
        {"weight_decay": -1.0},
        {"interventional": 2.0},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SurrogateTrainingConfig(**wrong)
    with pytest.raises(ValueError, match="'hidden'; it takes hidden_dim, layers"):
        create_parent_set_model({"hidden": 8})
    with pytest.raises(ValueError, match="multiple of heads"):
        create_parent_set_model({"hidden_dim": 6})


@pytest.mark.slow
def test_the_network_does_not_see_padding():
    model = create_parent_set_model({"hidden_dim": 8, "layers": 2}, max_parent_size=2)
    params = model.init(KEY)
    table = np.array(tiny_model.example().observational_data)
    padded = np.full((12, 5, 3), 7.0, np.float32)
    padded[:8, :3] = table
    padded[8:, :, 2] = 0
    plain = model.apply(params, KEY, jnp.asarray(table), ["X0", "X1", "X2"], "X1", False)
    more = model.apply(params, KEY, jnp.asarray(padded), ["X0", "X1", "X2"], "X1", False)
    possible = ~np.asarray(more["parent_sets"])[:, 3:].any(axis=1)
    chances = np.exp(np.asarray(more["parent_set_logits"]))
    np.testing.assert_allclose(chances.sum(), 1, atol=1e-5)
    np.testing.assert_allclose(chances[possible], np.exp(plain["parent_set_logits"]), atol=1e-4)


def test_rows_without_a_flag_are_padding_if_others_have_one():
    from acbo.training._model import as_samples

    table = np.ones((4, 3, 3), np.float32)
    table[..., 2] = 0
    variables = jnp.asarray([True, True, False])
    assert as_samples(jnp.asarray(table), variables).rows.all()
    table[:3, 1, 2] = 1
    samples = as_samples(jnp.asarray(table), variables)
    assert samples.rows.tolist() == [True, True, True, False]
    assert samples.values.sum() == 3 * 2
    assert samples.intervened.sum() == 3 * 2


def test_sets_of_the_model_are_those_of_the_other_variables():
    from acbo.training._model import sets_of_others

    for target in range(4):
        sets = np.asarray(jax.jit(sets_of_others, static_argnums=(0, 1))(4, 2, jnp.int32(target)))
        assert len({tuple(one) for one in sets.tolist()}) == len(sets) == 1 + 3 + 3
        assert not sets[:, target].any()
        assert sets.sum(axis=1).max() == 2
