from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.scm import Family
from acbo.surrogate import (
    Curriculum,
    Lesson,
    SurrogateConfig,
    TrainingConfig,
    TrainStep,
    begin_training,
    train_surrogate,
)
from worldloom import mesh

SIZES = SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4)
CURRICULUM = Curriculum(
    lessons=(Lesson((2, 3), (8, 16), batch=4), Lesson((3, 4), (8, 16), batch=2)),
    families=((Family(), 1.0),),
)
CONFIG = TrainingConfig(steps=12, max_parent_size=2, acyclicity=0.1)


@pytest.fixture(scope="module")
def trained():
    return train_surrogate(
        jax.random.key(0), CURRICULUM, surrogate=SIZES, config=CONFIG, progress=False
    )


@pytest.mark.slow
def test_both_lessons_come_and_the_network_moves(trained):
    metrics = trained.records
    assert set(np.asarray(metrics.lesson)) == {0, 1}
    assert np.isfinite(np.asarray(metrics.loss)).all()
    assert (np.asarray(metrics.gradient_norm) > 0).all()
    start = begin_training(jax.random.key(0), surrogate=SIZES, config=CONFIG)
    moved = jax.tree.map(
        lambda a, b: float(jnp.abs(a - b).max()),
        eqx.filter(start.network, eqx.is_array),
        eqx.filter(trained.state.network, eqx.is_array),
    )
    assert max(jax.tree.leaves(moved)) > 1e-4


@pytest.mark.slow
def test_training_goes_on_from_a_network():
    network = begin_training(jax.random.key(0), surrogate=SIZES, config=CONFIG).network
    state = begin_training(jax.random.key(5), surrogate=network, config=CONFIG)
    assert eqx.tree_equal(state.network, network)
    assert eqx.tree_equal(state.average, network)


def test_a_checkpointed_run_is_the_same_run(trained, tmp_path):
    options: dict[str, Any] = {"surrogate": SIZES, "config": CONFIG, "progress": False}
    folder = tmp_path / "run"
    first = train_surrogate(jax.random.key(0), CURRICULUM, checkpoint=folder, **options)
    again = train_surrogate(
        jax.random.key(0), CURRICULUM, checkpoint=folder, resume=True, **options
    )
    for a, b, c in zip(
        *(jax.tree.leaves(run.state.average) for run in (trained, first, again)), strict=True
    ):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(b, c)


@pytest.mark.slow
def test_the_compiled_step_is_the_uncompiled_step():
    """The same losses and the same updates, operation by operation."""
    one = Curriculum(lessons=(Lesson((2, 3), (8, 8), batch=2),), families=((Family(), 1.0),))
    step = TrainStep(one, CONFIG)
    state = begin_training(jax.random.key(1), surrogate=SIZES, config=CONFIG)
    fast, told = eqx.filter_jit(step)(state, jnp.int32(3))
    with jax.disable_jit():
        slow, plain = step(state, jnp.int32(3))
    assert float(told.loss) == pytest.approx(float(plain.loss), rel=1e-4)
    before = np.concatenate([np.ravel(x) for x in _arrays(state.network)])
    updates = [
        np.concatenate([np.ravel(x) for x in _arrays(new.network)]) - before for new in (fast, slow)
    ]
    cosine = updates[0] @ updates[1] / np.prod([np.linalg.norm(u) for u in updates])
    assert cosine > 0.999
    assert np.linalg.norm(updates[0]) > 0


@pytest.mark.slow
def test_two_devices_see_the_losses_of_one(trained):
    both = train_surrogate(
        jax.random.key(0),
        CURRICULUM,
        surrogate=SIZES,
        config=CONFIG,
        progress=False,
        devices=mesh.worlds_mesh(),
    )
    np.testing.assert_allclose(both.records.loss, trained.records.loss, rtol=2e-3)
    odd = Curriculum(lessons=(Lesson((2, 3), (8, 8), batch=3),), families=CURRICULUM.families)
    with pytest.raises(ValueError, match="batch=3, which 2 devices do not divide"):
        train_surrogate(jax.random.key(0), odd, devices=mesh.worlds_mesh())


def test_studies_keep_to_their_lesson():
    lesson = CURRICULUM.lessons[1]
    mixed = Curriculum(
        CURRICULUM.lessons,
        ((Family(graph="chain"), 0.5), (Family(graph="collider"), 0.5)),
    )
    draw = jax.jit(lambda key: mixed.studies(key, lesson))
    sizes, rows, shares, kinds = [], [], [], set()
    for seed in range(20):
        graph, samples = draw(jax.random.key(seed))
        kinds.add(int(np.asarray(graph.edges[0]).sum(axis=0).max()))
        sizes += np.asarray(graph.variables.sum(axis=1)).tolist()
        rows += np.asarray(samples.rows.sum(axis=1)).tolist()
        shares += np.asarray(samples.intervened.any(axis=(1, 2))).tolist()
    assert set(sizes) == {3, 4}
    assert kinds >= {1, 2}, "both families come"
    assert min(rows) >= 8
    assert max(rows) <= 16
    assert len(set(rows)) > 4
    assert 0.3 < np.mean(shares) < 0.9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lesson((1, 3), (8, 9), batch=1), r"variables=\(1, 3\)"),
        (lambda: Lesson((2, 3), (9, 8), batch=1), r"rows=\(9, 8\)"),
        (lambda: Lesson((2, 3), (8, 9), batch=0), "batch=0"),
        (lambda: Curriculum((), ()), "at least one lesson"),
        (lambda: TrainingConfig(steps=0), "steps=0"),
        (lambda: TrainingConfig(average=1.0), "average=1.0"),
    ],
)
def test_settings_that_mean_nothing(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def _arrays(tree):
    return jax.tree.leaves(eqx.filter(tree, eqx.is_array))
