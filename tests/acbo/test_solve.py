"""Small systems against NumPy, and no LAPACK where batches run."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo._solve import determinant_and_form, inverse_positive
from acbo.optimise import ProblemPrior, begin, look
from acbo.policy import features
from acbo.surrogate import Surrogate, SurrogateConfig


def positive(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, n + 3))
    return (x @ x.T + 0.1 * np.eye(n)).astype(np.float32)


@pytest.mark.parametrize("n", [5, 10, 25])
def test_determinant_and_form_are_those_of_numpy(n):
    matrices = np.stack([positive(seed, n) for seed in range(4)])
    vectors = np.random.default_rng(9).normal(size=(4, n)).astype(np.float32)
    determinant, form = jax.jit(jax.vmap(partial(determinant_and_form, least=0.1)))(
        matrices, vectors
    )
    exact = matrices.astype(np.float64)
    np.testing.assert_allclose(determinant, np.linalg.slogdet(exact)[1], rtol=1e-4)
    solved = np.linalg.solve(exact, vectors[..., None])[..., 0]
    np.testing.assert_allclose(form, (vectors * solved).sum(axis=1), rtol=2e-3)


def test_rounding_makes_no_pivot_negative():
    """Columns that are nearly the same, many samples: eigenvalues from 1 to a million."""
    x = np.random.default_rng(0).normal(size=(25, 2)) @ np.random.default_rng(1).normal(
        size=(2, 400)
    )
    matrix = (1e4 * x @ x.T).astype(np.float32) + np.eye(25, dtype=np.float32)
    determinant, form = jax.jit(partial(determinant_and_form, least=1.0))(matrix, x[:, 0])
    assert np.isfinite(determinant)
    assert np.isfinite(form)
    assert determinant >= 0
    assert np.isnan(jax.jit(partial(determinant_and_form, least=-np.inf))(matrix, x[:, 0])[0])


def test_the_inverse_is_that_of_numpy():
    matrix = positive(0, 7)
    found = jax.jit(inverse_positive)(matrix)
    np.testing.assert_allclose(
        found, np.linalg.inv(matrix.astype(np.float64)), rtol=1e-3, atol=1e-4
    )


def test_rows_come_in_fives():
    with pytest.raises(ValueError, match="7 rows"):
        determinant_and_form(jnp.eye(7), jnp.zeros(7), least=1.0)


def test_a_policy_on_a_surrogate_calls_no_lapack():
    """Batched LAPACK kernels of jaxlib 0.10 can wait for each other for ever on two cores."""
    network = Surrogate(SurrogateConfig(hidden=8, blocks=2, heads=2), key=jax.random.key(0))
    problem = jax.jit(lambda key: ProblemPrior().problem(key, 4))(jax.random.key(1))

    @eqx.filter_jit
    def seen(network, keys):
        def one(key):
            view = look(begin(key, problem, observed=8, budget=2), problem, 2)
            return features(view, network)

        return jax.vmap(one)(keys)

    program = seen.lower(network, jax.random.split(jax.random.key(2), 3)).as_text()
    assert "lapack" not in program
    assert "lapack" in jax.jit(jax.vmap(jnp.linalg.inv)).lower(jnp.eye(3)[None]).as_text()
