"""Problems by difficulty, the experts' posteriors, and whole training loops."""

from __future__ import annotations

import dataclasses
import logging

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiny_model

from acbo import exact
from acbo.scm import Family, Samples
from acbo.training import (
    SurrogateTrainingConfig,
    TrainingBatch,
    collect_observational_data,
    create_jax_surrogate_train_step,
    create_training_batch,
    generate_scm_for_difficulty,
    get_marginal_parent_probabilities,
    optimized_progressive_learning,
    update_surrogate_jax,
)
from worldloom import mesh

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def easy():
    """A model of four variables, padded to five, and a table of it."""
    scm = generate_scm_for_difficulty("easy", seed=1)
    assert int(scm.graph.variables.sum()) == 4
    return scm, collect_observational_data(scm, n=60, interventional=0.5)


def test_difficulties_have_their_sizes():
    sizes = [
        int(generate_scm_for_difficulty("easy", seed=s).graph.variables.sum()) for s in range(30)
    ]
    assert set(sizes) == {3, 4, 5}
    scm = generate_scm_for_difficulty("easy", key=jax.random.key(7))
    other = generate_scm_for_difficulty("easy", key=jax.random.key(8))
    assert not np.array_equal(scm.noise_scale, other.noise_scale)
    with pytest.raises(ValueError, match="'tricky'; give one of 'easy', 'medium', 'hard'"):
        generate_scm_for_difficulty("tricky")


def test_data_are_standardised_and_interventions_are_asked_for(easy):
    scm, samples = easy
    assert 15 < samples.intervened.any(axis=1).sum() < 45
    assert not samples.intervened[:, 4].any()
    np.testing.assert_allclose(samples.values[:, :4].std(axis=0), 1, atol=1e-3)
    np.testing.assert_array_equal(samples.values[:, 4], 0)
    calm = collect_observational_data(scm, n=60)
    assert not calm.intervened.any()
    other = collect_observational_data(scm, n=60, key=jax.random.key(5))
    assert not np.array_equal(calm.values, other.values)
    for wrong in ({"n": 1}, {"interventional": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            collect_observational_data(scm, **wrong)


def test_the_expert_is_the_exact_posterior(easy):
    _, samples = easy
    batch = create_training_batch(samples)
    assert batch.batch_size == 4
    # By enumeration of all graphs of the four variables, without padding.
    edges = exact.graph_posterior(
        samples.values[:, :4],
        samples.intervened[:, :4],
        prior="orders",
        edge_probability=0.5,
    ).edge_probabilities
    for j, example in enumerate(batch.examples):
        names = example.variable_order
        assert example.target_variable == names[j] == f"X{j}"
        found = get_marginal_parent_probabilities(example.expert_posterior, names)
        expected = {f"X{i}": float(edges[i, j]) for i in range(4) if i != j}
        assert found == pytest.approx(expected, abs=1e-3)
        table = np.asarray(example.observational_data)
        assert table.shape == (60, 4, 3)
        np.testing.assert_array_equal(table[..., 1], samples.intervened[:, :4])
        np.testing.assert_array_equal(table[..., 2], np.arange(4)[None] == np.full((60, 1), j))
        assert example.expert_accuracy == max(example.expert_posterior.probabilities)


def test_with_a_model_the_accuracy_is_the_chance_of_the_truth(easy):
    scm, samples = easy
    (example,) = create_training_batch(scm, samples, "X2").examples
    truth = {f"X{i}" for i in np.flatnonzero(np.asarray(scm.graph.edges)[:, 2])}
    assert example.expert_accuracy == example.expert_posterior.probability(truth)
    with pytest.raises(ValueError, match="'X9'; the variables are X0, X1"):
        create_training_batch(scm, samples, "X9")
    with pytest.raises(ValueError, match="at least one example"):
        create_training_batch([])
    with pytest.raises(ValueError, match="a model alone"):
        create_training_batch(scm)
    with pytest.raises(ValueError, match="got int"):
        create_training_batch([1])
    again = create_training_batch([example, example])
    assert isinstance(again, TrainingBatch)
    assert again.batch_size == 2


@pytest.mark.slow
def test_the_expert_for_many_variables_knows_a_chain():
    study = Family(graph="chain").study(KEY, 14, 300, interventional=0.5)
    batch = create_training_batch(study.scm, study.samples, None, max_parent_size=2)
    assert batch.batch_size == 14
    # Its probability of the true set; one guess among 92 sets has a hundredth.
    assert np.mean([example.expert_accuracy for example in batch.examples]) > 0.6


def test_progressive_learning_learns_and_tells_its_seconds(caplog):
    config = SurrogateTrainingConfig(batch_size=16, max_epochs=60, samples=20, max_parent_size=2)
    step = create_jax_surrogate_train_step(tiny_model.TinyModel(), optax.adam(0.05), config=config)
    scms = [generate_scm_for_difficulty("easy", seed=s) for s in (1, 2)]
    with caplog.at_level(logging.INFO, logger="acbo.training"):
        done = optimized_progressive_learning(
            scms, config, step=step, difficulties=["easy"], key=KEY
        )
    loss = done.metrics["easy"]["total_loss"]
    assert loss.shape == (60,)
    assert loss[-10:].mean() < 0.9 * loss[:5].mean()
    assert "Difficulty easy: " in caplog.text
    assert done.seconds["easy"] >= done.compile_seconds["easy"] >= 0
    # Another length is the same program (records are kept in powers of two).
    longer = dataclasses.replace(config, max_epochs=64)
    again = optimized_progressive_learning(scms, longer, step=step, difficulties=["easy"], key=KEY)
    np.testing.assert_array_equal(again.metrics["easy"]["total_loss"][:60], loss)
    assert again.compile_seconds["easy"] == 0
    spread = optimized_progressive_learning(
        scms, config, step=step, difficulties=["easy"], devices=mesh.worlds_mesh(), key=KEY
    )
    for name, rows in done.metrics["easy"].items():
        np.testing.assert_allclose(spread.metrics["easy"][name], rows, rtol=1e-3, err_msg=name)
    odd = dataclasses.replace(config, batch_size=15)
    with pytest.raises(ValueError, match="batch_size is 15, which 2 devices do not divide"):
        optimized_progressive_learning(scms, odd, devices=mesh.worlds_mesh())
    with pytest.raises(ValueError, match="easy models differ"):
        optimized_progressive_learning(
            [scms[0], Family(mechanism="fourier").scm(KEY, 5)], config, step=step
        )


@pytest.mark.parametrize("given", [True, False])
def test_lessons_teach_the_true_causes_of_the_target(given):
    from acbo.training._problems import FAMILY
    from acbo.training._progressive import _Lesson, _stack

    step = create_jax_surrogate_train_step(tiny_model.TinyModel())
    family = Family(graph="fork")
    scms = [family.scm(jax.random.key(s), 5) for s in (1, 2)] if given else []
    lesson = _Lesson(step, FAMILY if given else family, "easy", _stack(scms, "easy"), 20, 40, 0.0)
    problem = jax.jit(jax.vmap(lesson._draw))(jax.random.split(KEY, 20))
    found = []
    for b in range(20):
        x = np.asarray(problem.data[b])
        target = int(problem.tables.targets[b])
        np.testing.assert_array_equal(x[..., 2], np.tile(np.arange(5) == target, (40, 1)))
        (true,) = np.flatnonzero(problem.probs[b])
        (causes,) = np.nonzero(problem.tables.sets[b, true])
        assert target < int(problem.tables.variables[b].sum())
        found.append((target, *causes.tolist()))
    if given:
        edges = [np.asarray(scm.graph.edges) for scm in scms]
        possible = {(j, *np.flatnonzero(one[:, j]).tolist()) for one in edges for j in range(5)}
        assert set(found) <= possible
        assert len(set(found)) > 5
    # A fork: one variable causes each of the others.
    assert all(len(one) <= 2 for one in found)
    assert 10 < sum(len(one) == 2 for one in found) < 20


def test_an_update_of_the_surrogate_is_the_step_again_and_again():
    step = create_jax_surrogate_train_step(tiny_model.TinyModel(), optax.sgd(0.1))
    batch = tiny_model.batch()
    params, opt_state = step.init(KEY)
    found = update_surrogate_jax(step, batch, params, epochs=3)
    for _ in range(3):
        params, opt_state, _ = step(params, opt_state, batch, KEY)
    np.testing.assert_allclose(found["weight"], params["weight"], atol=1e-5)
    with pytest.raises(ValueError, match="epochs is 0"):
        update_surrogate_jax(step, batch, params, epochs=0)


@pytest.mark.slow
def test_rows_and_variables_that_pad_change_no_answer(easy):
    _, samples = easy
    padded = Samples(
        jnp.concatenate([samples.values, jnp.full((5, 5), 3.0)]),
        jnp.concatenate([samples.intervened, jnp.zeros((5, 5), bool)]),
        jnp.concatenate([samples.rows, jnp.zeros(5, bool)]),
        samples.variables,
    )
    plain, more = create_training_batch(samples), create_training_batch(padded)
    for one, other in zip(plain.examples, more.examples, strict=True):
        assert one.observational_data.shape == other.observational_data.shape
        np.testing.assert_allclose(
            one.expert_posterior.probabilities, other.expert_posterior.probabilities, atol=1e-3
        )
