"""Causal discovery against PC, GES, hill climbing, GIES and DiBS, and the exact posterior.

Random linear-Gaussian systems with known graphs, the same data for all. The rivals come from PyPI
into environments of their own. A figure is the edge AUROC, averaged over graphs, with its 95 %
interval; a time is the median for one data set, after everything that can be compiled once is.

    python benchmarks/acbo_vs_rivals.py [--quick] [--alone] [--graphs 20] [--rivals GIES ...]
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# The folder beside this file has the name of the package, so its modules are found by themselves.
HERE = Path(__file__).parent / "acbo"
sys.path.insert(0, str(HERE))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from cells import CELLS, Batch, Cell, draw  # noqa: E402  # pyright: ignore[reportMissingImports]
from rich import box  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import acbo  # noqa: E402
from acbo import exact, metrics  # noqa: E402
from worldloom import bench  # noqa: E402

GROUP = "acbo"
EXACT, OURS = "exact posterior", "acbo"
LARGEST_EXACT = 12  # above, order MCMC stands in for the sum over all orders
DIBS_STEPS = 1000
LARGEST_DIBS = 5  # half a minute a data set there, and more above

RIVALS = {
    "PC": ("rival_causal_learn.py", ("causal-learn==0.1.4.8",), {"method": "PC"}),
    "GES": ("rival_causal_learn.py", ("causal-learn==0.1.4.8",), {"method": "GES"}),
    "hill climbing": ("rival_pgmpy.py", ("pgmpy==1.1.2",), {}),
    "GIES": ("rival_gies.py", ("gies==0.0.3",), {}),
    "DiBS": ("rival_dibs.py", ("dibs-lib==1.3.3", f"jax=={jax.__version__}"), {}),
}


@dataclasses.dataclass(frozen=True)
class Answer:
    """Edge probabilities of every data set of a cell, and seconds for each."""

    edges: np.ndarray
    seconds: list[float]


@dataclasses.dataclass(frozen=True)
class Result:
    """One line: a cell, who answered, how well and how fast; or why there is no answer."""

    cell: Cell
    who: str
    auroc: metrics.Interval | None = None
    seconds: float | None = None
    failure: str = ""


def timed(answer: Callable[[jax.Array, jax.Array], jax.Array], batch: Batch) -> Answer:
    """All data sets one by one; the first also once before, to compile."""
    arrays = [
        (jnp.asarray(x), jnp.asarray(m))
        for x, m in zip(batch.values, batch.intervened, strict=True)
    ]
    jax.block_until_ready(answer(*arrays[0]))
    edges, seconds = [], []
    for x, mask in arrays:
        start = time.perf_counter()
        edges.append(np.asarray(jax.block_until_ready(answer(x, mask))))
        seconds.append(time.perf_counter() - start)
    return Answer(np.stack(edges), seconds)


def exact_posterior(cell: Cell, batch: Batch) -> Answer:
    """The posterior with the prior that the graphs were drawn from."""
    chance = 2 / (cell.d - 1)

    def answer(values: jax.Array, intervened: jax.Array) -> jax.Array:
        if cell.d <= LARGEST_EXACT:
            found = exact.marginals(values, intervened, prior="orders", edge_probability=chance)
        else:
            found = exact.order_mcmc(
                values, intervened, key=jax.random.key(0), edge_probability=chance
            )
        return found.edge_probabilities

    return timed(answer, batch)


def discovered(cell: Cell, batch: Batch) -> Answer:
    """The network in the package, by its public door: checks and padding are included."""

    def answer(values: jax.Array, intervened: jax.Array) -> jax.Array:
        found = acbo.discover(np.asarray(values), np.asarray(intervened))
        return jnp.asarray(found.edge_probabilities)

    return timed(answer, batch)


OWN: dict[str, Callable[[Cell, Batch], Answer]] = {EXACT: exact_posterior, OURS: discovered}
"""What answers in this process, by name."""


def rival(name: str, batch: Batch, folder: Path) -> Answer:
    """What a rival answers, in a process of its own."""
    script, requirements, options = RIVALS[name]
    data, output = folder / "data.npz", folder / "answer.npz"
    np.savez(data, values=batch.values, intervened=batch.intervened)
    output.unlink(missing_ok=True)
    options = {**options, "data": str(data), "output": str(output)}
    if name == "DiBS":
        options["steps"] = DIBS_STEPS
    subject = bench.Rival(
        HERE / script,
        requirements=requirements,
        options=options,
        environ={"JAX_PLATFORMS": "cpu", "TQDM_DISABLE": "1"},
        timeout=3600,
    ).subject()
    try:
        subject.first()
    finally:
        subject.close()
    loaded = np.load(output)
    return Answer(loaded["edges"], loaded["seconds"].tolist())


def judged(cell: Cell, who: str, answer: Answer, batch: Batch) -> Result:
    """How well the edges are ranked, over graphs."""
    edges = jnp.asarray(answer.edges, jnp.float32)
    scores = jax.vmap(metrics.edge_auroc)(edges, jnp.asarray(batch.graphs))
    interval = metrics.bootstrap(scores, key=jax.random.key(0))
    return Result(cell, who, interval, statistics.median(answer.seconds))


def applies(name: str, cell: Cell) -> bool:
    """GIES is for interventions; DiBS takes too long for more than a few variables."""
    if name == "GIES":
        return cell.interventional
    return name != "DiBS" or cell.d <= LARGEST_DIBS


def measure(cell: Cell, options: argparse.Namespace, folder: Path) -> list[Result]:
    """All lines of a cell."""
    batch = draw(cell, options.graphs)
    results = [judged(cell, who, own(cell, batch), batch) for who, own in OWN.items()]
    for name in options.rivals:
        if not applies(name, cell):
            continue
        few = Batch(*(part[: options.dibs_graphs] for part in dataclasses.astuple(batch)))
        given = few if name == "DiBS" else batch
        try:
            results.append(judged(cell, name, rival(name, given, folder), given))
        except bench.RivalError as error:
            results.append(Result(cell, name, failure=str(error).strip().splitlines()[0]))
    return results


def table(results: list[Result]) -> Table:
    """One line for each who answered in each cell."""
    shown = Table(box=box.SIMPLE_HEAD, title="Edges found", title_justify="left")
    for heading in ("cell", "who", "edge AUROC (95 %)", "ms a data set", "promised of acbo"):
        shown.add_column(heading, justify="left" if heading in ("cell", "who") else "right")
    for result in results:
        if result.auroc is None or result.seconds is None:
            shown.add_row(result.cell.title, result.who, f"failed: {result.failure}", "", "")
            continue
        promised = ""
        if result.who == OURS:
            met = "met" if float(result.auroc.estimate) >= result.cell.target else "MISSED"
            promised = f"{result.cell.target} {met}"
        shown.add_row(
            result.cell.title,
            result.who,
            str(result.auroc),
            f"{1000 * result.seconds:,.1f}",
            promised,
        )
    return shown


def growth(script: bench.Script, options: argparse.Namespace) -> None:
    """The exact posterior of one data set over the number of variables, all in turn."""
    sizes = {f"{d} variables": d for d in ((4, 6, 8) if options.quick else (4, 6, 8, 10, 12))}
    variants = {}
    for name, d in sizes.items():
        batch = draw(Cell(d, 100, True, 0.0), 1)
        data = jnp.asarray(batch.values[0]), jnp.asarray(batch.intervened[0])
        variants[name] = lambda data=data: exact.marginals(*data, prior="orders")
    found = bench.compare(
        variants,
        rounds=options.rounds,
        items=1,
        unit="posteriors",
        title="the exact posterior over variables, 100 samples",
    )
    script.growth(found, axis="variables", sizes=sizes)


def main() -> None:
    script, options = _options()
    console = Console(width=max(Console().width, 120))
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        for cell in CELLS[: options.cells]:
            results += measure(cell, options, Path(folder))
    console.print(table(results))
    for result in results:
        if result.auroc is None or result.seconds is None:
            print(f"{result.cell.title}, {result.who} failed: {result.failure}")
            continue
        title = f"{result.cell.title}: {result.who}"
        script.figure(f"{title}, edge AUROC", float(result.auroc.estimate))
        script.figure(f"{title}, a data set in", 1000 * result.seconds, "ms")
    growth(script, options)
    script.finish()


def _options() -> tuple[bench.Script, argparse.Namespace]:
    script = bench.Script(__doc__, group=GROUP, rounds=(9, 3))
    add = script.parser.add_argument
    add("--graphs", type=int, help="data sets of a cell; 20, quick 5")
    add("--dibs-graphs", type=int, default=5, help="DiBS takes half a minute each")
    add("--cells", type=int, help="only the first so many; quick 2")
    add("--rivals", nargs="*", choices=list(RIVALS), help="all, quick PC and GIES")
    options = script.start()
    if options.rivals is None:
        options.rivals = [] if options.alone else ["PC", "GIES"] if options.quick else list(RIVALS)
    options.cells = options.cells or (2 if options.quick else len(CELLS))
    options.graphs = options.graphs or (5 if options.quick else 20)
    return script, options


if __name__ == "__main__":
    main()
