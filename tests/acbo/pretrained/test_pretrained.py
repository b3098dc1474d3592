"""The networks in the package: they load, they know something, and their recipe makes them."""

from __future__ import annotations

import json
from importlib import resources

import jax
import numpy as np
import pytest

import acbo
import worldloom as wl
from acbo.evaluation import CELLS, CONTESTS, evaluate_discovery, evaluate_policy
from acbo.pretrained import _recipe as recipe
from acbo.scm import Family
from acbo.surrogate import TrainStep, begin_training


def told(name: str) -> dict:
    return json.loads((resources.files("acbo.pretrained") / name).read_text(encoding="utf-8"))


def test_the_surrogate_finds_graphs_it_has_never_seen():
    """By its public door, on raw data of six new systems."""
    found, missed = [], []
    for seed in range(6):
        study = Family(mechanism="fourier" if seed % 2 else "linear").study(
            jax.random.key(1000 + seed), 5, 100, interventional=0.5
        )
        samples, truth = study.samples, np.asarray(study.scm.graph.edges)
        said = acbo.discover(
            7 + 3 * np.asarray(samples.values), np.asarray(samples.intervened)
        ).edge_probabilities
        off = ~np.eye(5, dtype=bool)
        found.extend(said[truth])
        missed.extend(said[off & ~truth])
    assert len(found) > 15
    assert np.mean(found) > 0.75
    assert np.mean(missed) < 0.15


def test_what_is_kept_beside_a_network_is_its_training():
    surrogate, policy = told("surrogate.json"), told("policy.json")
    assert surrogate["steps"] == [config.steps for _, config in recipe.STAGES]
    assert policy["steps"] == recipe.POLICY.total_steps
    assert surrogate["seed"] == policy["seed"] == recipe.SEED
    losses = surrogate["curve"]["edge_loss"]
    assert losses[-1] < 0.75 * losses[0]
    assert acbo.pretrained_policy() is acbo.pretrained_policy()


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_every_cell_reaches_its_goal(cell):
    scores = evaluate_discovery(cell, key=jax.random.key(1))
    assert float(scores.auroc.estimate) >= cell.goal
    assert float(scores.calibration_error.estimate) < 0.05
    if scores.exact is not None and cell.family.mechanism == "linear":
        assert float(scores.exact.calibration_error.estimate) < 0.05


@pytest.mark.slow
def test_the_policy_finds_good_interventions_soon():
    scores = evaluate_policy("learned", CONTESTS[0], problems=256, key=jax.random.key(3))
    assert float(scores.best.estimate) >= 0.97
    assert float(scores.mean.estimate) >= 0.93
    blind = evaluate_policy("linear-ucb", CONTESTS[0], problems=256, key=jax.random.key(3))
    assert float(scores.mean.estimate) > float(blind.mean.estimate) + 0.2


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_the_recipe_begins_the_curve_that_is_kept():
    curve = told("surrogate.json")["curve"]["edge_loss"]
    length = sum(config.steps for _, config in recipe.STAGES) // len(curve)
    curriculum, config = recipe.STAGES[0]
    state = begin_training(jax.random.key(recipe.SEED), surrogate=recipe.SURROGATE, config=config)
    step = TrainStep(curriculum, config)
    result = wl.run(step, state, length=length, save=wl.Every(), progress=False)
    assert float(result.records.edge_loss.mean()) == pytest.approx(curve[0], abs=0.02)
