"""`worldloom acbo`: what is asked for is what is done, and bad input is one message."""

from __future__ import annotations

import json
import subprocess
import sys

import jax
import numpy as np
import pytest
from surrogates import SIZES, Correlations, random_surrogate

from acbo._files import save_network
from acbo.cli import Optimise, Train
from acbo.cli._options import as_text, load_surrogate
from acbo.cli._train import curriculum
from acbo.discovery import discover
from acbo.report import Recording
from acbo.surrogate import Surrogate
from worldloom import config
from worldloom.cli import main


@pytest.fixture(scope="session")
def base() -> Surrogate:
    return random_surrogate()


@pytest.fixture
def stub(base, monkeypatch) -> Surrogate:
    """Every command uses this network."""
    network = Correlations(base)
    for module in ("_discover", "_optimise"):
        monkeypatch.setattr(f"acbo.cli.{module}.load_surrogate", lambda path: network)
    return network


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


def table(tmp_path, columns: dict, name: str = "cells.csv"):
    path = tmp_path / name
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
    return str(path)


def weather(n: int = 40) -> dict:
    rng = np.random.default_rng(1)
    rain = rng.normal(size=n)
    river = 2 * rain + rng.normal(size=n)
    return {"rain": rain.tolist(), "river": river.tolist(), "moon": rng.normal(size=n).tolist()}


def test_discover_prints_draws_and_is_the_python_api(stub, tmp_path, capsys):
    columns = weather()
    path = table(tmp_path, {**columns, "set": ["rain"] * 4 + [""] * 36})
    assert main(["acbo", "discover", path, "--interventions", "set", "-o", "g.html"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "40 samples of 3 variables, 4 of them under intervention"
    assert said[1].split() == ["cause", "effect", "probability"]
    assert {tuple(line.split()[:2]) for line in said[2:4]} == {("rain", "river"), ("river", "rain")}
    assert said[-1] == "g.html"
    assert "rain → river" in (tmp_path / "g.html").read_text()

    assert main(["acbo", "discover", path, "--interventions", "set", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    mask = np.zeros((40, 3), bool)
    mask[:4, 0] = True
    values = np.array(list(columns.values())).T
    found = discover(values, mask, names=["rain", "river", "moon"], network=stub)
    np.testing.assert_allclose(told["edge_probabilities"], found.edge_probabilities, atol=1e-6)
    best = told["edges"][0]
    assert best["probability"] == pytest.approx(float(found.edge_probabilities.max()))
    assert len(told["edges"]) == 6

    assert main(["acbo", "discover", path, "--interventions", "set", "--target", "river"]) == 0
    assert all(line.split()[1] == "river" for line in capsys.readouterr().out.splitlines()[2:])


def test_what_is_odd_is_said_and_done(stub, tmp_path, capsys):
    columns = {name: values[:2] for name, values in weather().items()}
    path = table(tmp_path, {**columns, "set": ["moon", "moon"]})
    assert main(["acbo", "discover", path, "--interventions", "set"]) == 0
    said = capsys.readouterr()
    assert "2 samples of 3 variables" in said.out
    lines = said.err.splitlines()
    assert lines[0].startswith("worldloom: warning: source has 2 samples of 3 variables")
    assert lines[1].startswith("worldloom: warning: column 'moon' was set from outside in every")


def bad_inputs() -> dict:
    good = weather(8)
    wide = {f"v{k}": np.random.default_rng(k).normal(size=30).tolist() for k in range(21)}
    return {
        "constant": ({**good, "moon": [2.5] * 8}, {}, "column 'moon' is 2.5 in every row"),
        "missing": ({**good, "moon": [1, "nan", *range(6)]}, {}, "column 'moon' has 1 values that"),
        "empty cell": ({**good, "moon": [1, "", *range(6)]}, {}, "(nan) in row 1"),
        "text": ({**good, "moon": ["full", *range(7)]}, {}, "column 'moon' holds 'full' in row 0"),
        "one variable": ({"rain": good["rain"]}, {}, "source has one variable, 'rain'"),
        "too many": (wide, {}, "data has 21 variables; discover takes at most 20"),
        "mask of another shape": (good, {"rain": [0, 1]}, "interventions has 2 rows, source has 8"),
        "mask of others": (good, {"sun": [0] * 8}, "interventions has a column 'sun'"),
        "mask of values": (good, {"rain": [0.5] * 8}, "interventions holds 0.5 for 'rain'"),
    }


@pytest.mark.parametrize("case", bad_inputs())
def test_bad_data_is_one_message(case, tmp_path, capsys):
    columns, mask, message = bad_inputs()[case]
    words = ["acbo", "discover", table(tmp_path, columns)]
    if mask:
        words += ["--interventions", table(tmp_path, mask, "mask.csv")]
    assert main(words) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("worldloom: error: ")
    assert message in said.err
    assert said.err.count("\n") == 1, "one message, no traceback"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["discover"], "name the file that holds the samples"),
        (["discover", "x.csv", "-o", "x.png"], "--out 'x.png': expected .html"),
        (["discover", "x.csv", "--smallest", "2"], "--smallest 2.0: expected a probability"),
        (
            ["discover", "x.csv", "--surrogate", "no.loom"],
            "--surrogate 'no.loom': there is no such",
        ),
        (
            ["optimise", "--problem", "toys"],
            "--problem 'toys': expected chain, fork, collider, toy",
        ),
        (["optimise", "--policy", "best"], "policy is 'best'; the policies are random, round"),
        (["optimise", "--budget", "0"], "--budget 0: expected 1 or more"),
        (["train", "surrogate", "--variables", "10", "5"], "--variables 10 5: expected numbers"),
        (["train", "surrogate", "--save-seconds", "-1"], "--save-seconds -1: expected 0 or more"),
        (["train", "surrogate", "--blocks", "3"], "blocks=3 is odd"),
        (["train", "surrogate", "--rows", "9", "4"], "rows=(9, 4); expected 2 <= smallest"),
        (["eval", "--graphs", "10"], "--graphs 10: expected a multiple of --batch 16"),
        (["eval", "discovery", "--cells", "9"], "--cells 9: expected some of 1: linear, d=5"),
        (["eval", "policies", "--policies", "x"], "policy is 'x'; the policies are"),
    ],
)
def test_a_wrong_command_line_is_one_message(words, message, capsys):
    assert main(["acbo", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_a_missing_file_is_one_message(capsys):
    assert main(["acbo", "discover", "nowhere.csv"]) == 1
    assert "source is 'nowhere.csv': there is no such file" in capsys.readouterr().err


WORDS = ["acbo", "optimise", "--problem", "fork", "--policy", "oracle", "--budget", "2"]


def check_optimise(tmp_path, capsys):
    assert main([*WORDS, "--observed", "8", "-o", "o.html"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "X goes with Y and does nothing to it" in said[0]
    assert said[2].split()[:4] == ["1.", "Z", "=", "3.00"]
    assert "100 % of what one intervention can reach" in said[-2]
    assert said[-1] == "o.html"
    page = (tmp_path / "o.html").read_text()
    assert "acbo-replay" in page
    assert main([*WORDS, "--observed", "8", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["target"] == "Y"
    assert [step["variable"] for step in told["steps"]] == ["Z", "Z"]
    assert told["steps"][-1]["best"] == pytest.approx(1.0)


def test_optimise_prints_and_draws_what_was_played(tmp_path, capsys, monkeypatch):
    ones = np.ones(2)
    beliefs, truth = np.zeros((3, 3, 3)), np.zeros((3, 3), bool)
    asked = {}

    def played(problem, policy, **options):
        asked.update(options, policy=policy)
        where = np.array([0, 0])
        return Recording(
            policy, problem.names, 2, where, 3 * ones, ones, ones, ones, beliefs, truth
        )

    monkeypatch.setattr("acbo.report.record_optimisation", played)
    check_optimise(tmp_path, capsys)
    assert (asked["policy"], asked["budget"], asked["observed"]) == ("oracle", 2, 8)


@pytest.mark.slow
def test_optimise_plays(stub, tmp_path, capsys):
    check_optimise(tmp_path, capsys)


def test_a_file_is_a_configuration(tmp_path, capsys):
    (tmp_path / "run.yaml").write_text("problem: health\npolicy: gp-ucb\nbudget: 4\n")
    assert config.load(Optimise, "run.yaml") == Optimise(
        problem="health", policy="gp-ucb", budget=4
    )
    (tmp_path / "wrong.yaml").write_text("problm: health\n")
    assert main(["acbo", "optimise", "wrong.yaml"]) == 2
    assert "problem" in capsys.readouterr().err


def test_lessons_follow_from_sizes():
    lessons = curriculum(Train(variables=(5, 10, 20), rows=(32, 64), batch=4)).lessons
    assert [lesson.variables for lesson in lessons] == [(2, 5), (5, 10), (10, 20)]
    assert {lesson.rows for lesson in lessons} == {(32, 64)}
    families = curriculum(Train(mechanisms=("polynomial",))).families
    assert [family.mechanism for family, _ in families] == ["polynomial"]


def test_networks_come_back_from_their_files(base, tmp_path):
    path = tmp_path / "a" / "surrogate.loom"
    save_network(path, base)
    again = load_surrogate(path)
    assert again is not None
    assert again.config == SIZES
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(base), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_table_of_text():
    assert as_text(["name", "x"], [["a", "1.5"], ["long", "10"]]) == (
        "name    x\na     1.5\nlong   10"
    )


def test_the_commands_are_listed_without_loading_jax():
    code = "import sys; from acbo.cli import COMMANDS; assert 'jax' not in sys.modules; print(5)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "5\n", done.stderr


SMALL = ["--steps", "6", "--variables", "3", "--rows", "8", "16", "--batch", "2", "--hidden", "8"]
SMALL += ["--blocks", "2", "--mechanisms", "linear", "--no-progress"]


@pytest.mark.slow
def test_training_leaves_networks_that_the_other_commands_take(tmp_path, capsys):
    assert main(["acbo", "train", "surrogate", *SMALL, "-o", "nets", "--checkpoint", "run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("6 steps")
    assert said[1:] == ["nets/surrogate.loom", "nets/surrogate.html"]
    assert "Loss of the surrogate" in (tmp_path / "nets" / "surrogate.html").read_text()
    first = (tmp_path / "nets" / "surrogate.loom").read_bytes()
    # A finished training that goes on is the same training.
    again = ["acbo", "train", "surrogate", *SMALL, "-o", "more", "--checkpoint", "run"]
    assert main(again) == 0
    assert (tmp_path / "more" / "surrogate.loom").read_bytes() == first

    own = ["--surrogate", "nets/surrogate.loom"]
    policy = ["acbo", "train", "policy", *SMALL, *own, "-o", "nets", "--budget", "2"]
    assert main([*policy, "--observed", "4", "--group-size", "2"]) == 0
    own += ["--network", "nets/policy.loom"]
    optimise = ["acbo", "optimise", "--problem", "fork", "--budget", "2", "--observed", "6"]
    assert main([*optimise, *own]) == 0
    capsys.readouterr()
    words = ["acbo", "eval", "discovery", "--cells", "1", "--graphs", "8", "--batch", "8"]
    assert main([*words, *own[:2], "--json", "-o", "e.html"]) == 0
    row = json.loads(capsys.readouterr().out)["discovery"][0]
    assert row["cell"] == "linear, d=5, n=100, half interventional"
    words = ["acbo", "eval", "policies", "--policies", "learned", "oracle", "--contests", "1"]
    assert main([*words, "--problems", "8", *own, "-o", "p.html"]) == 0
    assert "oracle" in capsys.readouterr().out
    assert "Regret, in family" in (tmp_path / "p.html").read_text()


@pytest.mark.slow
def test_two_processes_train_as_one_does(tmp_path):
    words = [sys.executable, "-m", "worldloom.cli"]
    train = [*words, "acbo", "train", "surrogate", *SMALL]
    for launch, out in (([], "one"), ([*words, "launch", "-n", "2", "--"], "two")):
        done = subprocess.run(
            [*launch, *train, "-o", out],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("surrogate.loom") == 1, "one process writes"
    one, two = (load_surrogate(tmp_path / out / "surrogate.loom") for out in ("one", "two"))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)


def test_a_batch_goes_to_the_devices_that_divide_it(monkeypatch):
    from acbo.cli._train import _devices_for
    from worldloom.cli import UsageError

    devices = _devices_for(4)
    assert devices is not None
    assert devices.size == 2
    assert _devices_for(3) is None
    # Another process cannot be left out.
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UsageError, match="--batch 3: 2 devices do not divide it"):
        _devices_for(3)
