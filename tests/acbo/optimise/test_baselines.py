from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from acbo._solve import solve_positive
from acbo.optimise import (
    GaussianProcess,
    begin,
    greedy_correlation,
    linear_thompson,
    linear_ucb,
    look,
    random_policy,
    round_robin,
)
from acbo.optimise._baselines import _posterior

SOLVE = jax.jit(solve_positive)


@given(seed=st.integers(0, 2**32 - 1))
def test_solve_positive_against_numpy(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    matrix = root @ root.T + 0.5 * np.eye(6)
    right = rng.normal(size=(6, 3))
    found = SOLVE(jnp.asarray(matrix, jnp.float32), jnp.asarray(right, jnp.float32))
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=2e-3, atol=2e-3)


def test_the_process_against_scikit_learn():
    rng = np.random.default_rng(0)
    at, y = rng.uniform(-3, 3, 8), rng.normal(size=8)
    here = np.array([1, 1, 0, 1, 1, 0, 1, 1], float)
    grid = np.linspace(-3, 3, 13)
    size, length, noise, slope = 2.0, 1.5, 0.7, 0.4
    arrays = (jnp.asarray(a, jnp.float32) for a in (at, y, here))
    mean, deviation = _posterior(
        *arrays, slope, size, length, noise, jnp.asarray(grid, jnp.float32)
    )
    kernel = ConstantKernel(size, "fixed") * RBF(length, "fixed")
    referee = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)
    seen = here > 0
    referee.fit(at[seen, None], y[seen] - slope * at[seen])
    expected, spread = referee.predict(grid[:, None], return_std=True)
    np.testing.assert_allclose(mean, expected + slope * grid, atol=1e-4)
    np.testing.assert_allclose(deviation, spread, atol=1e-4)


@pytest.mark.parametrize(
    "policy",
    [
        random_policy,
        round_robin,
        greedy_correlation,
        linear_thompson,
        linear_ucb,
        GaussianProcess(),
        GaussianProcess(acquisition="ei"),
    ],
)
def test_policies_keep_the_rules(policy, problem):
    game = begin(jax.random.key(0), problem, observed=6, budget=3)
    view = look(game, problem, 3)
    actions = jax.jit(jax.vmap(lambda key: policy(key, view)))(
        jax.random.split(jax.random.key(1), 32)
    )
    assert np.asarray(problem.allowed)[np.asarray(actions.variable)].all()
    assert (np.abs(np.asarray(actions.value)) <= 3.0 + 1e-5).all()


def test_round_robin_takes_turns(problem):
    game = begin(jax.random.key(0), problem, observed=6, budget=8)
    turns = [
        int(
            round_robin(
                jax.random.key(0), look(game, problem, 8)._replace(used=jnp.int32(t))
            ).variable
        )
        for t in range(8)
    ]
    allowed = np.flatnonzero(np.asarray(problem.allowed)).tolist()
    assert turns == allowed * 2


def test_a_known_graph_tells_cause_from_company():
    """With a common cause, correlation sets the wrong variable; adjustment does not."""
    from acbo.optimise import Problem
    from acbo.scm import SCM, Graph, Linear

    # 0 causes 1 strongly and 2 weakly: 1 goes with 2, and does nothing to it.
    edges = jnp.zeros((3, 3), bool).at[0, 1].set(True).at[0, 2].set(True)
    weights = jnp.zeros((3, 3)).at[1, 0].set(2.0).at[2, 0].set(1.0)
    scm = SCM(Graph(edges, jnp.arange(3), jnp.ones(3, bool)), Linear(weights), jnp.ones(3) * 0.5)
    problem = Problem(
        scm,
        jnp.int32(2),
        jnp.float32(3.0),
        jnp.zeros(3),
        jnp.zeros((3, 1)),
        jnp.float32(0.0),
        jnp.float32(3.0),
    )
    game = begin(jax.random.key(4), problem, observed=200, budget=1)
    view = look(game, problem, 1)
    known = jax.jit(GaussianProcess(edges=edges).__call__)(jax.random.key(0), view)
    assert int(known.variable) == 0
    assert float(known.value) == pytest.approx(3.0)
