"""`worldloom acbo discover`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from acbo._errors import AcboWarning
from acbo.cli._options import add_command, as_text, check_page, load_surrogate
from worldloom.cli import Command, OutputFile, UsageError, plain_warnings

if TYPE_CHECKING:
    from acbo.discovery import Discovery


@dataclasses.dataclass(frozen=True)
class Discover:
    """What `worldloom acbo discover` does."""

    data: Annotated[
        str, tyro.conf.arg(metavar="DATA", help_behavior_hint=""), tyro.conf.Positional
    ] = ""
    """The samples: a .csv, .tsv or .parquet file with a column a variable."""

    interventions: str = ""
    """What was set from outside: a column of DATA that names the variable of each row (empty:
    none; `a;b`: two), or a file of 0 and 1 with the columns of DATA."""

    encoding: str = "utf-8"
    """Of a .csv, .tsv or .txt file that is not UTF-8, such as latin-1."""

    target: str = ""
    """Tell the probable causes of this variable only."""

    acyclic: bool = False
    """Sum over all orders of the variables, so that no probability rests on a circle."""

    smallest: float = 0.1
    """Leave out edges below this probability. The JSON has them all."""

    json: bool = False
    """Print everything as JSON."""

    out: Annotated[Path | None, OutputFile(), tyro.conf.arg(aliases=["-o"])] = None
    """Also write a page with a drawing of the graph: .html."""

    surrogate: Path | None = None
    """A network of `worldloom acbo train surrogate`, instead of the one in the package."""

    def __post_init__(self) -> None:
        check_page(self.out)
        if not 0 <= self.smallest <= 1:
            raise UsageError(f"--smallest {self.smallest}: expected a probability, from 0 to 1")


def run(config: Discover) -> None:
    """Read the data, find the graph, say what it is."""
    if not config.data:
        raise UsageError("name the file that holds the samples, such as cells.csv")
    network = load_surrogate(config.surrogate)
    with plain_warnings(AcboWarning):
        from acbo.data import read_data
        from acbo.discovery import discover

        dataset = read_data(config.data, config.interventions or None, encoding=config.encoding)
        target = dataset.names[dataset.index(config.target)] if config.target else ""
        found = discover(dataset, acyclic=config.acyclic, network=network)
    if config.json:
        print(as_json(found))
    else:
        n, d = dataset.values.shape
        rows = int(dataset.intervened.any(axis=1).sum())
        print(f"{n:,} samples of {d} variables, {rows:,} of them under intervention")
        edges = [e for e in likely(found, config.smallest) if not target or e[1] == target]
        if edges:
            cells = [[cause, effect, f"{p:.3f}"] for cause, effect, p in edges]
            print(as_text(["cause", "effect", "probability"], cells))
        else:
            print(f"no edge has a probability of {config.smallest:g} or more")
    if config.out is not None:
        page = _page(config, found, f"{dataset!r}")
        add_command(page, "worldloom acbo discover", config)
        path = page.save(config.out)
        if not config.json:
            print(path)


def likely(found: Discovery, smallest: float) -> list[tuple[str, str, float]]:
    """Cause, effect and probability of edges, the likeliest first."""
    edges = [
        (cause, effect, float(found.edge_probabilities[i, j]))
        for i, cause in enumerate(found.names)
        for j, effect in enumerate(found.names)
        if i != j and found.edge_probabilities[i, j] >= smallest
    ]
    return sorted(edges, key=lambda edge: -edge[2])


def as_json(found: Discovery) -> str:
    """All probabilities, as a matrix and as a list."""
    import json

    edges = likely(found, 0.0)
    about = {
        "names": found.names,
        "edge_probabilities": found.edge_probabilities.tolist(),
        "edges": [{"cause": c, "effect": e, "probability": p} for c, e, p in edges],
        "doubts": found.doubts,
    }
    return json.dumps(about, indent=1)


def _page(config: Discover, found: Discovery, what: str) -> Any:
    from acbo.report import add_graph
    from worldloom import report

    page = report.Report(f"Causes in {Path(config.data).name}", subtitle=what)
    if found.doubts:
        listed = "\n".join(f"- {reason}" for reason in found.doubts)
        page.section("Reasons for doubt", f"The table is unlike those of the training:\n\n{listed}")
    return add_graph(
        page,
        found.edge_probabilities,
        found.names,
        text="How probable it is that one variable is a direct cause of another, as a network says "
        "that was trained on simulated systems. It assumes that nothing outside the table causes "
        "two of its variables.",
    )


COMMAND = Command(
    "discover",
    "Find the causal graph behind a table of samples.",
    Discover,
    run,
    examples=(
        ("worldloom acbo discover cells.csv", "edges and their probabilities"),
        ("worldloom acbo discover cells.csv --interventions set -o graph.html", "and a drawing"),
        ("worldloom acbo discover x.parquet --interventions mask.csv --json", "as JSON"),
    ),
)
