from __future__ import annotations

import flows
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxtrace as jt
from jaxtrace import Status
from jaxtrace.fields import FieldError

P = np.random.default_rng(0).random((20, 2))


def test_sums_and_multiples():
    a = jt.AnalyticField(flows.rotation, dim=2)
    b = jt.AnalyticField(lambda x, t: jnp.stack([t, x[0]]), dim=2)
    total = 2.0 * a - b * [1.0, 3.0]
    wanted = np.stack([-2 * P[:, 1] - 5.0, 2 * P[:, 0] - 3 * P[:, 0]], 1)
    assert np.allclose(total.sample(P, 5.0), wanted, atol=1e-5)


def test_fields_with_different_clocks_agree_on_the_time():
    x = np.linspace(0, 1, 3)
    ramp = lambda times: jt.StructuredField(  # noqa: E731
        np.broadcast_to(np.asarray(times)[:, None, None, None], (len(times), 3, 3, 2)),
        (x, x),
        times,
    )
    total = ramp(np.arange(100.0, 105.0)) + ramp(np.arange(102.0, 110.0))
    assert total.time_span == (102.0, 104.0)
    assert np.allclose(total.sample(P, 103.5), 2 * 103.5)


def test_a_mask_is_land():
    field = jt.AnalyticField(flows.rotation, dim=2).where(lambda x, t: x[0] < 0.5)
    value, status, _ = field.evaluate(jnp.asarray(P.T, jnp.float32), jnp.float32(0))
    assert (np.asarray(status) == np.where(P[:, 0] < 0.5, 0, Status.BEACHED)).all()
    assert (np.asarray(value)[:, P[:, 0] >= 0.5] == 0).all()


def test_parameters_of_a_function_are_data():
    def turn(rate, x, t):
        return rate * jnp.stack([-x[1], x[0]])

    evaluate = jax.jit(lambda field, x: field.evaluate(x, jnp.float32(0)).value)
    x = jnp.asarray(P.T, jnp.float32)
    one = evaluate(jt.AnalyticField(Partial(turn, jnp.float32(1)), dim=2), x)
    two = evaluate(jt.AnalyticField(Partial(turn, jnp.float32(2)), dim=2), x)
    assert np.allclose(2 * one, two)
    assert evaluate._cache_size() == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jt.AnalyticField(flows.rotation, dim=4), "expected 2 or 3"),
        (lambda: jt.AnalyticField(flows.rotation, dim=2, bounds=[[0, 0], [1, 0]]), "along axis 1"),
        (
            lambda: jt.AnalyticField(flows.rotation, dim=2) + jt.AnalyticField(flows.abc, dim=3),
            "different",
        ),
        (lambda: jt.AnalyticField(flows.rotation, dim=2) * [1.0, 2.0, 3.0], "factor has shape"),
        (lambda: jt.AnalyticField(flows.rotation, dim=2).sample(P[:, :1], 0.0), "positions"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(FieldError, match=message):
        make()
