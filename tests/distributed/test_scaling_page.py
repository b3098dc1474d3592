"""The model of many hosts computes what it says, and the page shows what was measured."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

ROOT = Path(__file__).parents[2]
PAGE, MEASURED = ROOT / "docs" / "scaling.md", ROOT / "docs" / "scaling.json"


@pytest.fixture(scope="module")
def model():
    spec = importlib.util.spec_from_file_location(
        "scaling_model", ROOT / "benchmarks" / "scaling_model.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # dataclasses look their module up
        patch.setitem(__import__("sys").modules, "scaling_model", module)
        spec.loader.exec_module(module)
    return module


def test_the_page_is_made_of_what_was_measured(model):
    assert PAGE.read_text() == model.page(json.loads(MEASURED.read_text()))


def test_predictions_follow_from_the_measurements(model):
    found = json.loads(MEASURED.read_text())
    assert found["network"] == model.NETWORK
    assert model.fit({int(k): v for k, v in found["sums"].items()}) == (
        pytest.approx(found["latency"]),
        pytest.approx(found["bandwidth"]),
    )
    for entry in found["systems"].values():
        fields = {f: entry[f] for f in ("seconds", "items", "unit", "messages", "bytes")}
        system = model.System(**fields)
        for hosts, value in entry["hosts"].items():
            assert model.throughput(system, int(hosts), **model.NETWORK) == pytest.approx(value)
        two = model.throughput(system, 2, found["latency"], found["bandwidth"])
        assert two == pytest.approx(entry["two_predicted"])


def test_a_ring_by_hand(model):
    # Four hosts, 8 MB at 1 GB/s: six hops of a quarter each, 2 ms and 10 us a hop.
    assert model.all_reduce(4, 8e6, 10e-6, 1e9) == pytest.approx(6 * (2e-3 + 10e-6))
    assert model.all_reduce(1, 8e6, 10e-6, 1e9) == 0
    # 100 items in a second, and two sums of 4 MB that take 4 ms each on two hosts.
    system = model.System(1.0, 100, "items", 2, 8_000_000)
    assert model.throughput(system, 2, 0.0, 1e9) == pytest.approx(200 / 1.008)
    assert model.throughput(system, 1, 1.0, 1.0) == 100


@hypothesis.given(st.floats(1e-7, 1e-2), st.floats(1e6, 1e11))
def test_a_fit_finds_the_network_that_made_the_times(model, latency, bandwidth):
    sums = {size: model.all_reduce(2, size, latency, bandwidth) for size in model.SUMS}
    found = model.fit(sums)
    # The smallest sum is four bytes, whose time counts as latency.
    assert found[0] == pytest.approx(latency + 2 / bandwidth)
    assert found[1] == pytest.approx(bandwidth, rel=1e-3)


@hypothesis.given(st.integers(1, 4096), st.integers(0, 100), st.integers(0, 10**9))
def test_talking_never_helps(model, hosts, messages, size):
    system = model.System(0.1, 10, "items", messages, size)
    assert model.throughput(system, hosts, **model.NETWORK) <= hosts * 100 * (1 + 1e-12)
