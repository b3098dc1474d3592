from __future__ import annotations

import equinox as eqx
import flows
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from scipy.stats import gaussian_kde

import jaxtrace as jt
from jaxtrace.analysis import flow_map, flow_map_jacobian, ftle, residence_time, with_field
from jaxtrace.density import kde, sph_density


def grid_field():
    x = np.linspace(0, 2, 17)
    y = np.linspace(0, 1, 9)
    points = np.stack(np.meshgrid(x, y, indexing="ij"), -1).astype(np.float32)
    data = [
        jax.vmap(jax.vmap(flows.double_gyre, (0, None)), (0, None))(points, t) for t in (0.0, 2.0)
    ]
    return jt.StructuredField(np.stack(data), (x, y), [0.0, 2.0])


def tet_field():
    points, cells = flows.tets(5)
    return jt.TetField(np.sin(2 * points)[None], points, cells)


SEED = np.array([[0.61, 0.37]])


def central(f, x, eps):
    """A derivative by finite differences, in float64."""
    return (float(f(x + eps)) - float(f(x - eps))) / (2 * eps)


def test_gradient_with_respect_to_the_start():
    tracker = jt.create_tracker("rk4", field=grid_field())
    end = jax.jit(lambda x: flow_map(tracker, x, (0.0, 2.0), 20)[0, 0])
    slope = jax.grad(end)(jnp.asarray(SEED, jnp.float32))
    for j in range(2):
        move = jnp.zeros((1, 2), jnp.float32).at[0, j].set(1.0)
        by_hand = central(
            lambda s, move=move: end(jnp.asarray(SEED, jnp.float32) + s * move), 0.0, 5e-3
        )
        assert abs(by_hand - float(slope[0, j])) < 5e-3


def test_gradient_with_respect_to_the_data_of_the_field():
    field = grid_field()
    tracker = jt.create_tracker("rk4", field=field)
    x = jnp.asarray(SEED, jnp.float32)

    @jax.jit
    def end(part):
        other = eqx.tree_at(lambda f: f.tables.parts[0], field, part)
        return flow_map(with_field(tracker, other), x, (0.0, 2.0), 20)[0, 0]

    part = field.tables.parts[0]
    slope = jax.grad(end)(part)
    node = int(jnp.argmax(jnp.abs(slope[0])))
    move = jnp.zeros_like(part).at[0, node].set(1.0)
    by_hand = central(lambda s: end(part + s * move), 0.0, 1e-2)
    assert abs(by_hand - float(slope[0, node])) < 1e-3
    assert abs(by_hand) > 1e-2


def test_gradient_with_respect_to_a_parameter():
    def turn(rate, x, t):
        return rate * jnp.stack([-x[1], x[0]])

    @jax.jit
    def end(rate):
        tracker = jt.create_tracker("rk4", field=jt.AnalyticField(Partial(turn, rate), dim=2))
        return flow_map(tracker, jnp.array([[1.0, 0.0]]), (0.0, 1.0), 50)[0]

    slope = jax.jacrev(end)(jnp.float32(0.7))
    assert np.allclose(slope, [-np.sin(0.7), np.cos(0.7)], atol=1e-4)


@pytest.mark.parametrize("make", [grid_field, pytest.param(tet_field, marks=pytest.mark.slow)])
def test_the_jacobian_of_the_flow_map_is_that_of_finite_differences(make):
    field = make()
    seed = np.full((1, field.dim), 0.43)
    tracker = jt.create_tracker("rk4", field=field)
    found = flow_map_jacobian(tracker, seed, (0.0, 0.5), 10)
    end = jax.jit(lambda x: flow_map(tracker, x, (0.0, 0.5), 10))
    eps = 1e-3
    for j in range(field.dim):
        ends = []
        for sign in (1, -1):
            moved = seed.copy()
            moved[0, j] += sign * eps
            ends.append(np.asarray(end(jnp.asarray(moved, jnp.float32)))[0])
        assert np.allclose((ends[0] - ends[1]) / (2 * eps), found.jacobian[0, :, j], atol=0.05)
    tracks = tracker.track_particles(seed, (0.0, 0.5), 10)
    assert np.allclose(tracks.positions[-1], found.positions, atol=1e-6)


def test_who_leaves_the_flow_has_no_ftle():
    x = np.linspace(0.0, 1.0, 5)
    wind = np.zeros((1, 5, 5, 2))
    wind[..., 0] = 0.5
    found = ftle(jt.StructuredField(wind, (x, x)), [[0.2, 0.5], [0.9, 0.5]], (0.0, 1.0), 20)
    assert np.allclose(found[0], 0.0, atol=1e-5)
    assert np.isnan(found[1])


def test_ftle_of_shear_and_saddle():
    shear = jt.AnalyticField(lambda x, t: jnp.stack([3.0 * x[1], 0.0 * x[0]]), dim=2)
    found = ftle(shear, [[0.2, 0.3]], (0.0, 2.0), 20)
    jacobian = np.array([[1.0, 6.0], [0.0, 1.0]])
    assert np.allclose(found, np.log(np.linalg.norm(jacobian, 2)) / 2, atol=1e-4)
    saddle = jt.AnalyticField(lambda x, t: jnp.stack([0.7 * x[0], -0.7 * x[1]]), dim=2)
    assert np.allclose(ftle(saddle, [[0.2, 0.3]], (1.0, 0.0), 20), 0.7, atol=1e-3)


def test_residence_time_counts_only_living_particles():
    field = jt.AnalyticField(lambda x, t: jnp.array([1.0, 0.0]), dim=2)
    tracker = jt.create_tracker("rk4", field=field, max_age=1.5)
    tracks = tracker.track_particles([[0.0, 0.5], [-9.0, 0.5]], (0.0, 4.0), 400)
    found = residence_time(tracks, [[1, 0], [3, 1]])
    assert np.allclose(found, [0.5, 0.0], atol=0.02)
    by_rule = residence_time(tracks, lambda p: p[..., 0] > 1)
    assert np.allclose(by_rule, found)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("rule", ["scott", "silverman", 0.4])
def test_kde_is_that_of_scipy_and_integrates_to_one(dim, rule):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1500, dim)) @ rng.normal(size=(dim, dim)) + 5
    at = points[:50] + 0.1
    weights = rng.random(1500)
    wanted = gaussian_kde(points.T, rule, weights=weights)(at.T)
    assert np.allclose(kde(points, at, bandwidth=rule, weights=weights), wanted, rtol=1e-3)
    if dim == 2:
        low, high = points.min(0) - 3, points.max(0) + 3
        axes = [np.linspace(a, b, 150) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
        cell = ((high - low) / 149).prod()
        total = float(kde(points, grid, bandwidth=rule).sum()) * cell
        assert abs(total - 1) < 0.02


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("kernel", ["cubic", "wendland"])
def test_sph_integrates_to_the_mass(dim, kernel):
    points = np.random.default_rng(0).random((30, dim))
    mass = np.random.default_rng(1).random(30)
    axis = np.linspace(-0.6, 1.6, 45)
    grid = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), -1).reshape(-1, dim)
    density = sph_density(points, grid, smoothing_length=0.25, kernel=kernel, weights=mass)
    assert np.isfinite(density).all()
    assert abs(float(density.sum()) * (axis[1] - axis[0]) ** dim / mass.sum() - 1) < 0.01
    far = sph_density(points, np.full((1, dim), 5.0), smoothing_length=0.25, kernel=kernel)
    assert float(far[0]) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kde(np.zeros((9, 2)), np.zeros((1, 2))), "plane or on a line"),
        (lambda: kde(np.zeros((9, 2)), np.zeros((1, 3))), "2 coordinates"),
        (lambda: kde(np.full((9, 2), np.nan), np.zeros((1, 2))), r"points\[0\] is not finite"),
        (lambda: kde(np.eye(4, 2), np.zeros((1, 2)), bandwidth="rule"), "bandwidth='rule'"),
        (lambda: sph_density(np.eye(4, 2), np.eye(2), smoothing_length=0), "positive length"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(jt.TraceError, match=message):
        call()
