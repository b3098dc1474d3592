"""What `worldloom demo` shows of causal discovery: a graph found, and a target made large."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

import acbo
from acbo.metrics import edge_auroc
from acbo.optimise import ProblemPrior
from acbo.report import add_graph, add_optimisation, record_optimisation
from acbo.scm import Family, Study
from worldloom import bench, report
from worldloom.demo import Line

SEED = 7
NAMES = tuple("ABCDEFGH")
FAMILY = Family(mechanism="fourier")
MANY = 256  # systems drawn at a time, for the measurement


def add_to(page: report.Report, *, rounds: int = 3) -> Line:
    """Find a graph, choose interventions, add a chapter about it, and say how it went.

    The system is made up, so that the truth is known: eight variables, mechanisms that are smooth
    and not linear, 120 samples, half of them under an intervention.
    """
    study = jax.jit(_eight)(jax.random.key(SEED))
    samples = study.samples
    truth = np.asarray(study.scm.graph.edges)
    found = acbo.discover(
        np.asarray(samples.values), np.asarray(samples.intervened), names=list(NAMES)
    )
    score = float(edge_auroc(jnp.asarray(found.edge_probabilities), study.scm.graph.edges))

    compared = _measure(rounds)
    ratio, rate = compared.ratio("ACBO").value, compared["ACBO"].rate or 0.0
    add_graph(
        page,
        found.edge_probabilities,
        NAMES,
        heading="Causes found, and used",
        text="Eight variables that cause each other by smooth functions nobody told us, 120 "
        "samples. A network that learned from made-up systems reads the table once and says which "
        f"variable causes which (area under the curve here: **{score:.2f}**; 0.5 is "
        "guessing, 1 is perfect). Systems to learn from are drawn on the device, "
        f"**{rate:,.0f} a second** with their tables: **{ratio:,.0f} times** a loop in plain "
        "Python that does the same, measured in this run.",
        truth=truth,
    )
    problem = jax.jit(lambda key: ProblemPrior().problem(key, 5))(jax.random.key(SEED))
    played = record_optimisation(problem, "learned", key=jax.random.key(SEED))
    add_optimisation(page, played)
    return Line(
        "acbo",
        f"{MANY:,} systems of 5 variables, 100 samples each",
        compared,
        "ACBO",
        f"graph of {len(NAMES)} found (AUROC {score:.2f}); {len(played.worth)} interventions reach "
        f"{played.best[-1]:.2f} of the best",
    )


def _eight(key: PRNGKeyArray) -> Study:
    return FAMILY.study(key, len(NAMES), 120, interventional=0.5)


def _measure(rounds: int) -> bench.Comparison:
    """Systems of five variables with tables of 100 samples: on the device, and one by one."""
    keys = jax.random.split(jax.random.key(0), MANY)
    draw = jax.jit(jax.vmap(lambda key: FAMILY.study(key, 5, 100, interventional=0.5).samples))
    return bench.compare(
        {"a Python loop": python_study(5, 100), "ACBO": lambda: draw(keys)},
        items={"a Python loop": 1, "ACBO": MANY},
        rounds=rounds,
        seconds=0.05,
        unit="systems",
        title="Drawing systems",
    )


def python_study(d: int, n: int, *, waves: int = 32) -> Callable[[], list[list[float]]]:
    """A function that draws one system with smooth mechanisms and a table of it, in plain Python.

    It draws what `FAMILY` draws, number by number.
    """
    rng = random.Random(0)

    def run() -> list[list[float]]:
        order = rng.sample(range(d), d)
        causes: dict[int, list[int]] = {
            j: [i for i in order[:place] if rng.random() < 2 / (d - 1)]
            for place, j in enumerate(order)
        }
        functions = {}
        for j in range(d):
            scale, size = rng.uniform(0.4, 1.0), rng.uniform(1.0, 3.0) * (2 / waves) ** 0.5
            functions[j] = [
                (
                    [scale * rng.gauss(0, 1) for _ in causes[j]],
                    rng.uniform(0, 2 * math.pi),
                    size * rng.gauss(0, 1),
                )
                for _ in range(waves)
            ]
        noise = [rng.uniform(0.5, 1.5) for _ in range(d)]
        table = []
        for _ in range(n):
            target = rng.randrange(d) if rng.random() < 0.5 else None
            row = [0.0] * d
            for j in order:
                if j == target:
                    row[j] = rng.choice((-1, 1)) * rng.uniform(1, 3)
                    continue
                row[j] = rng.gauss(0, noise[j])
                if causes[j]:
                    for frequency, phase, amplitude in functions[j]:
                        angle = sum(f * row[i] for f, i in zip(frequency, causes[j], strict=True))
                        row[j] += amplitude * math.cos(angle + phase)
            table.append(row)
        for j in range(d):
            column = [row[j] for row in table]
            mean = sum(column) / n
            spread = (sum((x - mean) ** 2 for x in column) / n) ** 0.5
            for row in table:
                row[j] = (row[j] - mean) / spread
        return table

    return run
