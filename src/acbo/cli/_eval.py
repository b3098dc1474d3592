"""`worldloom acbo eval`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from acbo.cli._options import (
    add_command,
    as_text,
    check_at_least,
    check_page,
    key_of,
    load_policy,
    load_surrogate,
    told_by_flags,
    with_seed,
)
from worldloom.cli import Command, OutputFile, UsageError


@dataclasses.dataclass(frozen=True)
class Eval:
    """What `worldloom acbo eval` does."""

    what: Annotated[
        Literal["discovery", "policies", "all"],
        tyro.conf.arg(metavar="[discovery|policies]", help_behavior_hint=""),
        tyro.conf.Positional,
    ] = "all"
    """Graphs that are found, interventions that are chosen, or both."""

    cells: tuple[int, ...] = ()
    """Discovery: which rows of the table, counted from 1. All by default."""

    graphs: int = 480
    """Discovery: held-out graphs a cell."""

    batch: int = 16
    """Discovery: data sets at a time; `--graphs` is a multiple of it."""

    policies: tuple[str, ...] = ()
    """Policies by name; all by default."""

    contests: tuple[int, ...] = ()
    """Policies: which problems, counted from 1: in family, nonlinear, scale-free, twice the
    variables. All by default."""

    problems: int = 128
    """Policies: held-out problems."""

    seed: int | None = None
    """For graphs, problems and samples. A fresh one by default, which is printed."""

    json: bool = False
    """Print the tables as JSON."""

    out: Annotated[Path | None, OutputFile(), tyro.conf.arg(aliases=["-o"])] = None
    """Also write a page with reliability and regret: .html."""

    surrogate: Path | None = None
    """A network of `worldloom acbo train surrogate`, instead of the one in the package."""

    network: Path | None = None
    """A network of `worldloom acbo train policy`, instead of the one in the package."""

    def __post_init__(self) -> None:
        check_page(self.out)
        check_at_least(self, graphs=1, batch=1, problems=1)
        if self.graphs % self.batch:
            raise UsageError(f"--graphs {self.graphs}: expected a multiple of --batch {self.batch}")


def run(config: Eval) -> None:
    """Measure, print tables, write a page."""
    from acbo.evaluation import discovery_table, policy_table

    config = with_seed(config)
    surrogate = load_surrogate(config.surrogate)
    found = _discovery(config, surrogate) if config.what != "policies" else []
    played = _policies(config, surrogate) if config.what != "discovery" else []
    tables = {}
    if found:
        tables["discovery"] = discovery_table(found)
    if played:
        tables["policies"] = policy_table(played)
    if config.json:
        import json

        rows: dict[str, Any] = {"seed": config.seed}
        rows |= {
            name: [dict(zip(columns, row, strict=True)) for row in rows]
            for name, (columns, rows) in tables.items()
        }
        print(json.dumps(rows, indent=1))
    else:
        print("\n\n".join(as_text(*table) for table in tables.values()))
        print(f"\nseed {config.seed}")
    if config.out is not None:
        from acbo.report import add_discovery_scores, add_policy_scores
        from worldloom import report

        page = report.Report(
            "How good the networks are",
            subtitle=f"On systems that they have never seen, drawn with seed {config.seed}.",
        )
        if found:
            add_discovery_scores(page, found)
        if played:
            add_policy_scores(page, played)
        add_command(page, "worldloom acbo eval", config)
        path = page.save(config.out)
        if not config.json:
            print(path)


def _discovery(config: Eval, surrogate: Any) -> list:
    import jax

    from acbo.evaluation import CELLS, evaluate_discovery

    scores = []
    for number, cell in _chosen("cells", config.cells, CELLS):
        print(f"{cell} ...", file=sys.stderr, flush=True)
        key = jax.random.fold_in(key_of(config), number)
        scores.append(
            evaluate_discovery(cell, surrogate, graphs=config.graphs, batch=config.batch, key=key)
        )
    return scores


def _policies(config: Eval, surrogate: Any) -> list:
    import jax

    from acbo.evaluation import CONTESTS, POLICIES, evaluate_policy
    from acbo.evaluation._entrants import builder_of

    names = config.policies or POLICIES
    with told_by_flags():
        for name in names:
            builder_of(name)
    network = load_policy(config.network)
    scores = []
    for number, contest in _chosen("contests", config.contests, CONTESTS):
        for name in names:
            print(f"{contest.name}: {name} ...", file=sys.stderr, flush=True)
            scores.append(
                evaluate_policy(
                    name,
                    contest,
                    surrogate=surrogate,
                    network=network,
                    problems=config.problems,
                    key=jax.random.fold_in(key_of(config), number),
                )
            )
    return scores


def _chosen(flag: str, numbers: tuple[int, ...], among: Any) -> list[tuple[int, Any]]:
    bad = [number for number in numbers if not 1 <= number <= len(among)]
    if bad:
        listed = "; ".join(f"{k + 1}: {getattr(one, 'name', one)}" for k, one in enumerate(among))
        raise UsageError(f"--{flag} {bad[0]}: expected some of {listed}")
    return [(n, among[n - 1]) for n in numbers or range(1, len(among) + 1)]


COMMAND = Command(
    "eval",
    "Measure how well graphs are found and interventions are chosen.",
    Eval,
    run,
    examples=(
        ("worldloom acbo eval -o eval.html", "everything, with a page"),
        ("worldloom acbo eval discovery --cells 1 2", "five variables, linear"),
        ("worldloom acbo eval policies --policies learned oracle --contests 1", "two policies"),
        ("worldloom acbo eval --surrogate out/acbo/surrogate.loom", "a network of your own"),
    ),
)
