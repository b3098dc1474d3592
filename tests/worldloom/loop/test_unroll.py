from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import worlds

import worldloom as wl


@pytest.mark.parametrize("remat", [True, False])
@pytest.mark.parametrize("length", [0, 1, 3, 10, 16])
def test_unroll_is_run_without_the_host(length, remat):
    world = worlds.vortex_world(length=length)
    save = {
        "radius": wl.Every(3),
        "where": wl.Every(2, of=lambda s: s.position, initial=True),
        "last": wl.Final(lambda s: s.position),
    }
    ran = wl.run(world.step, world.state, length=length, save=save)
    state, records = jax.jit(
        lambda s: wl.unroll(world.step, s, length=length, save=save, remat=remat)
    )(world.state)
    np.testing.assert_allclose(state.position, ran.state.position, rtol=1e-6)
    for name in save:
        assert records[name].shape == ran.records[name].shape
        np.testing.assert_allclose(records[name], ran.records[name], rtol=1e-6)


def test_unroll_takes_inputs():
    world = worlds.grid_world(length=10)
    ran = wl.run(world.step, world.state, world.inputs, length=10)
    state, _ = wl.unroll(world.step, world.state, jnp.asarray(world.inputs), length=10)
    np.testing.assert_array_equal(state.cells, ran.state.cells)


def pendulum(state, t):
    angle, speed = state
    speed = speed - 0.05 * jnp.sin(angle)
    return (angle + 0.05 * speed, speed), None


@pytest.mark.parametrize("remat", [True, False])
def test_gradients_agree_with_finite_differences(remat):
    def final(angle):
        return wl.unroll(pendulum, (angle, jnp.zeros_like(angle)), length=50, remat=remat)[0][0]

    with jax.enable_x64(True):
        x = jnp.float64(0.7)
        h = 1e-5
        numeric = (final(x + h) - final(x - h)) / (2 * h)
        np.testing.assert_allclose(jax.grad(final)(x), numeric, rtol=1e-8)


def test_rematerialisation_saves_memory():
    def loss(x, remat):
        def step(x, t):
            return jnp.tanh(jnp.sin(x) + jnp.cos(x)), None

        return wl.unroll(step, x, length=400, remat=remat)[0].sum()

    def temporary(remat):
        gradient = jax.jit(jax.grad(lambda x: loss(x, remat)))
        return gradient.lower(jnp.ones(1000)).compile().memory_analysis().temp_size_in_bytes

    assert temporary(True) < temporary(False) / 8
