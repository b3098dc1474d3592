"""What discovery is measured on."""

from __future__ import annotations

import dataclasses

from acbo._errors import OptionError
from acbo.scm import Family


@dataclasses.dataclass(frozen=True)
class DiscoveryCell:
    """A family of models, a number of variables, of samples, and of interventions.

    **Arguments:**

    - `family`: what models are drawn.
    - `d`, `n`: variables, and samples of them.
    - `interventional`: the share of samples in which one variable is set.
    - `goal`: the edge AUROC that is to be reached, if there is such a goal.
    """

    family: Family
    d: int
    n: int
    interventional: float = 0.0
    goal: float | None = None

    def __post_init__(self) -> None:
        if self.d < 2:
            raise OptionError(f"d is {self.d}; a graph to discover has 2 variables or more")
        if self.n < 2:
            raise OptionError(f"n is {self.n}; give 2 samples or more")
        if not 0 <= self.interventional <= 1:
            raise OptionError(
                f"interventional is {self.interventional}; give a share from 0 to 1 of the samples"
            )

    def __str__(self) -> str:
        share = {0.0: "observational", 0.5: "half interventional"}.get(
            self.interventional, f"{self.interventional:.0%} interventional"
        )
        parts = [self.family.mechanism, f"d={self.d}", f"n={self.n}", share]
        if self.family.graph != "erdos_renyi":
            parts.insert(1, self.family.graph.replace("_", "-"))
        if self.family.noise != "gaussian":
            parts.insert(1, f"{self.family.noise} noise")
        return ", ".join(parts)


# Erdos-Renyi graphs with as many expected edges as variables, standardised data.
CELLS = (
    DiscoveryCell(Family(), 5, 100, 0.5, goal=0.97),
    DiscoveryCell(Family(), 5, 100, 0.0, goal=0.86),
    DiscoveryCell(Family(), 10, 100, 0.5, goal=0.95),
    DiscoveryCell(Family(), 10, 1000, 0.5, goal=0.97),
    DiscoveryCell(Family(), 20, 1000, 0.5, goal=0.94),
    DiscoveryCell(Family(mechanism="fourier"), 5, 100, 0.5, goal=0.97),
    DiscoveryCell(Family(mechanism="fourier"), 5, 100, 0.0, goal=0.93),
)
