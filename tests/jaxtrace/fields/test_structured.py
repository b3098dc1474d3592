from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace import Status
from jaxtrace.fields import FieldError

X = np.linspace(-1.0, 2.0, 7)
Y = np.array([0.0, 0.1, 0.25, 0.5, 0.6, 1.0])
Z = np.linspace(3.0, 4.0, 5)
TIMES = np.array([0.0, 1.0, 1.5, 4.0, 5.0])


def nodes(*axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def places(n, *axes, seed=0):
    u = np.random.default_rng(seed).random((n, len(axes)))
    low = np.array([a[0] for a in axes])
    return low + u * (np.array([a[-1] for a in axes]) - low)


def polynomial(coefficients, degree):
    """A polynomial of this degree in each coordinate and in time, from 4-D coefficients."""

    def value(p, t):
        total = 0.0
        for i, j, k, m in np.ndindex(*[degree + 1] * 4):
            c = coefficients[i, j, k, m]
            total = total + c * p[..., 0] ** i * p[..., 1] ** j * p[..., 2] ** k * t**m
        return total

    return value


@hypothesis.settings(max_examples=15)
@hypothesis.given(seed=st.integers(0, 2**31), method=st.sampled_from(["linear", "cubic"]))
def test_interpolation_is_exact_for_the_polynomials_it_must_reproduce(seed, method):
    degree = {"linear": 1, "cubic": 2}[method]
    coefficients = np.random.default_rng(seed).uniform(-1, 1, [degree + 1] * 4)
    f = polynomial(coefficients, degree)
    grid = nodes(X, Y, Z)
    data = np.stack([f(grid, t) for t in TIMES])[..., None]
    field = jt.StructuredField(data, (X, Y, Z), TIMES, method=method, time_method=method)
    p = places(40, X, Y, Z, seed=seed)
    for t in (0.3, 1.2, 4.9):
        wanted = f(p, t)
        scale = np.abs(data).max()
        assert np.abs(field.sample(p, t)[:, 0] - wanted).max() < 2e-5 * scale
    each = np.linspace(0, 5, 40)
    assert np.abs(field.sample(p, each)[:, 0] - f(p, each)).max() < 2e-5 * np.abs(data).max()


def test_cubic_is_continuous_with_its_slope_across_cells():
    x = np.linspace(0, 1, 9)
    data = np.random.default_rng(0).random((1, 9, 9, 1))
    field = jt.StructuredField(data, (x, x), method="cubic")
    eps = 1e-3
    at = np.array([[x[4] + d, 0.43] for d in (-2 * eps, -eps, eps, 2 * eps)])
    v = np.asarray(field.sample(at, 0.0))[:, 0]
    assert abs((v[1] - v[0]) / eps - (v[3] - v[2]) / eps) < 0.15


def test_two_dimensions_and_decreasing_axes():
    grid = nodes(X, Y)
    f = lambda p: np.stack([p[..., 0] * p[..., 1], p[..., 0] + 2], -1)  # noqa: E731
    field = jt.StructuredField(f(grid)[None, ::-1], (X[::-1], Y))
    p = places(30, X, Y)
    assert np.allclose(field.sample(p, 7.0), f(p), atol=1e-5)
    assert np.allclose(field.bounds, [[-1, 0], [2, 1]])


def test_data_come_back_as_they_were_given():
    data = np.random.default_rng(0).random((5, 7, 6, 5, 3)).astype(np.float32)
    field = jt.StructuredField(data, (X, Y, Z), TIMES)
    assert np.array_equal(field.data, data)
    assert np.allclose(field.times, TIMES)
    assert field.time_span == (0.0, 5.0)


@pytest.mark.parametrize("outside", ["status", "clamp", "zero", "nan"])
def test_outside_follows_the_rule(outside):
    field = jt.StructuredField(nodes(X, Y)[None], (X, Y), outside=outside)
    x = jnp.array([[0.5, 9.0], [0.5, 0.5]], jnp.float32)
    value, status, _ = field.evaluate(x, jnp.float32(0))
    assert np.allclose(value[:, 0], [0.5, 0.5], atol=1e-6)
    wanted = {"status": 2.0, "clamp": 2.0, "zero": 0.0, "nan": np.nan}[outside]
    assert np.allclose(value[0, 1], wanted, equal_nan=True)
    assert status.tolist() == [0, Status.EXITED if outside == "status" else 0]


def test_times_outside_hold_the_nearest_slice():
    data = np.stack([np.full((7, 6, 1), t) for t in TIMES])
    field = jt.StructuredField(data, (X, Y), TIMES)
    assert np.allclose(field.sample(places(3, X, Y), -5.0), 0.0)
    assert np.allclose(field.sample(places(3, X, Y), 50.0), 5.0)


def test_land_counts_as_zero_and_beaches():
    data = np.ones((1, 7, 6, 2))
    data[0, 3, 2] = np.nan
    field = jt.StructuredField(data, (X, Y))
    x = np.array([[X[3] + 0.01, Y[2]], [X[3] + 0.4, Y[2]], [-1, 0]]).T
    value, status, _ = field.evaluate(jnp.asarray(x, jnp.float32), jnp.float32(0))
    assert status.tolist() == [Status.BEACHED, 0, 0]
    assert np.isfinite(value).all()
    assert abs(float(value[0, 0])) < 0.05


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_a_periodic_axis_has_no_ends(closed, method):
    x = np.linspace(0, 2 * np.pi, 65)[: 65 if closed else 64]
    y = np.linspace(0, 1, 5)
    data = np.broadcast_to(np.sin(x)[:, None, None], (len(x), 5, 1))[None]
    field = jt.StructuredField(data, (x, y), method=method, period=(2 * np.pi, None))
    p = np.array([[-0.03, 0.5], [6.2, 0.5], [13.0, 0.5], [-7.0, 0.5]])
    assert np.allclose(field.sample(p, 0.0)[:, 0], np.sin(p[:, 0]), atol=2e-3)


def test_seconds_since_1970_survive_float32():
    start = 1.7e9
    data = np.stack([np.full((7, 6, 1), float(k)) for k in range(4)])
    field = jt.StructuredField(data, (X, Y), start + 10.0 * np.arange(4))
    assert np.allclose(field.sample(places(2, X, Y), start + 12.5), 1.25)


def test_the_data_are_an_argument_of_the_program():
    grid = nodes(X, Y, Z).astype(np.float32)
    evaluate = jax.jit(lambda field, x, t: field.evaluate(x, t).value)
    x = jnp.asarray(places(8, X, Y, Z).T, jnp.float32)
    one, two = (
        jt.StructuredField(grid[None], (X, Y, Z)),
        jt.StructuredField(2 * grid[None], (X, Y, Z)),
    )
    compiled = evaluate.lower(one, x, jnp.float32(0)).compile()
    assert np.allclose(2 * compiled(one, x, jnp.float32(0)), compiled(two, x, jnp.float32(0)))
    constants = [line for line in compiled.as_text().splitlines() if "constant({" in line]
    assert all(len(line) < 500 for line in constants)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axes": (X, Y[:1], Z)}, r"axes\[1\] has 1 nodes"),
        ({"axes": (X, Y)}, r"expected \[T, nodes, nodes, C\]"),
        ({"axes": (X, Y[[0, 2, 1, 3, 4, 5]], Z)}, r"axes\[1\]\[1\] = 0.25"),
        ({"times": TIMES[[0, 1, 2, 4, 3]]}, r"times\[3\] = 5, times\[4\] = 4"),
        ({"times": TIMES[:4]}, "5 slices, but times has 4"),
        ({"times": None}, "must say when"),
        ({"method": "spline"}, "expected 'linear' or 'cubic'"),
        ({"outside": "reflect"}, "outside='reflect'"),
        ({"data": np.full((5, 7, 6, 5, 3), np.nan)}, "there is no flow"),
        ({"data": np.full((5, 7, 6, 5, 3), np.inf)}, "infinite at"),
        ({"period": (1.0, None, None)}, "more than its period"),
    ],
)
def test_bad_input_is_named(change, message):
    good = {"data": np.zeros((5, 7, 6, 5, 3)), "axes": (X, Y, Z), "times": TIMES}
    with pytest.raises(FieldError, match=message):
        jt.StructuredField(**(good | change))
