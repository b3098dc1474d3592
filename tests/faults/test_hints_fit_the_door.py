"""An error recommends what the door in hand has: arguments in Python, flags at the shell."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from worldloom._systems import SYSTEMS
from worldloom._way import at_shell, way
from worldloom.cli import main
from worldloom.cli._main import COMMANDS

SOURCE = Path(__file__).parents[2] / "src"
# `resume=True`, `window=...`, `sink=ZarrSink(...)`, `load(path, like=...)`, `jaxtrace.configure(`.
ADVICE = re.compile(r"\b[a-z_]+=(True|False|\.\.\.|\[|\(|[A-Z]\w+\()|\b[a-z_.]+\([^)]*(=|\.\.\.)")
# Rooms that commands do not come to: what Python programs alone call.
APART = (
    "acbo/training", "acbo/policy/_guide", "jaxarc/utils/", "jaxarc/testing", "jaxarc/envs",
    "jaxarc/data/_buffer", "jaxarc/training/_network", "jaxtrace/_config", "jaxtrace/fields",
    "jaxtrace/analysis", "worldloom/batch", "worldloom/bench", "worldloom/check",
    "worldloom/compile", "worldloom/loop", "worldloom/report/_picture", "worldloom/watch",
    "worldloom/mesh/_arrays", "worldloom/store/_mapped", "jaxtrace/tracking/boundary",
)  # fmt: skip


def test_the_words_of_a_command_are_its_flags():
    assert way("give times=[...]", "give --times") == "give times=[...]"
    with at_shell({"--times"}):
        assert way("give times=[...]", "give --times 0 1") == "give --times 0 1"
        assert way("give steps=...", "give --steps 3") == ""
        assert way("load(path, like=...)") == ""


def test_advice_in_python_stands_only_where_a_way_is_chosen():
    wrong = []
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        if name.startswith(APART):
            continue
        for raised in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(raised, ast.Raise):
                wrong += [f"{name}:{line}: {text}" for line, text in _advice(raised)]
    assert not wrong, "\n".join(wrong)


def _advice(node: ast.AST):
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "way":
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and ADVICE.search(node.value):
        yield node.lineno, node.value
    for child in ast.iter_child_nodes(node):
        yield from _advice(child)


def test_each_flag_that_a_way_names_exists_somewhere():
    flags: set[str] = set()
    for command in COMMANDS.values():
        flags |= command.flags
    for system in SYSTEMS:
        for command in system.load("cli").COMMANDS:
            flags |= command.flags
    for file in SOURCE.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "way":
                for word in call.args[1:]:
                    named = set(re.findall(r"--[a-z][a-z-]*", ast.unparse(word)))
                    assert named <= flags, f"{file.name}:{call.lineno} names {named - flags}"


@pytest.mark.parametrize("command", ["info", "run", "ftle", "view"])
def test_a_flow_whose_velocity_is_not_obvious(command, tmp_path, monkeypatch, capsys):
    import xarray

    monkeypatch.chdir(tmp_path)
    x = np.linspace(0.0, 1.0, 4)
    pair = {name: (("y", "x"), np.ones((4, 4))) for name in ("a", "b")}
    xarray.Dataset(pair, {"y": x, "x": x}).to_netcdf("flow.nc")
    assert main(["trace", command, "flow.nc"]) == 1
    told = capsys.readouterr().err
    assert "--velocity u v" in told
    assert "velocity=(" not in told


def test_a_network_of_others_is_refused_without_a_template(tmp_path, capsys):
    from worldloom import store

    store.save(tmp_path / "x.loom", {"f": print})
    assert main(["arc", "replay", str(tmp_path / "x.loom"), "-o", str(tmp_path / "x.html")]) == 1
    assert "like=" not in capsys.readouterr().err
    with pytest.raises(store.MismatchError, match="like="):
        store.load(tmp_path / "x.loom")
    with at_shell({"--out"}), pytest.raises(store.MismatchError) as caught:
        store.load(tmp_path / "x.loom")
    assert "like=" not in str(caught.value)
