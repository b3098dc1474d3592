from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.scm import SCM, Family, Linear, Samples, Study, sample_mechanism, standardise
from acbo.scm._mechanisms import MECHANISMS
from acbo.scm._scm import NOISES


def draw(family: Family, d: int = 6, seed: int = 0) -> SCM:
    return _draw(family, jax.random.key(seed), d)


@partial(jax.jit, static_argnums=(0, 2))
def _draw(family: Family, key, d: int) -> SCM:
    return family.scm(key, d)


@partial(jax.jit, static_argnums=(0, 2, 3, 4))
def _study(family: Family, key, d: int, n: int, share: float, size: int, rows: int) -> Study:
    return family.study(key, d, n, interventional=share, size=size, rows=rows)


def test_linear_samples_solve_the_equations():
    scm = draw(Family(edges_per_variable=(1.5, 1.5)))
    assert isinstance(scm.mechanism, Linear)
    noise = np.random.default_rng(0).normal(size=(6, 50)).astype(np.float32)
    values = np.asarray(scm.push(jnp.asarray(noise)))
    weights = np.asarray(scm.mechanism.weights, np.float64)
    assert (weights != 0).sum() > 3
    np.testing.assert_allclose(values, np.linalg.solve(np.eye(6) - weights, noise), atol=1e-4)


def test_interventions_cut_causes_and_reach_effects_only():
    scm = draw(Family(edges_per_variable=(1.5, 1.5)))
    assert isinstance(scm.mechanism, Linear)
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(6, 40)).astype(np.float32)
    intervened = rng.random((6, 40)) < 0.3
    do = rng.normal(size=(6, 40)).astype(np.float32)
    values = np.asarray(scm.push(jnp.asarray(noise), jnp.asarray(intervened), jnp.asarray(do)))
    weights = np.asarray(scm.mechanism.weights, np.float64)
    for k in range(40):
        cut = weights * ~intervened[:, k][:, None]
        own = np.where(intervened[:, k], do[:, k], noise[:, k])
        np.testing.assert_allclose(values[:, k], np.linalg.solve(np.eye(6) - cut, own), atol=1e-4)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_only_causes_count(kind):
    scm = draw(Family(mechanism=kind, edges_per_variable=(1.5, 1.5)))
    edges = np.asarray(scm.graph.edges)
    values = jax.random.normal(jax.random.key(5), (6, 30))
    apply = jax.jit(scm.mechanism.__call__)
    for j in range(6):
        base = np.asarray(apply(j, values))
        for i in range(6):
            moved = np.asarray(apply(j, values.at[i].add(0.7)))
            assert (np.abs(moved - base).max() > 1e-3) == edges[i, j], (i, j)
        if not edges[:, j].any():
            assert (base == 0).all()


@pytest.mark.parametrize("kind", MECHANISMS)
def test_deep_models_stay_finite(kind):
    family = Family(graph="chain", mechanism=kind)
    study = _study(family, jax.random.key(0), 20, 200, 0.5, 20, 200)
    assert np.isfinite(np.asarray(study.samples.values)).all()


@pytest.mark.parametrize("noise", NOISES)
def test_noise_has_its_scale_and_shape(noise):
    scm = draw(Family(noise=noise, edges_per_variable=(0.0, 0.0)), d=3)
    values = np.asarray(scm.sample(jax.random.key(1), 40_000))
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(values.std(axis=0), scm.noise_scale, rtol=0.03)
    unit = values / values.std(axis=0)
    kurtosis = {"gaussian": 3.0, "laplace": 6.0, "uniform": 1.8}[noise]
    np.testing.assert_allclose((unit**4).mean(axis=0), kurtosis, rtol=0.15)


def test_mean_is_the_expected_value_of_a_linear_model():
    scm = draw(Family(edges_per_variable=(1.5, 1.5)))
    first = int(scm.graph.order[0])
    chosen = jnp.arange(6) == first
    do = jnp.full(6, 2.0)
    many = scm.sample(
        jax.random.key(3),
        20_000,
        intervened=jnp.broadcast_to(chosen, (20_000, 6)),
        do=jnp.broadcast_to(do, (20_000, 6)),
    )
    scatter = np.asarray(many.std(axis=0)) / 20_000**0.5
    error = np.abs(np.asarray(many.mean(axis=0)) - np.asarray(scm.mean(chosen, do)))
    assert (error <= 5 * scatter + 1e-6).all()


def test_a_study_is_padded_and_standardised():
    study = _study(Family(), jax.random.key(2), 8, 50, 0.5, 5, 30)
    values, intervened, rows, variables = map(np.asarray, study.samples)
    assert rows.sum() == 30
    assert variables.sum() == 5
    assert (values[30:] == 0).all()
    assert (values[:, 5:] == 0).all()
    assert not intervened[30:].any()
    assert not intervened[:, 5:].any()
    np.testing.assert_allclose(values[:30, :5].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(values[:30, :5].std(axis=0), 1, atol=1e-4)


def test_shares_targets_and_reach_of_interventions():
    variables = jnp.asarray([True] * 5 + [False])
    key = jax.random.key(4)
    single, do = Family().interventions(key, 4000, variables, 0.25)
    single = np.asarray(single)
    assert single.any(axis=1).mean() == pytest.approx(0.25, abs=0.03)
    assert set(single.sum(axis=1)) == {0, 1}
    assert (single.sum(axis=0)[:5] > 150).all()
    assert not single[:, 5].any()
    size = np.abs(np.asarray(do))
    assert size.min() >= 1.0
    assert size.max() <= 3.0
    assert (np.asarray(do) > 0).mean() == pytest.approx(0.5, abs=0.02)

    several, _ = Family(targets=3).interventions(key, 4000, variables, 1.0)
    counts = np.bincount(np.asarray(several).sum(axis=1), minlength=4)
    assert counts[0] == 0
    assert (np.abs(counts[1:] / 4000 - 1 / 3) < 0.04).all()

    nobody, _ = Family(reach=(0.0, 0.0)).interventions(key, 100, variables, 1.0)
    assert not np.asarray(nobody).any()


def test_standardising_ignores_padding_and_survives_constants():
    values = jnp.asarray([[1.0, 7.0, 3.0], [3.0, 7.0, 5.0], [99.0, 99.0, 99.0]])
    samples = Samples(
        values,
        jnp.zeros((3, 3), bool),
        jnp.asarray([True, True, False]),
        jnp.asarray([True, True, False]),
    )
    expected = [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(standardise(samples).values, expected, atol=1e-6)


def test_sizes_up_to_the_maximum_compile_once(no_recompile):
    family = Family()
    draw_many = jax.jit(jax.vmap(lambda key, size: family.study(key, 5, 20, size=size).samples))
    keys = jax.random.split(jax.random.key(0), 4)
    sizes = jnp.arange(2, 6)
    jax.block_until_ready(draw_many(keys, sizes[::-1]))
    with no_recompile():
        jax.block_until_ready(draw_many(keys, sizes))


def test_a_model_is_a_pytree_of_arrays():
    scm = draw(Family())
    assert all(eqx.is_array(leaf) for leaf in jax.tree.leaves(scm))


def test_what_is_no_model():
    scm = draw(Family())
    with pytest.raises(ValueError, match="intervened and do belong together"):
        scm.sample(jax.random.key(0), 2, intervened=jnp.ones((2, 6), bool))
    with pytest.raises(ValueError, match="noise='cauchy' is not a distribution"):
        draw(Family(noise="cauchy"))
    with pytest.raises(ValueError, match="mechanism='cubic' is none that we know"):
        sample_mechanism(jax.random.key(0), scm.graph.edges, kind="cubic")
    with pytest.raises(ValueError, match=r"noise_scale=\(2.0, 1.0\)"):
        Family(noise_scale=(2.0, 1.0))
    with pytest.raises(ValueError, match="targets=0"):
        Family(targets=0)
