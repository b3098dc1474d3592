from __future__ import annotations

import dataclasses
import time

import pytest

from worldloom import bench

MACHINE = bench.Machine("cpu", 2, 2**34, "Linux", "1 x cpu", {"jax": "0"}, 0.2)


def measured(baseline="base", cpu="cpu", **walls):
    """A comparison in which each variant took so many seconds in each round."""
    timings = tuple(
        bench.Timing(name, None, 1, (), (), None, None, error=wall)
        if isinstance(wall, str)
        else bench.Timing(name, None, 1, tuple(wall), tuple(wall), None, None)
        for name, wall in walls.items()
    )
    machine = dataclasses.replace(MACHINE, cpu=cpu)
    return bench.Comparison("speed", baseline, "items", timings, machine, "now")


CLEAN = measured(base=[4.0] * 9, ours=[1.0] * 9)
NOISY = [0.5, 0.6, 0.8, 0.9, 1.0, 1.2, 1.4, 1.8, 2.2]


def test_the_same_again_passes():
    result = bench.gate(CLEAN, CLEAN)
    assert result.passed
    assert [check.verdict for check in result.checks] == ["kept"]
    assert result.checks[0].limit == pytest.approx(4.0 * 0.9)


@pytest.mark.parametrize(("seconds", "passes"), [(1.10, True), (1.12, False)])
def test_the_tolerance_is_the_limit_where_there_is_no_noise(seconds, passes):
    now = measured(base=[4.0] * 9, ours=[seconds] * 9)
    if passes:
        assert bench.gate(now, CLEAN).passed
    else:
        with pytest.raises(bench.RegressionError):
            bench.gate(now, CLEAN)


def test_a_fall_within_the_noise_of_either_side_passes():
    fallen = [1.3 * t for t in NOISY]
    noisy = measured(base=[4.0] * 9, ours=NOISY)
    assert bench.gate(measured(base=[4.0] * 9, ours=fallen), CLEAN).passed
    assert bench.gate(measured(base=[4.0] * 9, ours=[1.3] * 9), noisy).passed
    with pytest.raises(bench.RegressionError):
        bench.gate(measured(base=[4.0] * 9, ours=[1.3] * 9), CLEAN)
    with pytest.raises(bench.RegressionError):
        bench.gate(measured(base=[4.0] * 9, ours=[5.0 * t for t in NOISY]), noisy)


def test_a_slower_machine_is_no_regression():
    slow = measured(cpu="an old one", base=[40.0] * 9, ours=[10.0] * 9)
    result = bench.gate(slow, CLEAN)
    assert result.passed
    assert result.notes == ("measured on an old one, expected on cpu",)


def test_the_error_has_the_name_both_ratios_and_the_limit():
    now = measured(base=[4.0] * 9, ours=[2.0] * 9)
    with pytest.raises(bench.RegressionError) as caught:
        bench.gate(now, CLEAN)
    message = str(caught.value)
    assert "speed: slower" in message
    assert "ours: slower, 2.00x (2.00-2.00); it was 4.00x (4.00-4.00), limit 3.6x" in message
    assert not caught.value.result.passed


def test_names_that_come_and_go_are_reported():
    now = measured(base=[4.0] * 9, ours=[1.0] * 9, fresh=[2.0] * 9)
    then = measured(base=[4.0] * 9, ours=[1.0] * 9, lost=[2.0] * 9)
    result = bench.gate(now, CLEAN)
    assert {c.name: c.verdict for c in result.checks} == {"ours": "kept", "fresh": "new"}
    assert "fresh: new" in str(result)
    with pytest.raises(bench.RegressionError, match=r"lost: vanished; it was 2\.00x"):
        bench.gate(now, then)


def test_a_variant_that_fails_now_does_not_pass():
    now = measured(base=[4.0] * 9, ours="RuntimeError: no")
    with pytest.raises(bench.RegressionError, match="ours: failed"):
        bench.gate(now, CLEAN)
    dead = measured(base="RuntimeError: no", ours=[1.0] * 9)
    with pytest.raises(bench.RegressionError, match="base: failed"):
        bench.gate(dead, CLEAN)


def test_ratios_to_different_baselines_are_not_compared():
    with pytest.raises(ValueError, match="baseline='base'"):
        bench.gate(measured(baseline="ours", base=[4.0], ours=[1.0]), CLEAN)
    with pytest.raises(ValueError, match="tolerance=2"):
        bench.gate(CLEAN, CLEAN, tolerance=2)


def test_a_planted_slow_down_is_caught_for_real(tmp_path):
    def spin(seconds):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    delay = 2e-4

    def measure():
        variants = {"naive": lambda: spin(8e-4), "ours": lambda: spin(delay)}
        return bench.compare(variants, rounds=41, seconds=2e-4, title="planted")

    kept = measure().to_json(tmp_path / "baseline.json")
    assert bench.gate(measure(), kept, tolerance=0.3).passed
    delay = 8e-4
    with pytest.raises(bench.RegressionError, match="ours: slower"):
        bench.gate(measure(), kept, tolerance=0.3)


def script_of(*comparisons):
    """A `measure` for `guard` that answers one after the other, and the rounds it was asked for."""
    waiting, asked = list(comparisons), []

    def measure(rounds):
        asked.append(rounds)
        return waiting.pop(0)

    return measure, asked


SLOW = measured(base=[4.0] * 9, ours=[2.0] * 9)


def test_a_suspicion_is_measured_again_with_more_rounds():
    measure, asked = script_of(SLOW, SLOW, CLEAN)
    assert bench.guard(measure, CLEAN, rounds=5).passed
    assert asked == [5, 10, 20]


def test_what_is_slower_every_time_is_slower():
    measure, asked = script_of(SLOW, SLOW, SLOW, CLEAN)
    with pytest.raises(bench.RegressionError, match=r"ours: slower, 2\.00x"):
        bench.guard(measure, CLEAN, rounds=5)
    assert asked == [5, 10, 20]


def test_what_passes_is_measured_once_and_what_fails_too():
    measure, asked = script_of(CLEAN)
    assert bench.guard(measure, CLEAN, tries=1).passed
    broken = measured(base=[4.0] * 9, ours="RuntimeError: no")
    measure, asked = script_of(broken)
    with pytest.raises(bench.RegressionError, match="ours: failed"):
        bench.guard(measure, CLEAN)
    assert len(asked) == 1
    with pytest.raises(ValueError, match="tries=0"):
        bench.guard(measure, CLEAN, tries=0)
