from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo._errors import OptionError
from acbo.evaluation import (
    CONTESTS,
    POLICIES,
    Contest,
    GreedyOnBelief,
    ProcessOnBelief,
    evaluate_policy,
    make_policy,
    policy_table,
)
from acbo.evaluation import _contest as inside
from acbo.evaluation._entrants import builder_of
from acbo.optimise import (
    GaussianProcess,
    ProblemPrior,
    begin,
    greedy_correlation,
    look,
    named_problem,
)
from acbo.policy import PolicyNetwork
from acbo.scm import Family, Samples
from acbo.surrogate import Prediction, Surrogate

SPARSE = ProblemPrior(family=Family(edges_per_variable=(0.5, 0.5)))
CONTEST = Contest("sparse", SPARSE, d=3, observed=5, budget=3)
PROBLEMS, KEY = 16, jax.random.key(2)


class Told(Surrogate):
    """A surrogate that was told the graph."""

    edges: jax.Array

    def __init__(self, base: Surrogate, edges):
        for part in dataclasses.fields(Surrogate):
            setattr(self, part.name, getattr(base, part.name))
        self.edges = edges

    def __call__(self, samples: Samples) -> Prediction:
        d = self.edges.shape[0]
        sure = jnp.where(self.edges, 20.0, -20.0)
        return Prediction(sure, sure, jnp.zeros((d, d, 8)), jnp.zeros((d, d, 8)))


@pytest.fixture(scope="module")
def random_scores(surrogate):
    return evaluate_policy("random", CONTEST, surrogate=surrogate, problems=PROBLEMS, key=KEY)


@pytest.mark.slow
def test_the_figures_are_those_of_the_steps(random_scores, surrogate):
    scores = random_scores
    draw, start, _ = jax.random.split(KEY, 3)
    problems = inside._draw(SPARSE, 3, jax.random.split(draw, PROBLEMS))
    keys = jax.random.split(start, PROBLEMS)
    _, steps = inside._play(builder_of("random"), surrogate, None, problems, keys, 5, 3)
    gain = np.asarray(problems.best - problems.calm)
    counts = gain > 0.01
    assert 0 < scores.left_out < PROBLEMS
    assert (scores.problems, scores.left_out) == (counts.sum(), (~counts).sum())
    worth = np.asarray(steps.worth)[counts]
    best = np.maximum.accumulate(worth, axis=1)
    np.testing.assert_allclose(scores.mean.estimate, worth.mean(), atol=1e-5)
    np.testing.assert_allclose(scores.best.estimate, best[:, -1].mean(), atol=1e-5)
    np.testing.assert_allclose(scores.regret.estimate, 1 - best.mean(axis=0), atol=1e-5)
    assert (np.asarray(scores.regret.low) <= np.asarray(scores.regret.high)).all()
    assert scores.milliseconds > 0


@pytest.mark.slow
def test_the_oracle_leaves_no_regret_and_chance_does(surrogate, random_scores):
    oracle = evaluate_policy("oracle", CONTEST, surrogate=surrogate, problems=PROBLEMS, key=KEY)
    np.testing.assert_allclose(oracle.regret.estimate, 0.0, atol=1e-4)
    assert oracle.problems == random_scores.problems, "the same key gives the same problems"
    assert random_scores.best.estimate < 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_plays(name, surrogate):
    network = PolicyNetwork(16, hidden=8, key=jax.random.key(1))
    scores = evaluate_policy(
        name, CONTEST, surrogate=surrogate, network=network, problems=PROBLEMS, key=KEY
    )
    assert (np.asarray(scores.regret.estimate) > -1e-3).all()
    assert scores.best.estimate <= 1 + 1e-3
    columns, rows = policy_table([scores])
    assert len(columns) == len(rows[0])
    assert rows[0][:2] == [name, "sparse"]


@pytest.mark.slow
@pytest.mark.parametrize("contest", CONTESTS[1:], ids=lambda contest: contest.name)
def test_out_of_family(contest, surrogate):
    scores = evaluate_policy("linear-ucb", contest, surrogate=surrogate, problems=8)
    assert np.isfinite(float(scores.best.estimate))


@pytest.mark.slow
def test_causes_are_judged_by_what_was_gathered(surrogate):
    """One who knows the graph finds all causes; one who says the opposite finds none."""
    problem = named_problem("collider")
    game = begin(jax.random.key(0), problem, observed=5, budget=1)
    one = jax.tree.map(lambda leaf: leaf[None], (game, problem))
    f1, auroc = inside._judge(Told(surrogate, problem.scm.graph.edges), *one)
    assert (float(f1[0]), float(auroc[0])) == (1.0, 1.0)
    f1, auroc = inside._judge(Told(surrogate, ~problem.scm.graph.edges), *one)
    assert (float(f1[0]), float(auroc[0])) == (0.0, 0.0)


def test_belief_tells_causes_from_company(surrogate):
    problem = named_problem("collider")
    told = Told(surrogate, problem.scm.graph.edges)
    game = begin(jax.random.key(1), problem, observed=60, budget=1)
    view = look(game, problem, 1)

    @jax.jit
    def actions(key):
        return (
            greedy_correlation(key, view),
            GreedyOnBelief(told)(key, view),
            ProcessOnBelief(told)(key, view),
            GaussianProcess("ucb", problem.scm.graph.edges)(key, view),
        )

    company, greedy, learned, known = actions(jax.random.key(0))
    assert problem.names[int(company.variable)] == "S"
    assert problem.names[int(greedy.variable)] == "B"
    assert float(greedy.value) == -3.0
    assert int(learned.variable) == int(known.variable)
    assert float(learned.value) == pytest.approx(float(known.value))


def test_what_is_no_contest(surrogate):
    with pytest.raises(OptionError, match="policy is 'best'; the policies are random, round-robin"):
        make_policy("best", named_problem("fork"))
    with pytest.raises(OptionError, match="d is 1"):
        Contest("lonely", SPARSE, d=1)
    with pytest.raises(OptionError, match="problems is 0"):
        evaluate_policy("random", CONTEST, surrogate=surrogate, problems=0)
