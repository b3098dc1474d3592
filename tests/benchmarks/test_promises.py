"""`docs/promises.md` is what its rows and the kept figures make; its numbers are never typed."""

from __future__ import annotations

import dataclasses
import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from worldloom import bench
from worldloom.cli._bench import find_groups

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "baseline"
MACHINE = bench.Machine("cpu", 2, 2**34, "Linux", "1 x cpu", {"jax": "0"}, 0.1)


@pytest.fixture(scope="module")
def promises() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_promises", FOLDER / "promises.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def timing(name, seconds, items=None):
    items = None if items is None else float(items)
    return bench.Timing(name, items, 1, (seconds,) * 3, (seconds / 2,) * 3, None, 7.0)


def record() -> bench.Record:
    pair = bench.Comparison(
        "work", "slow", "steps", (timing("slow", 4.0, 1), timing("ours", 1.0, 1)), MACHINE, "now"
    )
    sizes = bench.Comparison(
        "more", "one", "steps", (timing("one", 1.0, 1), timing("ten", 2.0, 10)), MACHINE, "now"
    )
    found = bench.Findings(
        "s",
        "g",
        False,
        True,
        "2026-01-01",
        1.0,
        MACHINE,
        (bench.Case(pair, "ours", "slow"),),
        (bench.Growth(sizes, "worlds", {"one": 1, "ten": 10}),),
        (bench.Figure("weight", 3.0, "KB"),),
    )
    return bench.Record((found,))


@pytest.mark.parametrize(
    ("reference", "text", "value"),
    [
        ("ratio:s|work|slow", "4.00x (4.00-4.00)", 4.0),
        ("cpu:s|work|slow", "4.00x", 4.0),
        ("compile:s|work", "7.00 s", 7.0),
        ("time:s|work", "1.00 s", 1.0),
        ("rate:s|work", "1.00 steps/s", 1.0),
        ("rate:s|more|ten", "5.00 steps/s", 5.0),
        ("times:s|more|ten", "5.00x (5.00-5.00)", 5.0),
        ("each:s|more|ten", "200 ms", 0.2),
        ("figure:s|weight", "3.00 KB", 3.0),
    ],
)
def test_a_reference_becomes_what_was_measured(promises, reference, text, value):
    found = promises.look_up(record(), reference)
    assert found.text == text
    assert found.value == pytest.approx(value)


def test_a_verdict_follows_from_the_number(promises):
    row = {"judge": "figure:s|weight", "at_least": 2.0, "verdict": "heavy"}
    assert promises.verdict(row, record()) == "**kept**: heavy"
    assert promises.verdict({**row, "at_least": 4.0}, record()) == "**not kept**: heavy"
    assert promises.verdict({"judge": "figure:s|weight", "at_most": 2}, record()) == "**not kept**"
    assert promises.verdict({"judge": "figure:s|none", "at_most": 2}, record()) == (
        "**not measured**"
    )
    assert promises.verdict({"verdict": "so"}, record()) == "so"


def test_a_limit_inside_the_interval_leaves_the_verdict_open(promises):
    (found,) = record().findings
    walls = {"slow": (4.0, 4.0, 4.0), "ours": (1.0, 2.0, 4.0)}
    timings = tuple(
        dataclasses.replace(t, wall=walls[t.name]) for t in found.cases[0].comparison.timings
    )
    noisy = dataclasses.replace(found.cases[0].comparison, timings=timings)
    noisy = bench.Record((dataclasses.replace(found, cases=(bench.Case(noisy, "ours", "slow"),)),))
    row = {"judge": "ratio:s|work|slow", "at_least": 1.5}
    assert promises.verdict(row, record()) == "**kept**"
    assert promises.verdict(row, noisy) == "**kept**, but not surely"
    assert promises.verdict({**row, "at_least": 3}, noisy) == "**not kept**, but not surely"
    assert promises.verdict({**row, "at_least": 9}, noisy) == "**not kept**"


def test_a_time_that_was_taken_on_a_busy_machine_is_told(promises):
    (found,) = record().findings
    loud = dataclasses.replace(MACHINE, load=5.0)
    busy = bench.Record((dataclasses.replace(found, machine=loud),))
    slow = {"judge": "time:s|work", "at_most": 0.5}
    assert promises.verdict(slow, record()) == "**not kept**"
    assert promises.verdict(slow, busy) == "**not kept**, on a busy machine"
    assert promises.verdict({"judge": "figure:s|weight", "at_most": 2}, busy) == "**not kept**"


def test_what_was_not_measured_is_said_and_what_cannot_be_is_an_error(promises):
    assert promises.filled("{figure:s|weight} and {figure:t|x}", record()) == (
        "3.00 KB and (not in this run)"
    )
    with pytest.raises(ValueError, match="no kind of figure 'weight'"):
        promises.filled("{weight:s|x}", record())


def test_the_page_is_what_its_rows_and_numbers_make(promises):
    page = ROOT / "docs" / "promises.md"
    assert page.read_text(encoding="utf-8") == promises.written(), (
        "docs/promises.md is written by `python benchmarks/baseline/promises.py`"
    )


def test_every_row_names_scripts_that_exist(promises, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    scripts = {name for group in find_groups().values() for name in group}
    document = tomllib.loads((FOLDER / "promises.toml").read_text(encoding="utf-8"))
    named = promises.references(document)
    assert len(named) > 40
    assert {name.partition(":")[2].partition("|")[0] for name in named} <= scripts
    for row in (row for guide in document["guide"] for row in guide["row"]):
        words = row.get("command", "").replace(";", " ").split()
        assert all((ROOT / word).is_file() for word in words if word.startswith("benchmarks/"))
        assert ("judge" in row) == ("at_least" in row or "at_most" in row)
        assert row.get("verdict") or "judge" in row
