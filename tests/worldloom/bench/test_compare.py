from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import pytest

from worldloom import bench

# Short samples fit between the time slices that a busy machine gives to others.
QUICK = {"rounds": 9, "seconds": 3e-4}


def spin(seconds):
    """A function that keeps this thread busy for so long."""

    def busy():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    return busy


def test_a_known_ratio_is_found():
    variants = {"slow": spin(9e-4), "fast": spin(3e-4)}
    result = bench.compare(variants, rounds=41, seconds=3e-4, items=30)
    ratio = result.ratio("fast")
    assert 2.4 < ratio.value < 3.6
    assert ratio.low <= ratio.value <= ratio.high
    assert 9e-4 <= result["slow"].best <= result["slow"].median
    assert result["slow"].busy > 4e-4
    assert result["fast"].rate == pytest.approx(30 / result["fast"].median)
    assert result.ratio("slow") == bench.Ratio(1.0, 1.0, 1.0)
    assert result.failures == {}


def test_variants_that_do_different_amounts_are_compared_by_rate():
    result = bench.compare(
        {"one": spin(3e-4), "ten": spin(6e-4)}, items={"one": 1, "ten": 10}, **QUICK
    )
    assert 3.5 < result.ratio("ten").value < 7


def test_the_work_is_waited_for_not_its_enqueueing():
    class Late:
        def block_until_ready(self):
            spin(1e-3)()

    result = bench.compare({"late": lambda: {"deep": [Late()]}, "now": lambda: None}, **QUICK)
    assert result["late"].best >= 1e-3
    assert result["now"].best < 1e-3


def test_a_variant_that_hides_unfinished_arrays_is_refused():
    long = jax.jit(lambda x: jax.lax.fori_loop(0, 4000, lambda _, x: jnp.cos(x @ x), x))
    x = jnp.eye(64)
    long(x).block_until_ready()
    hidden = []
    result = bench.compare({"hides": lambda: hidden.append(long(x))}, rounds=1, seconds=1e-3)
    assert "UnfinishedWorkError" in result.failures["hides"]
    assert "return them" in result.failures["hides"]
    jax.block_until_ready(hidden)


def test_compile_time_is_apart_and_only_in_the_first_call():
    add = jax.jit(lambda x: x + 1)
    x = jnp.ones(3)
    result = bench.compare({"jit": lambda: add(x), "python": lambda: 1 + 1}, **QUICK)
    jit = result["jit"]
    assert jit.first is not None
    assert jit.compiling is not None
    assert 0 < jit.compiling < jit.first
    assert jit.best < jit.compiling
    assert jit.recompiled == 0
    assert result["python"].compiling == 0


def test_programs_built_while_the_clock_runs_are_reported():
    x = jnp.ones(3)
    result = bench.compare({"anew": lambda: jax.jit(lambda x: x + 1)(x)}, **QUICK)
    assert result["anew"].recompiled > 0
    assert "programs were built while the clock ran" in str(result)


def test_a_variant_that_raises_is_a_row_and_the_others_go_on():
    calls = []

    def breaks_later():
        calls.append(1)
        if len(calls) > 3:
            raise RuntimeError("the fourth call")

    variants = {"good": spin(1e-4), "never": lambda: 1 / 0, "later": breaks_later}
    result = bench.compare(variants, rounds=5, seconds=1e-7)
    assert set(result.failures) == {"never", "later"}
    assert len(result["good"].wall) == 5
    assert result["later"].wall == ()
    with pytest.raises(bench.BenchmarkError, match="ZeroDivisionError"):
        result.ratio("never")
    with pytest.raises(bench.BenchmarkError, match="the fourth call"):
        _ = result["later"].best
    text = str(result)
    assert "never failed: ZeroDivisionError" in text
    assert "later failed: RuntimeError: the fourth call" in text


def test_a_failing_baseline_leaves_times_but_no_ratios():
    result = bench.compare({"base": lambda: 1 / 0, "good": spin(1e-4)}, **QUICK)
    assert result["good"].median > 0
    assert "base failed" in str(result)
    with pytest.raises(bench.BenchmarkError, match="ZeroDivisionError"):
        result.ratio("good")


def test_rounds_take_every_variant_in_changing_order():
    seen = []
    names = ["a", "b", "c", "d"]

    def note(name):
        def call():
            seen.append(name)
            time.sleep(2e-4)

        return call

    result = bench.compare({name: note(name) for name in names}, rounds=12, seconds=1e-4)
    assert all(result[name].repeats == 1 for name in names)
    assert seen[:8] == ["a", "a", "b", "b", "c", "c", "d", "d"]  # first call, warm-up
    rounds = [tuple(seen[i : i + 4]) for i in range(8, len(seen), 4)]
    assert len(rounds) == 12
    assert all(sorted(order) == names for order in rounds)
    assert len(set(rounds)) > 6


def test_setup_runs_before_every_call_outside_the_clock():
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    made = []

    def fresh():
        spin(2e-3)()
        made.append(1)
        return jnp.zeros(8)

    result = bench.compare({"donates": step}, setup={"donates": fresh}, rounds=3, seconds=1e-3)
    assert result.failures == {}
    assert result["donates"].median < 2e-3
    assert len(made) >= 3 * result["donates"].repeats + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variants": {}}, "variants is empty"),
        ({"baseline": "b"}, "baseline='b'"),
        ({"rounds": 0}, "rounds=0"),
        ({"seconds": 0.0}, r"seconds=0\.0"),
        ({"items": -1}, "items=-1"),
        ({"items": {"b": 1}}, "items names 'b'"),
        ({"items": {}}, "items lacks a"),
        ({"setup": {"b": int}}, "setup names 'b'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        bench.compare(**{"variants": {"a": int}, **arguments})


def test_a_progress_bar_can_be_shown(capsys):
    bench.compare({"a": int}, rounds=2, seconds=1e-4, title="counting", progress=True)
    assert "counting" not in capsys.readouterr().err  # it is gone when done
    result = bench.compare({"a": int}, rounds=2, seconds=1e-4, title="counting")
    assert "counting" in str(result)
