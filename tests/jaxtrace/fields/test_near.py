"""Values kept around particles: the same numbers as without, read far less often."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import jaxtrace as jt
from jaxtrace.fields import Stream, _near
from jaxtrace.fields._near import Near, _queue, _words
from jaxtrace.tracking.boundary import continuous_inlet_boundary_factory

TIMES = np.linspace(0.0, 4.0, 6)


def flow(dim: int, slices: int = 6) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(dim)
    axes = tuple(np.linspace(0.0, 1.0, 7 + i) for i in range(dim))
    shape = (slices, *(len(a) for a in axes), dim)
    return rng.normal(size=shape).astype(np.float32), axes


@given(npst.arrays(bool, st.integers(1, 200)), st.integers(1, 70))
def test_a_queue_lists_what_is_set_and_then_what_does_not_exist(flags, spare):
    queue, total = _queue(_words(jnp.asarray(flags)), spare)
    assert int(total) == flags.sum()
    np.testing.assert_array_equal(queue[: int(total)], np.flatnonzero(flags))
    rest = np.asarray(queue[int(total) :])
    assert (rest >= len(flags)).all()
    assert len(np.unique(rest)) == len(rest) >= spare


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("slices", [1, 6])
def test_samples_along_tracks_are_those_without_a_hint(dim, slices):
    data, axes = flow(dim, slices)
    field = jt.StructuredField(data, axes, TIMES if slices > 1 else None, outside="clamp")
    evaluate = jax.jit(lambda field, x, t, hint: field.evaluate(x, t, hint))
    rng = np.random.default_rng(0)
    n = 500
    x = rng.uniform(-0.1, 1.1, (dim, n)).astype(np.float32)
    hint = field.first_hint(n)
    assert isinstance(hint, Near)
    for t in np.linspace(0.0, 4.5, 12, dtype=np.float32):
        x = x + rng.normal(size=x.shape).astype(np.float32) * (0.5 if t > 3 else 0.02)
        x[:, 0] = np.nan
        kept = evaluate(field, x, t, hint)
        plain = evaluate(field, x, t, None)
        assert plain.hint is None
        np.testing.assert_array_equal(kept.value, plain.value)
        np.testing.assert_array_equal(kept.status, plain.status)
        hint = kept.hint


def test_only_what_moved_is_read_again():
    n = 1000
    read, old = [], np.arange(n)
    near = Near(
        jnp.asarray(old, jnp.int32),
        jnp.zeros(n, jnp.int32),
        (jnp.asarray(-old[None], jnp.float32),),
    )

    def values(cell):
        jax.debug.callback(lambda c: read.extend(np.asarray(c).tolist()), cell)
        return (cell[None].astype(jnp.float32),)

    moved = np.array([3, 500, 999])
    cell = old.copy()
    cell[moved] += 7
    after = _near.refresh(near, jnp.asarray(cell, jnp.int32), jnp.int32(0), values)
    jax.block_until_ready(after)
    jax.effects_barrier()
    expected = np.where(np.isin(old, moved), cell, -old)
    np.testing.assert_array_equal(after.values[0][0], expected)
    assert set(moved + 7) <= set(read)
    assert len(read) <= 64, "one block"
    whole = _near.refresh(near, jnp.asarray(old, jnp.int32), jnp.int32(1), values)
    np.testing.assert_array_equal(whole.values[0][0], old)
    np.testing.assert_array_equal(whole.slice, np.ones(n))


def test_tracks_are_those_of_a_field_that_keeps_nothing(monkeypatch):
    data, axes = flow(3)
    seeds = np.random.default_rng(1).uniform(0.1, 0.9, (200, 3))
    whole = jt.StructuredField(data, axes, TIMES)
    parts = whole * 0.5 + whole * 0.5
    streamed = jt.StructuredField(Stream(lambda i: data[i], window=3), axes, TIMES)

    def tracks(field, **options):
        tracker = jt.create_tracker(field=field, key=0, **options)
        return np.asarray(tracker.track_particles(seeds, (0.0, 4.0), 100).positions)

    kept, of_parts, of_stream = tracks(whole), tracks(parts), tracks(streamed)
    inlet = continuous_inlet_boundary_factory([[0.0] * 3, [1.0] * 3])
    through = tracks(whole, boundary_condition=inlet)
    monkeypatch.setattr(jt.StructuredField, "first_hint", lambda self, n, *, values=True: None)
    plain = jt.StructuredField(data, axes, TIMES)
    np.testing.assert_array_equal(kept, tracks(plain))
    np.testing.assert_array_equal(kept, of_stream)
    np.testing.assert_allclose(of_parts, kept, atol=1e-4)
    np.testing.assert_array_equal(through, tracks(plain, boundary_condition=inlet))


def test_nothing_is_kept_where_it_does_not_help():
    data, axes = flow(2)
    assert jt.StructuredField(data, axes, TIMES, method="cubic").first_hint(5) is None
    assert jt.StructuredField(data, axes, TIMES, time_method="cubic").first_hint(5) is None
    field = jt.StructuredField(data, axes, TIMES)
    assert field.first_hint(5, values=False) is None
    most = _near.KEPT_BYTES // (2 * 2 * 4 * 4)  # two components, two slices, four corners
    assert field.first_hint(most + 1) is None, "more than caches hold"
    hint = field.first_hint(3)
    each = field.evaluate(jnp.full((2, 3), 0.5), jnp.array([0.0, 1.0, 2.0]), hint)
    assert each.hint is hint, "particles with clocks of their own"
