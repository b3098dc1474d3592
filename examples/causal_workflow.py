"""From a table to a decision: find what causes what, then choose what to set.

    python examples/causal_workflow.py

A greenhouse of six variables is simulated; nobody tells the network how. It leaves `causes/`: the
table as CSV, and a page with the graph that was found and the replay of an optimisation.
"""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pandas as pd

import acbo
from acbo.optimise import ProblemPrior
from acbo.report import add_graph, add_optimisation, record_optimisation
from worldloom import report

OUT = Path("causes")
NAMES = ["light", "heating", "warmth", "moisture", "growth", "yield"]
EDGES = [(0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (4, 5)]


# %% A table, as an experiment leaves it: in every third row one variable was set by hand.
def greenhouse(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Bent mechanisms; the column `set` says which variable a row sets, if any."""
    mechanism = {
        "warmth": lambda v: np.tanh(v["light"]) + 0.8 * v["heating"],
        "moisture": lambda v: -np.sin(1.5 * v["warmth"]),
        "growth": lambda v: v["warmth"] - 0.3 * v["warmth"] ** 2 + v["moisture"],
        "yield": lambda v: np.tanh(2 * v["growth"]),
    }
    choice = np.where(np.arange(rows) % 3 == 0, rng.choice(NAMES, rows), "")
    values: dict[str, np.ndarray] = {}
    for name in NAMES:
        follows = mechanism.get(name, lambda v: np.zeros(rows))(values)
        seen = follows + (0.3 if name in mechanism else 1.0) * rng.normal(size=rows)
        values[name] = np.where(choice == name, rng.uniform(-2, 2, rows), seen)
    return pd.DataFrame(values).assign(set=choice)


def main() -> None:
    """Find, choose, show."""
    OUT.mkdir(exist_ok=True)
    table = OUT / "greenhouse.csv"
    greenhouse(120, np.random.default_rng(0)).to_csv(table, index=False)

    # %% What causes what: worldloom acbo discover causes/greenhouse.csv --interventions set
    found = acbo.discover(table, interventions="set")
    print(found)
    causes = found.parents("growth")
    print("growth follows from", ", ".join(f"{name} ({p:.2f})" for name, p in causes.items()))

    truth = np.zeros((6, 6), bool)
    truth[tuple(np.array(EDGES).T)] = True
    agree = (found.graph() == truth)[~np.eye(6, dtype=bool)].mean()
    print(f"{agree:.0%} of all possible edges are as they were made")

    # %% What to set, in another system that nobody knows: ten interventions, one sample each.
    problem = ProblemPrior().problem(jax.random.key(4), 5)
    played = record_optimisation(problem, "learned", key=jax.random.key(5))
    print("worth of each intervention:", " ".join(f"{worth:.2f}" for worth in played.worth))

    # %% A page to look at.
    page = report.Report("Causes in a greenhouse")
    add_graph(page, found.edge_probabilities, found.names, truth=truth)
    add_optimisation(page, played)
    print("wrote", page.save(OUT / "page.html"))


if __name__ == "__main__":
    main()
