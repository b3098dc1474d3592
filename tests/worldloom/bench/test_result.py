from __future__ import annotations

import dataclasses
import json

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldloom import bench
from worldloom.bench._draw import duration, magnitude
from worldloom.bench._result import figure, median_interval

MACHINE = bench.Machine("cpu", 2, 2**34, "Linux", "1 x cpu", {"jax": "0"}, 0.2)


def timing(name, wall, **changes):
    fields = {"items": None, "repeats": 1, "cpu": tuple(wall), "first": 1.0, "compiling": 0.5}
    return bench.Timing(name=name, wall=tuple(wall), **{**fields, **changes})


def comparison(*timings, baseline=None, title="a title"):
    return bench.Comparison(
        title, baseline or timings[0].name, "items", timings, MACHINE, "2026-01-01T00:00:00+00:00"
    )


def test_ratios_are_paired_by_round():
    noise = np.array([1.0, 5.0, 1.0, 3.0, 40.0, 2.0])  # a machine that stumbles for both alike
    result = comparison(timing("base", 2.0 * noise), timing("ours", 0.5 * noise))
    assert result.ratio("ours").value == pytest.approx(4.0)
    assert result.ratio("ours").low == pytest.approx(4.0)
    assert result.ratio("ours").high == pytest.approx(4.0)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        found = median_interval(np.exp(rng.normal(0.0, 0.2, 15)), resamples=500)
        inside += found.low <= 1.0 <= found.high
    assert 0.86 < inside / 200 <= 1.0


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=8), st.floats(0.01, 100))
def test_json_keeps_everything(wall, factor):
    result = comparison(
        timing("base", wall, items=3.0),
        timing("ours", [t * factor for t in wall], items=3.0, packages={"numpy": "2"}),
        timing("broken", (), error="Traceback\nValueError: no"),
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        again = bench.Comparison.from_json(result.to_json(f"{folder}/deep/x.json"))
    assert again == result
    assert again.ratio("ours") == result.ratio("ours")


def test_writing_leaves_no_half_file(tmp_path):
    path = comparison(timing("base", [1.0])).to_json(tmp_path / "x.json")
    before = path.read_text()
    bad = comparison(timing("base", [float("nan")]))
    with pytest.raises(ValueError, match="JSON"):
        bad.to_json(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: "not json", "not a JSON file"),
        (lambda d: [1], "not a comparison"),
        (lambda d: {**d, "format": "other/1"}, "not a comparison"),
        (lambda d: {**d, "surprise": 1}, "surprise"),
        (lambda d: {k: v for k, v in d.items() if k != "timings"}, "timings"),
        (lambda d: {**d, "baseline": "gone"}, "gone"),
        (lambda d: {**d, "timings": [{**d["timings"][0], "wall": [-1.0]}]}, "not positive"),
        (lambda d: {**d, "timings": [{**d["timings"][0], "wall": []}]}, "missing"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, damage, message):
    path = comparison(timing("base", [1.0])).to_json(tmp_path / "x.json")
    damaged = damage(json.loads(path.read_text()))
    path.write_text(damaged if isinstance(damaged, str) else json.dumps(damaged))
    with pytest.raises(bench.ComparisonFileError, match=message) as caught:
        bench.Comparison.from_json(path)
    assert str(path) in str(caught.value)


def test_the_table_fits_a_terminal_and_shows_the_figures():
    result = comparison(
        timing("a Python loop over jitted steps", [0.25] * 3, items=4096.0),
        timing("ours", [0.001] * 3, items=4096.0),
    )
    text = str(result)
    assert "a title" in text
    assert "250 ms" in text
    assert "4.10 M" in text
    assert "250x (250-250)" in text
    assert "load 0.2" in text
    from worldloom.bench._draw import as_text

    narrow = as_text(result.__rich__(), width=80)
    assert "250x (250-250)" in narrow
    assert "1.00 ms" in narrow


def test_an_unknown_variant_is_named():
    with pytest.raises(KeyError, match="there are base"):
        comparison(timing("base", [1.0]))["other"]


def test_the_plot_is_a_picture(tmp_path):
    result = comparison(
        timing("base", [1.0, 1.1]), timing("ours", [0.01, 0.02]), timing("bad", (), error="no")
    )
    path = result.plot(tmp_path / "deep" / "x.png")
    from matplotlib.image import imread

    pixels = imread(path)
    assert pixels.shape[1] == 1200
    assert pixels.std() > 0.05


def test_this_machine_is_described():
    machine = bench.Machine.here()
    assert machine.cores >= 1
    assert machine.memory > 2**28
    assert machine.versions["jax"] == jax.__version__
    assert machine.devices.startswith("2 x ")
    assert machine.cpu in str(machine)
    assert bench.Machine(**dataclasses.asdict(machine)) == machine


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.50 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 us"), (7e-9, "7.00 ns"), (120, "120 s")],
)
def test_durations_read_well(seconds, text):
    assert duration(seconds) == text


def test_numbers_read_well():
    assert [magnitude(v) for v in (12.0, 4096.0, 2.5e6, 7.1e9)] == [
        "12.0",
        "4.10 k",
        "2.50 M",
        "7.10 G",
    ]
    assert figure(12345.6) == "12,346"
    assert figure(1e-5) == "1.00e-05"
