from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace import Status
from jaxtrace.tracking import boundary as bc

BOX = [[-1.0, 0.0, 2.0], [1.0, 0.5, 5.0]]
LOW, HIGH = np.array(BOX)
number = st.floats(-20, 20, width=32)
place = st.tuples(number, number, number)


def land(boundary, old, new, step=0):
    n = np.shape(old)[0]
    draw = bc.Draw(jax.random.key(0), jnp.arange(n, dtype=jnp.int32), jnp.int32(step))
    as_rows = lambda a: jnp.asarray(np.asarray(a, np.float32).T)  # noqa: E731
    x, status, reseed = boundary.apply(as_rows(old), as_rows(new), draw)
    return np.asarray(x).T, np.asarray(status), np.asarray(reseed)


@pytest.mark.parametrize(
    "make", [bc.reflective_boundary, bc.periodic_boundary, bc.clamping_boundary]
)
@hypothesis.given(st.lists(place, min_size=5, max_size=5))
def test_nobody_is_outside_and_who_was_inside_stays(make, places):
    places = np.array(places)
    out = np.asarray(make(BOX)(places))
    assert (out >= LOW.astype(np.float32)).all()
    assert (out <= HIGH.astype(np.float32)).all()
    inside = ((places > LOW + 1e-3) & (places < HIGH - 1e-3)).all(1)
    assert np.allclose(out[inside], places[inside], atol=1e-5)


@hypothesis.given(st.lists(place, min_size=5, max_size=5))
def test_folding_and_wrapping_agree_with_their_definitions(places):
    places = np.array(places)
    span = HIGH - LOW
    wrapped = LOW + np.mod(places - LOW, span)
    gap = np.abs(np.asarray(bc.periodic_boundary(BOX)(places)) - wrapped)
    assert (np.minimum(gap, span - gap) < 1e-4).all()
    folded = LOW + span - np.abs(np.mod(places - LOW, 2 * span) - span)
    assert np.allclose(bc.reflective_boundary(BOX)(places), folded, atol=1e-4)


def test_who_is_absorbed_ends_on_the_wall_it_met_first():
    x, status, _ = land(
        bc.absorbing_boundary(BOX), [[0, 0.25, 3], [0, 0.25, 3]], [[4, 0.3, 3], [0.5, 0.3, 3]]
    )
    assert status.tolist() == [Status.ABSORBED, 0]
    assert np.allclose(x[0], [1.0, 0.2625, 3.0], atol=1e-5)


def test_each_face_has_its_rule():
    box = bc.mixed_boundary(
        BOX, {"x-": "reflect", "x+": "exit", "y": "wrap", "z-": "clamp", "z+": "absorb"}
    )
    new = [[-1.2, 0.2, 3], [2, 0.2, 3], [0, 0.6, 3], [0, 0.2, 1], [0, 0.2, 9]]
    x, status, _ = land(box, [[0, 0.2, 3]] * 5, new)
    assert status.tolist() == [0, Status.EXITED, 0, 0, Status.ABSORBED]
    wanted = [[-0.8, 0.2, 3], [1, 0.2, 3], [0, 0.1, 3], [0, 0.2, 2], [0, 0.2, 5]]
    assert np.allclose(x, wanted, atol=1e-5)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("rule", ["reflect", "clamp", "absorb"])
def test_spheres_and_cylinders_keep_their_side(inside, rule):
    new = np.random.default_rng(0).uniform(-1.9, 1.9, (200, 3))
    for make, across in ((bc.sphere_boundary, [0, 1, 2]), (bc.cylinder_boundary, [0, 1])):
        x, status, _ = land(make([0, 0, 0], 1.0, rule=rule, inside=inside), 0 * new, new)
        before, after = (np.linalg.norm(a[:, across], axis=1) for a in (new, x))
        beyond = before > 1 if inside else before < 1
        assert np.allclose(x[~beyond], new[~beyond], atol=1e-6)
        wanted = np.abs(2 - before) if rule == "reflect" else np.ones(200)
        clear = beyond & (before > 1e-3) & (before < 2)
        assert np.allclose(after[clear], wanted[clear], atol=1e-4)
        assert ((status == Status.ABSORBED) == (beyond & (rule == "absorb"))).all()
        if across == [0, 1]:
            assert np.allclose(x[:, 2], new[:, 2])


@pytest.mark.parametrize("distribution", ["uniform", "gaussian", "grid"])
@pytest.mark.parametrize("direction", ["positive", "negative"])
def test_an_inlet_gives_slots_to_new_particles(distribution, direction):
    box = bc.continuous_inlet_boundary_factory(
        BOX, "x", direction, distribution, concentrations={"y": 4, "z": 8}
    )
    sign = 1 if direction == "positive" else -1
    n = 4000
    old = np.tile([0, 0.2, 3], (n, 1))
    new = old + np.array([sign * 1.5, 0, 0]) * (np.arange(n) % 3 == 0)[:, None]
    x, status, reseed = land(box, old, new)
    assert (status == 0).all()
    assert (reseed == (np.arange(n) % 3 == 0)).all()
    assert np.allclose(x[~reseed], old[~reseed])
    entered = x[reseed]
    assert (entered[:, 0] == -sign).all()
    part = (entered[:, 1:] - LOW[1:]) / (HIGH - LOW)[1:]
    assert ((part >= 0) & (part <= 1)).all()
    assert np.allclose(part.mean(0), 0.5, atol=0.05)
    spread = {"uniform": 12**-0.5, "gaussian": 1 / 6, "grid": 12**-0.5}[distribution]
    assert np.allclose(part.std(0), spread, atol=0.05)
    if distribution == "grid":
        assert len(np.unique(part.round(4), axis=0)) == 32


def test_tracks_through_an_inlet_count_generations_and_ages():
    field = jt.AnalyticField(lambda x, t: jnp.array([1.0, 0.0]), dim=2)
    box = [[0, 0], [1, 1]]
    tracker = jt.create_tracker(
        "rk4", field=field, boundary_condition=bc.continuous_inlet_boundary_factory(box)
    )
    tracks = tracker.track_particles([[0.05, 0.5], [0.55, 0.5], [0.25, 0.5]], (0.0, 3.0), 30)
    assert tracks.generations[-1].tolist() == [3, 3, 3]
    assert tracks.counts() == {Status.ALIVE: 3}
    assert np.allclose(tracks.path_length(), 3.0, atol=0.35)
    first = np.argmax(tracks.generations[:, 1] == 1)
    assert tracks.ages[first, 1] == 0.0
    assert tracks.positions[first, 1, 0] == 0.0


def test_an_outlet_ends_and_flow_through_ends_at_both():
    field = jt.AnalyticField(lambda x, t: jnp.stack([jnp.sign(x[0]), 0.0]), dim=2)
    box = [[-1, 0], [1, 1]]
    seeds = [[0.5, 0.5], [-0.5, 0.5]]
    ends = []
    for make in (bc.inlet_outlet_boundary_factory, bc.flow_through_boundary_factory):
        tracker = jt.create_tracker(
            "rk4", field=field, boundary_condition=make(box, "x", "positive")
        )
        ends.append(tracker.track_particles(seeds, (0.0, 1.0), 20).status[-1].tolist())
    assert ends == [[Status.EXITED, Status.ALIVE], [Status.EXITED, Status.EXITED]]


def test_parts_apply_one_after_the_other():
    both = bc.compose_boundaries(
        bc.reflective_boundary(BOX),
        bc.sphere_boundary([0, 0.25, 3], 0.2, inside=False, rule="absorb"),
    )
    x, status, _ = land(both, [[0.5, 0.25, 3]] * 2, [[0.1, 0.25, 3], [1.2, 0.25, 3]])
    assert status.tolist() == [Status.ABSORBED, 0]
    assert np.allclose(x, [[0.2, 0.25, 3], [0.8, 0.25, 3]], atol=1e-5)


def test_a_periodic_domain_with_a_periodic_field_has_no_seam():
    x = np.linspace(0, 1, 33)
    data = np.zeros((1, 33, 33, 2))
    data[..., 0] = (1.5 + np.sin(2 * np.pi * x))[:, None]
    field = jt.StructuredField(data, (x, x), period=(1.0, None))
    tracker = jt.create_tracker(
        "rk4",
        field=field,
        boundary_condition=bc.mixed_boundary([[0, 0], [1, 1]], {"x": "wrap", "y": "reflect"}),
    )
    seeds = np.stack([np.linspace(0, 0.999, 50), np.full(50, 0.5)], 1)
    end = tracker.track_particles(seeds, (0.0, 0.8), 40, save_every=40).positions[-1, :, 0]
    rhs = lambda t, y: 1.5 + np.interp(np.mod(y, 1), x, np.sin(2 * np.pi * x))  # noqa: E731
    from scipy.integrate import solve_ivp

    wanted = solve_ivp(rhs, (0, 0.8), seeds[:, 0], rtol=1e-8, atol=1e-10).y[:, -1]
    gap = np.abs(np.mod(end - wanted + 0.5, 1) - 0.5)
    assert gap.max() < 1e-4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bc.reflective_boundary([[0, 0], [1, -1]]), "along axis 1"),
        (lambda: bc.mixed_boundary(BOX, {"x": "reflect"}), "no rule for"),
        (lambda: bc.mixed_boundary(BOX, {"x": "bounce", "y": "clamp", "z": "clamp"}), "expected 3"),
        (lambda: bc.mixed_boundary(BOX, {"q": "clamp"}), "'q'"),
        (lambda: bc.continuous_inlet_boundary_factory(BOX, "w"), "flow_axis='w'"),
        (lambda: bc.continuous_inlet_boundary_factory(BOX, "x", "up"), "flow_direction='up'"),
        (lambda: bc.sphere_boundary([0, 0, 0], -1.0), "radius=-1.0"),
    ],
)
def test_bad_boundaries_are_named(make, message):
    with pytest.raises(jt.TraceError, match=message):
        make()
