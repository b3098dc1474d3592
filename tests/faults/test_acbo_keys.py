"""Issue 24, 2.10 for causes: no random default is always the same; what was drawn is told."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import logging
from pathlib import Path

import jax
import numpy as np
import pytest

import acbo
from acbo.evaluation import Contest, DiscoveryCell, evaluate_discovery, evaluate_policy
from acbo.optimise import ProblemPrior
from acbo.scm import Family
from acbo.surrogate import Surrogate, SurrogateConfig
from acbo.training import (
    collect_observational_data,
    generate_scm_for_difficulty,
)
from worldloom.cli import main

SMALL = Surrogate(SurrogateConfig(hidden=4, blocks=2, heads=2, moments=2), key=jax.random.key(0))
SOURCES = Path(inspect.getfile(acbo)).parent
ON_PURPOSE = {"policy/_features.py"}  # the same view has the same features


def test_no_function_makes_a_key_of_its_own():
    """`jax.random.key(0)` in place of a missing key is nowhere; sizes alone need no numbers."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.IfExp | ast.BoolOp | ast.arguments):
                continue
            if "jax.random.key(" in ast.unparse(node):
                found.append(f"{path.relative_to(SOURCES)}: {ast.unparse(node)}")
    assert not [one for one in found if one.partition(":")[0] not in ON_PURPOSE]


def test_models_and_data_differ_from_call_to_call(caplog):
    with caplog.at_level(logging.INFO, "acbo"):
        one, two = (generate_scm_for_difficulty("easy") for _ in range(2))
        first, second = (collect_observational_data(one).values for _ in range(2))
    assert not np.array_equal(first, second)
    assert not np.array_equal(one.noise_scale, two.noise_scale)
    # What the log tells makes the same again.
    seed = int(caplog.records[0].getMessage().partition("key(")[2].partition(")")[0])
    again = generate_scm_for_difficulty("easy", seed=seed)
    np.testing.assert_array_equal(again.noise_scale, one.noise_scale)


def test_scores_keep_the_seed_that_was_drawn():
    cell = DiscoveryCell(Family(), d=3, n=16, interventional=0.5)
    options = {"graphs": 4, "batch": 4, "compare_exact": False}
    drawn = evaluate_discovery(cell, SMALL, **options)
    assert drawn.seed is not None
    again = evaluate_discovery(cell, SMALL, key=jax.random.key(drawn.seed), **options)
    assert again.seed is None
    np.testing.assert_array_equal(again.log_loss.estimate, drawn.log_loss.estimate)
    assert evaluate_discovery(cell, SMALL, **options).seed != drawn.seed


def test_scores_of_policies_keep_it_too():
    contest = Contest("small", ProblemPrior(), d=3, observed=4, budget=1)
    drawn = evaluate_policy("random", contest, surrogate=SMALL, problems=8)
    again = evaluate_policy(
        "random", contest, surrogate=SMALL, problems=8, key=jax.random.key(drawn.seed)
    )
    np.testing.assert_array_equal(again.mean.estimate, drawn.mean.estimate)


@pytest.mark.parametrize("name", ["optimise", "eval"])
def test_the_shell_draws_a_seed(name):
    """Without `--seed` there is none until the command runs."""
    from acbo.cli import Eval, Optimise
    from acbo.cli._options import with_seed

    config = {"optimise": Optimise, "eval": Eval}[name]()
    assert config.seed is None
    one, two = with_seed(config), with_seed(config)
    assert one.seed != two.seed
    assert with_seed(dataclasses.replace(config, seed=4)).seed == 4


def test_an_optimisation_tells_its_seed_and_is_made_again_by_it(capsys):
    words = ["acbo", "optimise", "--problem", "fork", "--policy", "random", "--json"]
    words += ["--budget", "2", "--observed", "5"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*words, "--seed", str(first["seed"])]) == 0
    assert json.loads(capsys.readouterr().out) == first
