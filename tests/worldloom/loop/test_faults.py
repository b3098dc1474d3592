from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import worldloom as wl


def grow(x, t):
    """Worlds that double: world i begins at i, so that large ones burst first."""
    return x * 2, x


START = jnp.arange(5, dtype=jnp.float32)
CHECKS = {
    "too large": lambda x: x > 100,
    "much too large": lambda x: x > 1000,
}
# x after n steps is i * 2**n: world 4 passes 100 at step 5, 2 and 3 at 6, 1 at 7, 0 never.
BURSTS = {1: 7, 2: 6, 3: 6, 4: 5}


def test_stop_ends_the_run_at_the_step_and_says_which_world():
    with pytest.raises(wl.FaultError, match="world 4: too large, at step 5") as caught:
        wl.run(grow, START, length=20, checks=CHECKS, save=wl.Every())
    result = caught.value.result
    assert result.steps == 5
    assert result.faults == (wl.Fault(4, 5, "too large"),)
    assert result.state.tolist() == [i * 32 for i in range(5)]
    assert result.records.shape == (5, 5)


def test_stop_counts_the_others():
    with pytest.raises(wl.FaultError, match=r"world 0: too large, at step 1 \(and 1 more\)"):
        wl.run(grow, jnp.array([60.0, 70.0, 1.0]), length=9, checks=CHECKS)


@pytest.mark.parametrize("chunk_steps", [None, 1, 3])
def test_keep_goes_on_and_reports_the_first_failure_of_each_world(chunk_steps):
    result = wl.run(grow, START, length=12, checks=CHECKS, on_fault="keep", chunk_steps=chunk_steps)
    assert result.state.tolist() == [i * 2.0**12 for i in range(5)]
    assert result.faults == tuple(wl.Fault(w, n, "too large") for w, n in BURSTS.items())


def test_drop_freezes_a_world_in_its_last_good_state():
    result = wl.run(grow, START, length=12, checks=CHECKS, on_fault="drop")
    last_good = [0] + [i * 2.0 ** (BURSTS[i] - 1) for i in range(1, 5)]
    assert result.state.tolist() == last_good
    assert result.faults == tuple(wl.Fault(w, n, "too large") for w, n in BURSTS.items())


def test_drop_needs_worlds_in_front():
    with pytest.raises(wl.StepError, match=r"state\['total'\] has shape \[\]"):
        wl.run(
            lambda s, t: ({"x": s["x"] * 2, "total": s["x"].sum()}, None),
            {"x": START, "total": jnp.float32(0)},
            length=3,
            checks={"bad": lambda s: s["x"] > 3},
            on_fault="drop",
        )


def test_a_check_may_be_one_for_the_whole_state():
    with pytest.raises(wl.FaultError, match=r"^sum too large, at step 4$") as caught:
        wl.run(grow, START, length=9, checks={"sum too large": lambda x: x.sum() > 100})
    assert caught.value.result.faults[0].world is None


def test_nan_in_one_world_is_found():
    def poison(x, t):
        return jnp.where((jnp.arange(3) == 1) & (t == 6), jnp.nan, x), None

    result = wl.run(
        poison, jnp.zeros(3), length=10, checks={"not a number": jnp.isnan}, on_fault="drop"
    )
    assert result.faults == (wl.Fault(1, 7, "not a number"),)
    assert np.isfinite(result.state).all()


def test_checks_of_different_shapes_or_types_are_refused():
    with pytest.raises(wl.StepError, match=r"'b' has shape \[\], but the first check has \[5\]"):
        wl.run(grow, START, length=2, checks={"a": lambda x: x > 1, "b": lambda x: x.sum() > 1})
    with pytest.raises(wl.StepError, match="'a' returns float32; expected bool"):
        wl.run(grow, START, length=2, checks={"a": lambda x: x})
