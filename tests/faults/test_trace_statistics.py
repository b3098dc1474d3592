"""Functions of all particles see exactly those that were seeded."""

from __future__ import annotations

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxtrace as jt
import worldloom as wl
from jaxtrace import Status
from jaxtrace.tracking.boundary import continuous_inlet_boundary_factory


def shear(x, t):
    return jnp.stack([1.0 + x[1], 0.1 * x[0]])


def count(particles):
    return jnp.int32(particles.x.shape[1])


def mean_x(particles):
    return particles.x[0].mean()


def numbers(particles):
    return particles.number


def moments(particles):
    return {"least": particles.x.min(axis=1), "living": particles.alive.sum(dtype=jnp.int32)}


ALL = {"count": count, "mean": mean_x, "numbers": numbers, "moments": moments}


def seeds_of(n):
    return np.stack([np.arange(n) * 10.0, np.linspace(-1, 1, n)], axis=1)


def follow(n, devices, sink=None, **options):
    field = jt.AnalyticField(shear, dim=2)
    tracker = jt.create_tracker("euler", field=field, device_count=devices, **options)
    return tracker.track_particles(
        seeds_of(n), (0.0, 1.0), 5, save_every=2, statistics=ALL, sink=sink
    )


def test_three_particles_on_two_devices_have_the_mean_of_three():
    tracks = follow(3, 2)
    assert np.array_equal(tracks.statistics["count"], [3, 3, 3, 3])
    assert tracks.statistics["mean"][0] == 10.0


@settings(max_examples=8)
@given(
    n=st.integers(1, 9),
    kind=st.sampled_from(["memory", "npy", "zarr", "inlet"]),
    batch=st.sampled_from([None, 100]),
)
def test_statistics_do_not_depend_on_devices_and_sinks(n, kind, batch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sink")
    sink = {"npy": wl.NpySink(folder / "a"), "zarr": wl.ZarrSink(folder / "a.zarr")}.get(kind)
    options = {"batch_size": batch}
    if kind == "inlet":
        box = [[-1.0, -30.0], [60.0, 30.0]]
        walls = continuous_inlet_boundary_factory(box, inlet_distribution="grid")
        options["boundary_condition"] = walls
    one, two = follow(n, 1, **options), follow(n, 2, sink, **options)
    for name in ("count", "numbers"):
        assert np.array_equal(two.statistics[name], one.statistics[name])
    assert np.array_equal(two.statistics["count"], np.full(4, n))
    assert np.allclose(two.statistics["mean"], one.statistics["mean"], rtol=1e-6)
    for name, value in one.statistics["moments"].items():
        assert np.allclose(two.statistics["moments"][name], value, rtol=1e-6)
    x = np.asarray(two.positions, np.float64)[..., 0]
    assert np.allclose(two.statistics["mean"], x.mean(axis=1), rtol=1e-5)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_a_rule_that_deletes_sees_all_particles_and_no_others(n):
    def above_the_mean(particles):
        return particles.x[0] > particles.x[0].mean()

    ends = [follow(n, d, delete_when=above_the_mean).status[-1] for d in (1, 2)]
    assert np.array_equal(ends[0], ends[1])
    assert (ends[0] == Status.DELETED).any()


def test_a_rule_of_the_wrong_shape_is_named():
    with pytest.raises(jt.TraceError, match=r"delete_when gives shape \[2\]; expected .* 3"):
        follow(3, 2, delete_when=lambda p: p.x[0][:2] > 0)
