"""`worldloom acbo optimise`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from acbo.cli._options import (
    as_text,
    check_at_least,
    check_page,
    key_of,
    load_policy,
    load_surrogate,
    told_by_flags,
    with_seed,
)
from worldloom.cli import FileCommand, OutputFile, UsageError, as_command

if TYPE_CHECKING:
    from acbo.optimise import Problem
    from acbo.report import Recording


@dataclasses.dataclass(frozen=True)
class Optimise:
    """What `worldloom acbo optimise` does."""

    problem: str = "toy"
    """A named problem (chain, fork, collider, toy, complete, health), or `random`."""

    policy: str = "learned"
    """Who chooses: random, round-robin, correlation, thompson, linear-ucb, gp-ei, gp-ucb,
    causal-gp-ei, causal-gp-ucb, learned-gp-ei, learned-gp-ucb, greedy, learned, or oracle."""

    budget: int = 10
    """How many interventions."""

    observed: int = 20
    """Samples without any intervention at the beginning."""

    seed: int | None = None
    """For samples, and for a random problem. A fresh one by default, which is printed."""

    variables: int = 5
    """Variables of a random problem."""

    mechanism: Literal["linear", "polynomial", "fourier"] = "linear"
    """How effects follow from causes in a random problem."""

    json: bool = False
    """Print everything as JSON."""

    out: Annotated[Path | None, OutputFile(), tyro.conf.arg(aliases=["-o"])] = None
    """Also write a page with a replay: .html."""

    surrogate: Path | None = None
    """A network of `worldloom acbo train surrogate`, instead of the one in the package."""

    network: Path | None = None
    """A network of `worldloom acbo train policy`, instead of the one in the package."""

    def __post_init__(self) -> None:
        check_page(self.out)
        check_at_least(self, budget=1, observed=2, variables=2)


def run(config: Optimise) -> None:
    """Play, and say what was done and what came of it."""
    import jax

    config = with_seed(config)

    from acbo.evaluation._entrants import builder_of
    from acbo.report import record_optimisation, steps_table
    from acbo.report._replay import in_words

    with told_by_flags():
        builder_of(config.policy)
        problem, about = _problem(config)
    recording = record_optimisation(
        problem,
        config.policy,
        key=jax.random.fold_in(key_of(config), 1),
        surrogate=load_surrogate(config.surrogate),
        network=load_policy(config.network),
        observed=config.observed,
        budget=config.budget,
    )
    if config.json:
        print(_json(config, recording))
    else:
        print(f"{about} Seed {config.seed}.")
        print(as_text(*steps_table(recording)))
        print(in_words(recording))
    if config.out is not None:
        from acbo.report import add_optimisation
        from worldloom import report

        page = report.Report(
            f"Optimising {recording.names[recording.target]}",
            subtitle=f"{about} Seed {config.seed}.",
        )
        page.headline(
            f"{100 * float(recording.best[-1]):.0f} %",
            "of what one intervention can reach",
            detail=f"policy `{config.policy}`, {config.budget} interventions",
            command=as_command("worldloom acbo optimise", config),
        )
        path = add_optimisation(page, recording).save(config.out)
        if not config.json:
            print(path)


def _problem(config: Optimise) -> tuple[Problem, str]:
    import jax

    from acbo.optimise import PROBLEMS, ProblemPrior, named_problem
    from acbo.scm import Family

    if config.problem in PROBLEMS:
        problem = named_problem(config.problem)
        return problem, problem.about
    if config.problem != "random":
        raise UsageError(f"--problem {config.problem!r}: expected {', '.join(PROBLEMS)}, or random")
    family = Family(mechanism=config.mechanism, edges_per_variable=(1.0, 1.5))
    draw = jax.jit(lambda key: ProblemPrior(family=family).problem(key, config.variables))
    about = f"A random {config.mechanism} problem of {config.variables} variables."
    return draw(key_of(config)), about


def _json(config: Optimise, recording: Recording) -> str:
    import json

    steps = [
        {
            "variable": recording.names[variable],
            "value": float(value),
            "seen": float(seen),
            "worth": float(worth),
            "best": float(best),
        }
        for variable, value, seen, worth, best in zip(
            recording.variables,
            recording.values,
            recording.seen,
            recording.worth,
            recording.best,
            strict=True,
        )
    ]
    target = recording.names[recording.target]
    about = {
        "problem": config.problem,
        "policy": config.policy,
        "seed": config.seed,
        "target": target,
        "steps": steps,
    }
    return json.dumps(about, indent=1)


COMMAND = FileCommand(
    "optimise",
    "Choose interventions that make a target large, one after the other.",
    Optimise,
    run,
    examples=(
        ("worldloom acbo optimise", "the learned policy on the toy chain"),
        ("worldloom acbo optimise --problem health --policy gp-ucb -o health.html", "a replay"),
        ("worldloom acbo optimise --problem random --variables 10 --seed 3", "a random system"),
        ("worldloom acbo optimise run.yaml --budget 5", "values from a file"),
    ),
)
