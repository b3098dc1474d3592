"""PC and GES of causal-learn, in an environment of their own.

Both take all samples as observations: they have no place for interventions. An edge without a
direction counts one half each way.
"""

# pyright: reportMissingImports=none
# because causal-learn is installed in the environment of this script alone.
from __future__ import annotations

import time
from typing import Any

import numpy as np


def setup(*, method: str, data: str, output: str) -> Any:
    """One call answers all data sets, and writes edges and seconds."""
    from causallearn.search.ConstraintBased.PC import pc
    from causallearn.search.ScoreBased.GES import ges

    values = np.load(data)["values"].astype(np.float64)

    def answer(x: np.ndarray) -> np.ndarray:
        if method == "PC":
            return pc(x, alpha=0.05, indep_test="fisherz", show_progress=False).G.graph
        return ges(x, score_func="local_score_BIC")["G"].graph

    def run():
        edges, seconds = [], []
        for x in values:
            start = time.perf_counter()
            ends = np.asarray(answer(x))
            seconds.append(time.perf_counter() - start)
            # ends[i, j] is -1 for a tail at i, 1 for an arrow head, of the edge between i and j.
            directed = (ends == -1) & (ends.T == 1)
            open_ended = (ends != 0) & (ends == ends.T)
            edges.append(directed + 0.5 * open_ended)
        np.savez(output, edges=np.stack(edges), seconds=seconds)

    return run
