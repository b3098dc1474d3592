"""Tracks against exact answers, SciPy's DOP853, and the order that each method claims."""

from __future__ import annotations

import flows
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace import Status
from jaxtrace.integrators import DormandPrince
from jaxtrace.tracking.boundary import reflective_boundary

GYRE = np.random.default_rng(0).random((20, 2)) * [1.8, 0.8] + 0.1


def gyre_error(name, steps):
    field = jt.AnalyticField(flows.double_gyre, dim=2)
    end = jt.create_tracker(name, field=field).track_particles(
        GYRE, (0.0, 5.0), steps, save_every=steps
    )
    return np.abs(end.positions[-1] - flows.referee(flows.gyre_numpy, GYRE, (0, 5))).max()


@pytest.mark.parametrize(
    ("name", "order", "steps"), [("euler", 1, 200), ("rk2", 2, 50), ("rk4", 4, 8)]
)
def test_the_error_falls_with_the_order(name, order, steps):
    coarse, fine = gyre_error(name, steps), gyre_error(name, 2 * steps)
    assert abs(np.log2(coarse / fine) - order) < 0.6


def test_the_adaptive_pair_meets_its_tolerance_in_few_steps():
    field = jt.AnalyticField(flows.abc, dim=3)
    seeds = np.random.default_rng(1).random((20, 3)) * 6
    wanted = flows.referee(flows.abc_numpy, seeds, (0, 2))
    loose, tight = (
        np.abs(
            jt.create_tracker(DormandPrince(rtol=r, atol=r), field=field)
            .track_particles(seeds, (0.0, 2.0), 2)
            .positions[-1]
            - wanted
        ).max()
        for r in (1e-3, 1e-6)
    )
    assert tight < 1e-4
    assert tight < loose < 0.2
    rk4 = jt.create_tracker("rk4", field=field).track_particles(seeds, (0.0, 2.0), 200)
    assert np.abs(rk4.positions[-1] - wanted).max() < 1e-4


def test_a_step_that_gets_too_small_is_a_status():
    field = jt.AnalyticField(lambda x, t: jnp.stack([1 / (1.0 - t), 0.0 * t]), dim=2)
    pair = DormandPrince(rtol=1e-6, atol=1e-8, min_step=1e-3)
    tracks = jt.create_tracker(pair, field=field).track_particles([[0.0, 0.0]], (0.0, 2.0), 4)
    assert tracks.counts() == {Status.STEP_TOO_SMALL: 1}


def test_the_adaptive_pair_on_a_grid_agrees_with_small_steps():
    x = np.linspace(0, 2, 41)
    y = np.linspace(0, 1, 21)
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), -1)
    times = np.linspace(0, 5, 11)
    velocity = jax.vmap(jax.vmap(jax.vmap(flows.double_gyre, (0, None)), (0, None)), (None, 0))
    data = velocity(jnp.asarray(grid, jnp.float32), jnp.asarray(times, jnp.float32))
    field = jt.StructuredField(data, (x, y), times)
    ends = [
        jt.create_tracker(i, field=field).track_particles(GYRE, (0.0, 5.0), n, save_every=n)
        for i, n in (("rk4", 500), (DormandPrince(rtol=1e-6, atol=1e-6), 5))
    ]
    assert np.abs(ends[0].positions[-1] - ends[1].positions[-1]).max() < 2e-3
    wanted = flows.referee(flows.gyre_numpy, GYRE, (0, 5))
    assert np.abs(ends[0].positions[-1] - wanted).max() < 2e-2


def test_a_stream_function_is_conserved():
    def taylor_green(x, t):
        u = jnp.sin(x[0]) * jnp.cos(x[1])
        v = -jnp.cos(x[0]) * jnp.sin(x[1])
        return jnp.stack([u, v])

    seeds = np.random.default_rng(2).random((30, 2)) * 3
    tracks = jt.create_tracker("rk4", field=jt.AnalyticField(taylor_green, dim=2)).track_particles(
        seeds, (0.0, 10.0), 400, save_every=40
    )
    psi = np.sin(tracks.positions[..., 0]) * np.sin(tracks.positions[..., 1])
    assert np.abs(psi - psi[0]).max() < 1e-5


def test_diffusion_has_the_variance_2Kt():
    field = jt.AnalyticField(lambda x, t: jnp.zeros(3), dim=3)
    k = np.array([0.1, 0.4, 0.0])
    tracks = jt.create_tracker("euler", field=field, diffusivity=k).track_particles(
        np.zeros((20000, 3)), (0.0, 2.0), 20, save_every=10
    )
    for row, t in ((1, 1.0), (2, 2.0)):
        variance = tracks.positions[row].var(axis=0)
        assert np.allclose(variance, 2 * k * t, rtol=0.05)  # five sigma of 20000 samples
        assert np.abs(tracks.positions[row].mean(axis=0)).max() < 0.05


def test_a_well_mixed_tracer_stays_well_mixed():
    """A scheme without the slope of the diffusivity gathers particles where it is low."""
    still = jt.AnalyticField(lambda x, t: jnp.zeros(2), dim=2)
    k = jt.AnalyticField(lambda x, t: 0.02 + 0.08 * x[0] * (1 - x[0]), dim=2)
    box = [[0.0, 0.0], [1.0, 1.0]]
    seeds = jt.random_seeds(20000, box)
    tracks = jt.create_tracker(
        "euler", field=still, diffusivity=k, boundary_condition=reflective_boundary(box)
    ).track_particles(seeds, (0.0, 4.0), 400, save_every=400)
    counts, _ = np.histogram(np.asarray(tracks.positions)[-1, :, 0], bins=10, range=(0, 1))
    assert np.abs(counts / 2000 - 1).max() < 0.1


def test_float64_is_not_ignored():
    field32 = jt.AnalyticField(flows.abc, dim=3)
    seeds = np.random.default_rng(1).random((5, 3))
    with jax.enable_x64(True):
        from jaxtrace import _config

        _config._settings = _config.Settings(dtype="float64")
        field = jt.AnalyticField(flows.abc, dim=3)
        tracks = jt.create_tracker("rk4", field=field, device_count=1).track_particles(
            seeds, (0.0, 1.0), 400, save_every=400
        )
        wanted = flows.referee(flows.abc_numpy, seeds, (0, 1))
        assert tracks.positions.dtype == np.float64
        assert np.abs(tracks.positions[-1] - wanted).max() < 1e-9
    assert field32.components == 3
