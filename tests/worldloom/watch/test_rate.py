from __future__ import annotations

import time

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import pytest

from worldloom import watch
from worldloom.watch import _rate


class Clock:
    """Time that passes only when told to."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_rate, "time", clock)
    return clock


STEP = 1e-3


def simulate(rate, clock, calls, *, how, length=256, call=4e-3, first=0):
    """A chunk of steps of 1 ms with a sink; returns the share of time spent in the sink.

    `how`: "host" asks `due` every step; "carry" uses the newest period from step to step;
    "chunk" the one that was in force when the chunk began.
    """
    started, spent = clock.now, 0.0
    every = rate.every
    for t in range(first, first + length):
        clock.now += STEP
        if how == "host":
            due = rate.due()
        else:
            due = t % every == 0
        if due:
            seconds = call() if callable(call) else call
            clock.now += seconds
            spent += seconds
            calls.append(t)
            after = rate.observe(seconds, steps=None if how == "host" else every)
            if how == "carry":
                every = after
    return spent / (clock.now - started)


WAYS = ["host", "carry", "chunk"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("fraction", [0.02, 0.05, 0.2])
def test_a_sink_of_80_percent_settles_under_its_budget_within_two_chunks(clock, how, fraction):
    rate = watch.Rate(fraction=fraction)
    assert rate.every == 1
    before = simulate(rate, clock, [], how=how)
    if how == "chunk":
        assert before > 0.7
    simulate(rate, clock, [], how=how, first=256)
    calls = []
    shares = [simulate(rate, clock, calls, how=how, first=256 * i) for i in range(2, 10)]
    share = sum(shares) / len(shares)
    assert share <= fraction
    assert calls  # it has not fallen silent
    assert share >= fraction / 4


@pytest.mark.parametrize("how", WAYS)
def test_a_budget_per_step_needs_no_step_time(clock, how):
    rate = watch.Rate(budget_ms=0.5)
    for _ in range(2):
        simulate(rate, clock, [], how=how, call=4e-3)
    assert rate.every == 9
    calls = []
    simulate(rate, clock, calls, how=how, call=4e-3, first=9)
    assert len(calls) in (28, 29)


@pytest.mark.parametrize("how", WAYS)
def test_it_rises_again_when_calls_are_fast(clock, how):
    rate = watch.Rate(fraction=0.05)
    for _ in range(3):
        simulate(rate, clock, [], how=how)
    assert rate.every > 50
    for _ in range(12):
        simulate(rate, clock, [], how=how, call=1e-6)
    assert rate.every == 1


@pytest.mark.parametrize("how", WAYS)
def test_one_slow_first_call_does_not_silence_it(clock, how):
    rate = watch.Rate(fraction=0.05)
    times = iter([2.0])
    for _ in range(2):
        simulate(rate, clock, [], how=how, call=lambda: next(times, 1e-6))
    assert rate.every == 1


def test_a_pause_of_the_user_does_not_count_as_step_time(clock):
    rate = watch.Rate(fraction=0.05)
    for _ in range(4):
        simulate(rate, clock, [], how="host", length=500)
    before = rate.every
    clock.now += 3600
    simulate(rate, clock, [], how="host", length=500)
    assert rate.every >= before / 4


def test_the_stricter_budget_counts(clock):
    both = watch.Rate(fraction=0.5, budget_ms=0.5)
    for _ in range(3):
        simulate(both, clock, [], how="host")
    assert both.every == 9


def test_the_slowest_period_is_kept(clock):
    rate = watch.Rate(budget_ms=1e-6, slowest=50)
    for _ in range(5):
        simulate(rate, clock, [], how="host")
    assert rate.every == 50


@hypothesis.given(
    st.lists(st.floats(0, 100), min_size=1, max_size=40), st.sampled_from([0.01, 0.5])
)
def test_the_period_is_always_sane(seconds, fraction):
    rate = watch.Rate(fraction=fraction, slowest=1000)
    for call in seconds:
        before = rate.every
        after = rate.observe(call, steps=before)
        assert after == rate.every
        assert 1 <= after <= 1000
        assert before // 2 <= after <= 8 * before


def test_wrong_budgets_are_named():
    for options in ({}, {"fraction": 0.0}, {"fraction": 1.5}, {"budget_ms": -1.0}):
        with pytest.raises(watch.RateError, match=r"fraction|budget_ms"):
            watch.Rate(**options)
    with pytest.raises(watch.RateError, match="slowest is 0"):
        watch.Rate(fraction=0.1, slowest=0)
    assert repr(watch.Rate(fraction=0.1)) == "Rate(fraction=0.1, every=1)"


# In real programs. Times of a shared machine mean little; what is asserted is that a slow
# callback is called far less often than it could be, without a second compilation.


def slow(x):
    time.sleep(2e-3)


LENGTH = 200
WEIGHTS = jnp.ones((64, 64)) / 64


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("vmapped", [False, True], ids=["plain", "vmap"])
def test_inside_one_program(how, vmapped):
    watch.reset_statistics()
    rate = watch.Rate(budget_ms=0.1)
    traces = []

    def look(x, t, every):
        options = {} if how == "host" else {"step": t, "every": every}
        return watch.callback(slow, x, rate=rate, batched=True, **options)

    if vmapped:
        look = jax.vmap(look, in_axes=(0, None, None), out_axes=None)

    @jax.jit
    def program(x, every):
        traces.append(None)

        def body(carry, t):
            x, every = carry
            x = jnp.tanh(x @ WEIGHTS)
            after = look(x, t, every)
            return (x, after if how == "carry" else every), None

        return jax.lax.scan(body, (x, every), jnp.arange(LENGTH))[0]

    x = jnp.ones((4, 64))
    chunks = 3
    for _ in range(chunks):
        jax.block_until_ready(program(x, jnp.int32(rate.every)))
        jax.effects_barrier()
    row = watch.statistics()["slow"]
    assert len(traces) == 1
    assert rate.every >= 20
    if how == "chunk":  # the first chunk does not know better
        assert LENGTH < row["total_calls"] <= LENGTH + 2 * LENGTH // 20
    else:
        assert 2 < row["total_calls"] <= chunks * LENGTH // 5
    assert row["skipped"] == (chunks * LENGTH - row["total_calls"] if how == "host" else 0)


def test_a_step_that_python_calls_needs_nothing_threaded():
    watch.reset_statistics()
    rate = watch.Rate(budget_ms=0.1)

    @jax.jit
    def step(x):
        watch.callback(slow, x, rate=rate)
        return x + 1

    x = jnp.zeros(3)
    for _ in range(200):
        x = step(x)
    jax.effects_barrier()
    row = watch.statistics()["slow"]
    assert row["total_calls"] + row["skipped"] == 200
    assert row["total_calls"] <= 40
    assert step._cache_size() == 1
