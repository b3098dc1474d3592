"""Small systems against NumPy, and no LAPACK where batches run."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo._solve import determinants_and_forms, in_blocks, inverse_positive
from acbo.optimise import ProblemPrior, begin, look
from acbo.policy import features
from acbo.surrogate import Surrogate, SurrogateConfig


def positive(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, n + 3))
    return (x @ x.T + 0.1 * np.eye(n)).astype(np.float32)


@pytest.mark.parametrize(("batch", "count", "n"), [(1, 1, 5), (3, 50, 7), (2, 64, 25), (2, 0, 25)])
def test_determinants_and_forms_are_those_of_numpy(batch, count, n):
    x = np.random.default_rng(0).normal(size=(batch, count, n, n + 3))
    matrices = (x @ x.swapaxes(-1, -2) + np.eye(n)).astype(np.float32)
    vectors = np.random.default_rng(9).normal(size=(batch, count, n)).astype(np.float32)
    determinant, form = jax.jit(jax.vmap(in_blocks(determinants_and_forms)))(matrices, vectors)
    exact = matrices.astype(np.float64)
    np.testing.assert_allclose(determinant, np.linalg.slogdet(exact)[1], rtol=1e-4)
    solved = np.linalg.solve(exact, vectors[..., None])[..., 0]
    np.testing.assert_allclose(form, (vectors * solved).sum(axis=-1), rtol=2e-3)


def test_blocks_see_whole_stacks_in_order_whatever_is_batched():
    seen = []

    @in_blocks
    def scaled(values, factor):
        seen.append(values.shape)
        return {"product": values * factor[None, :], "sum": values.sum(axis=0)}

    values = jnp.arange(2 * 3 * 50 * 4, dtype=jnp.float32).reshape(2, 3, 50, 4)
    factor = jnp.arange(3 * 50, dtype=jnp.float32).reshape(3, 50)
    each = jax.vmap(jax.vmap(scaled), in_axes=(0, None))
    found = jax.jit(each)(values, factor)
    assert seen[-1] == (4, 64), "300 in blocks of 64"
    np.testing.assert_array_equal(
        found["product"], np.asarray(values) * np.asarray(factor)[..., None]
    )
    np.testing.assert_array_equal(found["sum"], values.sum(axis=-1))


def test_rounding_makes_no_pivot_negative():
    """Columns that are nearly the same, many samples: eigenvalues from 1 to a million."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(20, 25, 2)) @ rng.normal(size=(20, 2, 400))).astype(np.float32)
    matrices = 1e4 * x @ x.swapaxes(-1, -2) + np.eye(25, dtype=np.float32)
    assert min(np.diag(one).min() for one in map(pivots, matrices)) < 0, "it would be"
    determinant, form = jax.jit(in_blocks(determinants_and_forms))(matrices, x[:, :, 0])
    assert np.isfinite(determinant).all()
    assert np.isfinite(form).all()
    assert (determinant >= 0).all()


def pivots(matrix: np.ndarray) -> np.ndarray:
    """Gauss, in the type of the matrix, with no care at all."""
    left = matrix.copy()
    for k in range(len(left)):
        left[k + 1 :] -= np.outer(left[k + 1 :, k] / left[k, k], left[k])
    return left


def test_the_inverse_is_that_of_numpy():
    matrix = positive(0, 7)
    found = jax.jit(inverse_positive)(matrix)
    np.testing.assert_allclose(
        found, np.linalg.inv(matrix.astype(np.float64)), rtol=1e-3, atol=1e-4
    )


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
