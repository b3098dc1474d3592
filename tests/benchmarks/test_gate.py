"""The gate of `make bench-gate`: it passes what is as it was, and fails on a planted slow-down."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from worldloom import bench

FOLDER = Path(__file__).parents[2] / "benchmarks" / "baseline"


@pytest.fixture(scope="module")
def gate() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("bench_gate", FOLDER / "gate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_gate"] = module  # dataclasses look themselves up
    before = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before
    del sys.modules["bench_gate"]


def busy_for(seconds: float):
    def work():
        end = time.process_time() + seconds  # a busy machine does not shorten it
        while time.process_time() < end:
            pass

    return work


@pytest.fixture
def small(gate: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Two cases that keep a core busy for known times, and a file that says so."""
    made = {
        name: lambda: gate.Work(busy_for(2e-3), busy_for(2e-4)) for name in ("steady", "planted")
    }
    monkeypatch.setattr(gate, "CASES", made)
    words = ["--baseline", str(tmp_path / "gate.json"), "--rounds", "5", "--tolerance", "0.4"]
    monkeypatch.setattr(gate, "measure", quickly(gate))
    assert gate.main(["--keep", *words]) == 0
    return words


def quickly(gate: ModuleType):
    def measure(title, work, rounds):
        variants = {gate.NAIVE: work.naive, gate.OURS: work.ours}
        return bench.compare(variants, rounds=rounds, seconds=2e-3, title=title)

    return measure


def test_nothing_changed_and_the_gate_passes(gate, small, capsys: pytest.CaptureFixture[str]):
    assert gate.main(small) == 0
    shown = capsys.readouterr().out
    assert "steady: ours: kept" in shown
    assert "planted: ours: kept" in shown


def test_a_planted_slow_down_fails_and_is_named_with_its_numbers(
    gate, small, capsys: pytest.CaptureFixture[str]
):
    assert gate.main([*small, "--slow", "planted=6"]) == 1
    shown = capsys.readouterr().out
    assert "steady: ours: kept" in shown
    (line,) = [line for line in shown.splitlines() if "slower," in line]
    assert line.startswith("planted: ours: slower, ")
    assert "; it was " in line
    assert "limit " in line
    assert "slower than gate.json says: planted" in shown


def test_some_cases_only_and_a_name_that_is_none(gate, small, capsys: pytest.CaptureFixture[str]):
    assert gate.main(["steady", *small]) == 0
    assert "planted" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        gate.main(["stedy", *small])
    assert "there are: steady, planted" in capsys.readouterr().err


def test_processor_seconds_are_compared_on_a_busy_machine(gate):
    timing = bench.Timing("ours", None, 1, (4.0, 4.0), (1.0, 2.0), None, None)
    naive = bench.Timing("naive", None, 1, (8.0, 8.0), (8.0, 8.0), None, None)
    machine = bench.Machine("cpu", 2, 2**34, "Linux", "1 x cpu", {"jax": "0"}, 0.5)
    found = bench.Comparison("t", "naive", "items", (naive, timing), machine, "now")
    assert found.ratio("ours").value == 2.0
    assert gate.by_processor(found).ratio("ours").value == 6.0


def test_what_is_slowed_takes_so_much_longer(gate):
    slow = gate.slowed(busy_for(5e-3), 4)
    start = time.process_time()
    slow()
    assert time.process_time() - start > 1e-2


def test_every_case_of_the_repository_is_kept(gate):
    kept = bench.Record.from_json(FOLDER / "gate.json").findings[0].cases
    assert [case.title for case in kept] == list(gate.CASES)
    assert all(case.ratio(gate.NAIVE) is not None for case in kept)


def test_a_real_case_passes_and_fails_when_it_is_slowed(
    gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gate, "measure", quickly(gate))
    words = ["call", "--baseline", str(tmp_path / "g.json"), "--tolerance", "0.5", "--rounds", "5"]
    assert gate.main(["--keep", *words]) == 0
    assert gate.main([*words, "--busy"]) == 0
    assert gate.main([*words, "--busy", "--slow", "call=20"]) == 1
