"""Every option of every command that saves its runs, changed one by one, on the same folder."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from pathlib import Path

import numpy as np
import pytest
import xarray

import worldloom as wl
from acbo.cli._train import Train as AcboTrain
from jaxarc.cli._train import Train as ArcTrain
from jaxtrace.cli._run import Run as TraceRun
from worldloom.cli import main

ARC = (
    *("arc", "train", "--operations", "1", "2", "--episode-steps", "6", "--worlds", "16"),
    *("--steps", "4", "--updates", "2", "--epochs", "1", "--minibatches", "2", "--width", "4"),
    *("--layers", "1", "--seed", "3"),
)
ACBO = (
    *("acbo", "train", "surrogate", "--steps", "2", "--variables", "3", "--rows", "16", "16"),
    *("--batch", "2", "--hidden", "8", "--blocks", "2", "--seed", "3", "--no-progress"),
)
TRACE = (
    *("trace", "run", "flow.nc", "-o", "tracks.nc", "--seeds.resolution", "3", "3"),
    *("--seeds.low", "0.3", "0.3", "--seeds.high", "0.7", "0.7", "--time-span", "0", "1"),
    *("--n-timesteps", "10", "--save-every", "5", "--key", "3"),
)
COMMANDS = {"arc": (ARC, ArcTrain), "acbo": (ACBO, AcboTrain), "trace": (TRACE, TraceRun)}
# What may differ when a run goes on, and how often it is done.
FREE = {
    "arc": {"out", "save_seconds", "checkpoint"},
    "acbo": {"out", "save_seconds", "checkpoint", "progress"},
    "trace": {"out", "save_seconds", "checkpoint", "coordinates", "memory_limit_gb"},
}
# Values that differ and are allowed, where they cannot be made from the type alone.
VALUES = {
    "dataset": "AGI1-train",
    "subset": "up-to-5x5",
    "tasks": "tiny-0",
    "operations": "1 2 3",
    "mechanisms": "linear",
    "rows": "16 17",
    "variables": "4",
    "worlds": "32",
    "batch": "4",
    "hidden": "16",
    "files": "other.nc",
    "velocity": "u v",
    "times": "0 1 2 3",
    "scalars": "t",
    "coordinates": "lon lat",
    "diffusivity": "0.01",
    "max_age": "0.35",
    "memory_limit_gb": "1.0",
    "window": "3",
    "time_span": "0 0.5",
    "dt": "0.05",
    "seeds.resolution": "4 3",
    "seeds.low": "0.2 0.3",
    "seeds.high": "0.8 0.7",
    "seeds.file": "seeds.csv",
    "seeds.release": "0 0.5",
    "what": "policy",
    "surrogate": "none.loom",
    "updates": "1",
    "n_timesteps": "5",
}


def fields(config, prefix=""):
    """Names and types of the options of a command, those of groups too."""
    hints = typing.get_type_hints(config)
    for field in dataclasses.fields(config):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            yield from fields(kind, f"{field.name}.")
        else:
            yield prefix + field.name, kind


def other(name, kind, words, config):
    """The words of the command with another value for one option."""
    flag = "-o" if name == "out" and "-o" in words else "--" + name.replace("_", "-")
    bare = [a for a in typing.get_args(kind) if a is not type(None)] if _optional(kind) else [kind]
    now = words[words.index(flag) + 1] if flag in words else None
    default = getattr(config, name.partition(".")[0], None)
    if name == "out":
        value = ["again.nc"]
    elif name in VALUES:
        value = VALUES[name].split()
    elif bare[0] is bool:
        return [*words, flag if flag not in words else f"--no-{flag[2:]}"]
    elif typing.get_origin(bare[0]) is typing.Literal:
        value = [next(str(a) for a in typing.get_args(bare[0]) if a not in (now, default))]
    elif bare[0] is int:
        value = [str(int(now or default or 0) * 2 + 1)]
    else:
        value = [str(float(now or default or 0) * 2 + 0.01)]
    if name == "files":
        return [value[0] if word == "flow.nc" else word for word in words]
    if name == "what":
        return [value[0] if word == "surrogate" else word for word in words]
    if flag not in words:
        return [*words, flag, *value]
    start = words.index(flag) + 1
    stop = next((i for i in range(start, len(words)) if words[i].startswith("-")), len(words))
    return [*words[:start], *value, *words[stop:]]


def _optional(kind):
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def flow(path, scale):
    axes = {"time": ("time", np.arange(4.0), {"units": "seconds since 2001-02-03"})}
    axes |= {name: (name, np.linspace(0, 1, 5), {"units": "m"}) for name in ("x", "y")}
    data = {n: (("time", "x", "y"), np.full((4, 5, 5), 0.05 * scale, np.float32)) for n in "uvt"}
    for name in "uv":
        data[name] = (*data[name], {"units": "m s-1"})
    xarray.Dataset(data, axes).to_netcdf(path)


def records(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "records" in path.parts
    }


@pytest.fixture(scope="module", params=COMMANDS)
def begun(request, tmp_path_factory):
    """A command, its configuration, and a folder in which it has run to its end."""
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        flow("flow.nc", 1)
        flow("other.nc", 2)
        Path("seeds.csv").write_text("0.4,0.4\n0.5,0.5\n")
        words, config = COMMANDS[request.param]
        assert main([*words, "--checkpoint", "run"]) == 0
        yield request.param, list(words), config, folder / "run"


def check(begun, name, kind, capsys):
    command, words, config, folder = begun
    before = records(folder)
    code = main([*other(name, kind, words, config), "--checkpoint", "run"])
    said = capsys.readouterr()
    if name in FREE[command]:
        assert code == 0, said.err
        assert records(folder) == before
        return
    assert code in (1, 2), f"{name}: a run of other options ended well: {said.out}"
    assert "Traceback" not in said.err
    assert records(folder) == before, f"{name}: a refused run has changed the records"
    if code == 1:
        assert re.search(rf"--\S*{name.replace('_', '-')}|{name}", said.err), said.err
        assert "but the run in run" in said.err


QUICK = {"arc": ["seed", "learning_rate", "updates"], "acbo": ["seed", "steps", "learning_rate"]}
QUICK |= {"trace": ["integrator", "boundary", "time_span", "key", "files", "save_seconds"]}


def test_some_options(begun, capsys):
    kinds = dict(fields(begun[2]))
    for name in QUICK[begun[0]]:
        check(begun, name, kinds[name], capsys)


@pytest.mark.slow
def test_every_option(begun, capsys):
    for name, kind in fields(begun[2]):
        if name != "checkpoint":
            check(begun, name, kind, capsys)


def test_the_same_command_returns_the_same(begun, capsys):
    command, words, _, folder = begun
    before = records(folder)
    assert main([*words, "--checkpoint", "run"]) == 0
    assert records(folder) == before
    read = wl.read_run(folder / "part0-of-8" if command == "trace" else folder)
    assert read.config["key" if command == "trace" else "seed"] == 3
    assert read.command


def test_a_seed_left_out_is_that_of_the_run_in_the_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = list(ARC[: ARC.index("--seed")])
    assert main([*words, "--checkpoint", "run"]) == 0
    seed = re.search(r"seed (\d+)", capsys.readouterr().out)[1]
    assert main([*words, "--checkpoint", "run"]) == 0
    assert f"seed {seed}" in capsys.readouterr().out
    assert main([*words, "--checkpoint", "fresh"]) == 0
    assert f"seed {seed}" not in capsys.readouterr().out


def test_a_run_is_prolonged_from_the_shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    longer = [{"2": "4"}.get(w, w) if ARC[i - 1] == "--updates" else w for i, w in enumerate(ARC)]
    assert main([*ARC, "--checkpoint", "run"]) == 0
    assert main([*longer, "--checkpoint", "run"]) == 0
    assert main([*longer, "--checkpoint", "whole"]) == 0
    assert wl.read_run("run").length == 4
    joined, whole = (wl.load_records(f"{name}/records") for name in ("run", "whole"))
    for name in whole:
        np.testing.assert_array_equal(joined[name], whole[name])
    assert main([*ARC, "--checkpoint", "run"]) == 1
    assert "--updates is 2, but the run in run has 4" in capsys.readouterr().err
