from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import worldloom as wl
from worldloom import bench

MACHINE = bench.Machine("a processor", 2, 2**34, "Linux", "1 x cpu", {"jax": "0.1"}, 0.2)


def comparison(title="work", items=None, errors=(), **walls):
    """Each variant took so many seconds in each round, and half of that of a processor."""
    timings = tuple(
        bench.Timing(
            name,
            None if items is None else float(items[name]),
            1,
            () if name in errors else tuple(wall),
            () if name in errors else tuple(t / 2 for t in wall),
            None,
            None,
            error="RuntimeError: no" if name in errors else "",
        )
        for name, wall in walls.items()
    )
    return bench.Comparison(title, next(iter(walls)), "items", timings, MACHINE, "now")


def findings(script="a_script", group="b", **more):
    given = {"quick": False, "alone": True, "created": "2026-01-02T03:04:05", "took": 1.5}
    return bench.Findings(script, group, machine=MACHINE, **{**given, **more})


CASE = bench.Case(
    comparison(naive=[4.0, 4.0], rival=[2.0, 2.0], ours=[1.0, 1.0]),
    "ours",
    "naive",
    compiling={"ours": 3.0},
    memory={"ours": 2500, "rival": 5_000_000},
    memory_of="temporaries",
)
GROWTH = bench.Growth(
    comparison("growing", {"one": 1, "ten": 10}, one=[1.0, 1.0], ten=[2.0, 2.0]),
    "worlds",
    {"one": 1, "ten": 10},
)
RECORD = bench.Record(
    (
        findings(
            cases=(CASE,),
            growths=(GROWTH,),
            figures=(bench.Figure("seconds", 2.0, "s", 1.0), bench.Figure("bytes", 7)),
        ),
        findings("another", "a", quick=True, figures=(bench.Figure("held", 0.5, "", 1.0),)),
    ),
    {"broken": "exit code 3"},
)


def test_ratios_are_ours_over_the_others_and_the_naive_one_comes_first():
    assert CASE.others == ("naive", "rival")
    assert [CASE.ratio(name).value for name in CASE.others] == [4.0, 2.0]
    assert CASE.cpu_ratio("rival") == 2.0
    assert CASE.compile_seconds("ours") == 3.0
    assert CASE.compile_seconds("naive") is None


def test_work_counts_in_the_ratio_of_processor_seconds():
    case = bench.Case(comparison(items={"a": 1, "b": 10}, a=[1.0], b=[2.0]), "b")
    assert case.cpu_ratio("a") == case.ratio("a").value == 5.0


def test_a_side_that_failed_has_no_ratio_but_a_row():
    case = bench.Case(comparison(errors=("rival",), rival=[], ours=[1.0]), "ours")
    assert case.ratio("rival") is None
    assert case.cpu_ratio("rival") is None
    assert "failed" in str(bench.Record((findings(cases=(case,)),)))


@pytest.mark.parametrize("wrong", [{"ours": "me"}, {"naive": "you"}, {"memory": {"x": 1}}])
def test_a_case_names_variants_that_exist(wrong):
    with pytest.raises(KeyError, match="no variant"):
        bench.Case(**{"comparison": CASE.comparison, "ours": "ours", **wrong})


def test_a_growth_has_a_size_for_every_variant():
    with pytest.raises(ValueError, match="names other variants"):
        bench.Growth(GROWTH.comparison, "worlds", {"one": 1})


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path):
    path = RECORD.to_json(tmp_path / "folder" / "record.json")
    assert bench.Record.from_json(path) == RECORD


def test_what_is_no_record_is_refused(tmp_path: Path):
    path = CASE.comparison.to_json(tmp_path / "comparison.json")
    with pytest.raises(bench.ComparisonFileError, match="not a record of benchmarks"):
        bench.Record.from_json(path)
    document = json.loads(RECORD.to_json(path).read_text())
    del document["findings"][0]["cases"][0]["comparison"]["timings"]
    path.write_text(json.dumps(document))
    with pytest.raises(bench.ComparisonFileError, match="a damaged record"):
        bench.Record.from_json(path)


def test_entries_are_found_by_name_and_a_wrong_name_lists_the_right_ones():
    assert RECORD.case("a_script", "work") is CASE
    assert RECORD.growth("a_script", "growing") is GROWTH
    assert RECORD.figure("another", "held").value == 0.5
    with pytest.raises(KeyError, match="it has 'seconds', 'bytes'"):
        RECORD.figure("a_script", "second")


def test_of_a_script_that_ran_twice_the_last_counts():
    again = bench.Record((findings(took=99.0),), {"other": "exit code 1"})
    joined = RECORD.joined([again])
    assert {found.script: found.took for found in joined.findings} == {
        "a_script": 99.0,
        "another": 1.5,
    }
    assert joined.failed == {"broken": "exit code 3", "other": "exit code 1"}


def test_groups_and_scripts_are_in_order():
    assert {g: [f.script for f in fs] for g, fs in RECORD.groups.items()} == {
        "a": ["another"],
        "b": ["a_script"],
    }


def test_the_page_says_all_figures_and_how_sure_they_are():
    page = RECORD.markdown()
    naive = page.index("## Against the naive version")
    for row in (
        "| work | 1.00 s | naive (naive) | 4.00 s | 4.00x (4.00-4.00) | 4.00x |",
        "| work | 1.00 s | rival | 2.00 s | 2.00x (2.00-2.00) | 2.00x |",
        "3.00 s / -",
        "2.50 KB / 5.00 MB (temporaries)",
        "| 10 | 5.00 items/s | 5.00x (5.00-5.00) |",
        "| seconds | 2.00 s | 1.00: NOT KEPT |",
        "| held | 0.50 | 1.00: kept |",
        "a processor, 2 cores",
        "jax 0.1",
        "`another` was measured with `--quick`",
        "2 scripts ran without rivals",
        "- `broken` failed: exit code 3",
    ):
        assert row in page
    assert naive < page.index("naive (naive)") < page.index("## a") < page.index("| rival |")
    assert "busy" not in page


def test_a_busy_machine_is_named_and_no_reason_to_call_a_promise_broken():
    loud = dataclasses.replace(MACHINE, load=3.0)
    busy = dataclasses.replace(RECORD.findings[0], machine=loud)
    page = bench.Record((busy, RECORD.findings[1])).markdown()
    assert "the machine was busy before 1 of 2" in page
    assert "| seconds | 2.00 s | 1.00: missed, on a busy machine |" in page
    assert "| load before each script | 0.2 to 3 |" in page


def test_load_is_what_others_do_now():
    loop = "while True: pass"
    others = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(2)]
    try:
        time.sleep(0.3)
        machine = bench.Machine.here()
    finally:
        for one in others:
            one.kill()
            one.wait()
    assert machine.load is not None
    assert machine.load > 0.5
    assert not machine.quiet
    assert dataclasses.replace(machine, load=0.1).quiet
    assert not dataclasses.replace(machine, load=None).quiet


def test_the_tables_and_the_picture(tmp_path: Path):
    text = str(RECORD)
    for word in ("naive (naive)", "4.00x (4.00-4.00)", "growing", "NOT KEPT", "broken failed"):
        assert word in text
    assert RECORD.plot(tmp_path / "a" / "b.png").read_bytes().startswith(b"\x89PNG")


def test_a_script_keeps_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = bench.Script("First line.\n\nMore.", group="g", rounds=(9, 3))
    script.parser.add_argument("--size", type=int, default=4)
    options = script.start(["--quick", "--record", str(tmp_path / "x.json")])
    assert (options.rounds, options.size, options.alone) == (3, 4, False)
    script.case(CASE.comparison, ours="ours")
    script.growth(GROWTH.comparison, axis="worlds", sizes=GROWTH.sizes)
    script.figure("weight", 3.0, "kg", limit=2)
    record = script.finish()
    assert bench.Record.from_json(tmp_path / "x.json") == record
    (found,) = record.findings
    assert (found.group, found.quick, found.alone) == ("g", True, False)
    assert [c.title for c in found.cases] == ["work"]
    assert found.growths[0].sizes == {"one": 1, "ten": 10}
    assert "weight: 3.00 kg  (limit 2: BROKEN)" in capsys.readouterr().out
    other = bench.Script(None, group="g")
    assert other.start(["--rounds", "2"]).rounds == 2
    assert not jax.config.jax_enable_compilation_cache
    other.finish()
    assert jax.config.jax_enable_compilation_cache


def test_a_program_is_what_was_compiled():
    program = bench.build(lambda x: jnp.sin(x) @ jnp.cos(x), jnp.ones((64, 64)))
    assert program(jnp.ones((64, 64))).shape == (64, 64)
    assert program.seconds > 0
    assert program.temporaries >= 0
    with pytest.raises(TypeError):  # another shape is another program
        program(jnp.ones((2, 2)))


def test_without_the_cache_everything_is_compiled():
    def compiles():
        with wl.count_compiles() as found:
            jax.jit(lambda x: jnp.sin(x) * 1.2345678)(jnp.float32(1))  # a new function each time
        return found.compiled.total(), found.loaded.total()

    wl.enable_cache()
    compiles()
    assert compiles() == (0, 1)
    with bench.no_cache():
        assert compiles() == (1, 0)
    assert compiles() == (0, 1)
