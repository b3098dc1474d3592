"""One folder, one experiment: a run goes on only as the run it is."""

from __future__ import annotations

import dataclasses
import functools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worldloom as wl

RATE = 0.5
SCALE = {"unused": 1}


def read_global(x, t):
    return x * RATE, x.sum()


def grow(x, wind, *, forcing=0.0):
    return x + wind + forcing, x.sum()


@dataclasses.dataclass(frozen=True)
class Settings:
    rate: float = 0.5
    name: str = "a"


class Module(eqx.Module):
    weight: jax.Array
    settings: Settings = eqx.field(static=True)

    def __call__(self, x, t):
        return x * self.weight * self.settings.rate, x.sum()


class Plain:
    """A step as people write it who do not know equinox."""

    def __init__(self, rate, table):
        self._rate, self.table = rate, table

    def __call__(self, x, t):
        return x * self._rate + jnp.asarray(self.table).sum(), x.sum()


def closure(rate):
    def step(x, t):
        return x * rate, x.sum()

    return step


def mean(x):
    return x.mean()


def largest(x):
    return x.max()


WIND = np.linspace(0.0, 1.0, 12, dtype=np.float32)
BASE = {
    "step": functools.partial(grow, forcing=0.25),
    "state": np.arange(3.0, dtype=np.float32),
    "inputs": WIND,
    "length": 12,
    "save": wl.Every(2, of=mean),
    "checks": {"large": lambda x: x > 1e9},
    "on_fault": "keep",
}
OTHERS = {
    "state": [
        np.arange(3.0, dtype=np.float32) + 1,
        np.array([0.0, 1.0, np.nextafter(np.float32(2), np.float32(3))], np.float32),
        np.arange(4.0, dtype=np.float32),
    ],
    "step": [
        functools.partial(grow, forcing=0.5),
        jax.tree_util.Partial(grow, forcing=jnp.float32(0.5)),
        grow,
        lambda x, t: (x, x.sum()),
    ],
    "inputs": [WIND + 1, WIND[::-1], np.where(np.arange(12) == 11, np.float32(5), WIND)],
    "save": [wl.Every(3, of=mean), wl.Every(2, of=largest), wl.Every(2), wl.At([3], of=mean), None],
    "checks": [{}, {"other": lambda x: x > 1e9}, {"large": lambda x: x > 1e8}],
    "on_fault": ["drop", "stop"],
}


def go(folder, config=None, **given):
    told = BASE | given
    step, state, inputs = told.pop("step"), told.pop("state"), told.pop("inputs")
    saved = wl.Checkpoint(folder, config=config or {"seed": 0, "rate": 0.5})
    return wl.run(step, state, inputs, checkpoint=saved, resume=True, **told)


def bytes_below(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("name", "which"), [(name, i) for name, values in OTHERS.items() for i in range(len(values))]
)
def test_another_argument_is_another_run(name, which, tmp_path):
    go(tmp_path / "run")
    before = bytes_below(tmp_path)
    with pytest.raises(wl.ResumeError, match=rf"holds another run: .*{name}"):
        go(tmp_path / "run", **{name: OTHERS[name][which]})
    assert bytes_below(tmp_path) == before, "a refused run has touched the folder"


@given(
    theirs=st.dictionaries(st.sampled_from("abc"), st.floats() | st.text() | st.integers()),
    mine=st.dictionaries(st.sampled_from("abc"), st.floats() | st.text() | st.integers()),
)
@settings(max_examples=25, deadline=None)
def test_another_configuration_is_named_with_both_values(tmp_path_factory, theirs, mine):
    folder = tmp_path_factory.mktemp("config") / "run"
    told = {"step": closure(0.5), "inputs": None, "checks": {}, "length": 2, "save": None}
    go(folder, theirs | {"always": 1}, **told)
    differ = {k for k in theirs.keys() & mine.keys() if repr(theirs[k]) != repr(mine[k])}
    if not differ:
        go(folder, mine | {"always": 1}, **told)
        return
    with pytest.raises(wl.ResumeError) as caught:
        go(folder, mine | {"always": 1}, **told)
    assert {name for name, _, _ in caught.value.differences} == differ
    name = min(differ)
    assert f"{name} is " in str(caught.value)


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (closure(0.5), closure(0.25), "step.rate is 0.25 here and 0.5 there"),
        (
            closure(jnp.ones(3)),
            closure(jnp.zeros(3)),
            r"step.rate \(float32\[3\]\) has other values",
        ),
        (Plain(0.5, [1.0]), Plain(0.25, [1.0]), r"step\._rate"),
        (Plain(0.5, np.ones(3)), Plain(0.5, np.zeros(3)), r"step\.table"),
        (Module(jnp.ones(3), Settings()), Module(jnp.ones(3), Settings(rate=1.0)), "settings.rate"),
        (Module(jnp.ones(3), Settings()), Module(jnp.zeros(3), Settings()), r"step\.weight"),
        (jax.jit(closure(0.5)), jax.jit(closure(0.25)), r"step\.rate"),
        (lambda x, t: (x * 2, None), lambda x, t: (x * 3, None), "the code of step has changed"),
    ],
)
def test_what_a_step_takes_from_elsewhere_belongs_to_it(one, other, named, tmp_path):
    told = {"inputs": None, "checks": {}, "save": None}
    first = go(tmp_path / "run", step=one, **told)
    again = go(tmp_path / "run", step=one, **told)
    assert np.array_equal(first.state, again.state)
    with pytest.raises(wl.ResumeError, match=named):
        go(tmp_path / "run", step=other, **told)


def test_a_global_number_that_the_step_reads_belongs_to_it(tmp_path, monkeypatch):
    told = {"step": read_global, "inputs": None}
    go(tmp_path / "run", **told)
    monkeypatch.setitem(globals(), "SCALE", {"unused": 2})
    go(tmp_path / "run", **told)
    monkeypatch.setitem(globals(), "RATE", 0.75)
    with pytest.raises(wl.ResumeError, match=r"step\.RATE is 0\.75 here and 0\.5 there"):
        go(tmp_path / "run", **told)


def test_what_is_not_part_of_a_run_may_differ(tmp_path):
    whole = go(tmp_path / "run")
    again = go(
        tmp_path / "run",
        state=jnp.arange(3.0),
        inputs=jnp.asarray(WIND),
        chunk_steps=5,
        progress=wl.NoProgress(),
    )
    assert np.array_equal(whole.state, again.state)
    assert np.array_equal(whole.records, again.records)


@given(
    first=st.integers(0, 12),
    second=st.integers(0, 12),
    n=st.integers(1, 4),
    sink=st.sampled_from([None, wl.NpySink, wl.ZarrSink]),
)
@settings(max_examples=15, deadline=None)
def test_a_run_is_prolonged_and_its_records_join(tmp_path_factory, first, second, n, sink):
    folder = tmp_path_factory.mktemp("prolonged") / "run"
    save = {
        "every": wl.Every(n, of=mean, initial=True),
        "at": wl.At([2, 5, 12], of=mean),
        "last": wl.Final(largest),
        "end": wl.Every(n, of=mean, last=True),
    }
    place = (lambda name: {"sink": sink(folder.with_name(name))}) if sink else (lambda name: {})
    shorter, longer = sorted((first, second))
    at = {"at": wl.At([s for s in (2, 5, 12) if s <= shorter], of=mean)}
    go(folder, length=shorter, inputs=WIND[:shorter], save=save | at, **place("records"))
    told = {"length": longer, "inputs": WIND[:longer]}
    told["save"] = save | {"at": wl.At([s for s in (2, 5, 12) if s <= longer], of=mean)}
    joined = go(folder, **told, **place("records"))
    whole = go(folder.with_name("whole"), **told, **place("others"))
    assert joined.steps == longer
    assert np.array_equal(joined.state, whole.state)
    for name in save:
        np.testing.assert_array_equal(joined.records[name][:], whole.records[name][:])


def test_a_prolonged_run_must_begin_with_the_same_inputs(tmp_path):
    go(tmp_path / "run", length=6, inputs=WIND[:6])
    with pytest.raises(wl.ResumeError, match=r"inputs \(float32\[6\]\) has other values"):
        go(tmp_path / "run", length=12, inputs=WIND + 1)
    with pytest.raises(wl.ResumeError, match="length is 3 here and 6 there"):
        go(tmp_path / "run", length=3, inputs=WIND[:3])


def test_a_run_that_has_done_nothing_makes_way(tmp_path):
    go(tmp_path / "run", length=0, inputs=WIND[:0], config={"rate": 1.0})
    go(tmp_path / "run", config={"rate": 2.0})
    assert wl.read_run(tmp_path / "run").config == {"rate": 2.0}


def test_what_is_known_of_a_run_can_be_read_back(tmp_path):
    config = {"seed": 3, "rate": 0.1, "names": ("a", "b"), "bad": float("nan"), "path": tmp_path}
    go(tmp_path / "run", config)
    read = wl.read_run(tmp_path / "run")
    assert (read.steps, read.length, read.version) == (12, 12, wl.__version__)
    wanted = {"seed": 3, "rate": 0.1, "names": ["a", "b"], "bad": "nan", "path": str(tmp_path)}
    assert read.config == wanted
    assert read.command
    assert re.match(r"\d{4}-\d\d-\d\dT", read.began)
    with pytest.raises(wl.ResumeError, match=r"holds no run .*; its folders run may hold runs"):
        wl.read_run(tmp_path)


def test_data_that_change_as_the_run_goes_are_compared_where_it_goes_on(tmp_path):
    def window(table):
        def refresh(t):
            first = t // 4 * 4
            part = jax.tree_util.Partial(add, table=jnp.asarray(table[first : first + 4]))
            return part, first + 4

        return refresh

    def add(x, t, *, table):
        return x + table[t % 4], x.sum()

    table = np.arange(12.0, dtype=np.float32)
    told = {"inputs": None, "checks": {}, "save": None}
    first = window(table)
    go(tmp_path / "run", step=first(0)[0], refresh=first, length=8, **told)
    later = window(np.where(np.arange(12) == 7, 99, table))
    with pytest.raises(wl.ResumeError, match="those of step 7 are not what they were"):
        go(tmp_path / "run", step=later(0)[0], refresh=later, length=12, **told)
    longer = go(tmp_path / "run", step=first(0)[0], refresh=first, length=12, **told)
    assert np.array_equal(longer.state, BASE["state"] + table.sum())


@pytest.mark.parametrize(
    ("step", "state", "message"),
    [
        (lambda x: x, np.ones(3), r"called as step\(state, x\)"),
        (lambda x, t, u: x, np.ones(3), r"called as step\(state, x\)"),
        (lambda x, t: x, np.ones(3), "pair"),
        (lambda x, t: (x[:2], None), np.ones(3), "keeps its shapes"),
        (lambda x, t: (x @ jnp.ones(5), None), np.ones(3), "."),
    ],
)
def test_a_step_that_does_not_trace_leaves_no_folder(step, state, message, tmp_path):
    with pytest.raises((wl.StepError, TypeError), match=message):
        wl.run(step, state, length=5, checkpoint=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_only_the_loop_refuses_leaves_no_folder(tmp_path):
    with pytest.raises(wl.StepError, match="on_fault='drop' needs the worlds"):
        wl.run(
            lambda x, t: (x, None),
            np.ones((3, 2)),
            length=5,
            checks={"low": lambda x: x[0] < 0},
            on_fault="drop",
            checkpoint=tmp_path / "run",
        )
    assert list(tmp_path.iterdir()) == []


def test_records_in_memory_and_a_checkpoint_are_refused_at_the_start(tmp_path):
    with pytest.raises(wl.SinkError, match=r"sink=MemorySink\(\) with a checkpoint"):
        go(tmp_path / "run", sink=wl.MemorySink())
    assert list(tmp_path.iterdir()) == []


def test_tracing_first_costs_no_second_program(tmp_path, no_recompile):
    go(tmp_path / "warm")
    with no_recompile():
        go(tmp_path / "again")
