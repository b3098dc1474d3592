"""GIES, in an environment of its own: greedy equivalence search with known interventions.

Samples are grouped by what was set in them. An edge without a direction counts one half each way.
"""

# pyright: reportMissingImports=none
# because gies is installed in the environment of this script alone.
from __future__ import annotations

import time
from typing import Any

import numpy as np


def setup(*, data: str, output: str) -> Any:
    """One call answers all data sets, and writes edges and seconds."""
    import gies

    loaded = np.load(data)
    values, intervened = loaded["values"].astype(np.float64), loaded["intervened"]

    def answer(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
        groups = np.unique(mask, axis=0)
        samples = [x[(mask == group).all(1)] for group in groups]
        targets = [np.flatnonzero(group).tolist() for group in groups]
        return np.asarray(gies.fit_bic(samples, targets)[0])

    def run():
        edges, seconds = [], []
        for x, mask in zip(values, intervened, strict=True):
            start = time.perf_counter()
            found = answer(x, mask) != 0
            seconds.append(time.perf_counter() - start)
            edges.append(np.where(found & found.T, 0.5, found))
        np.savez(output, edges=np.stack(edges), seconds=seconds)

    return run
