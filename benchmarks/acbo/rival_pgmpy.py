"""Hill climbing of pgmpy, in an environment of its own.

It takes all samples as observations: it has no place for interventions. An edge without a direction
counts one half each way.
"""

# pyright: reportMissingImports=none
# because this is about pgmpy as it is installed in the environment of this script alone.
from __future__ import annotations

import time
from typing import Any

import numpy as np


def setup(*, data: str, output: str) -> Any:
    """One call answers all data sets, and writes edges and seconds."""
    import pandas as pd
    from pgmpy.causal_discovery import HillClimbSearch

    values = np.load(data)["values"].astype(np.float64)

    def run():
        edges, seconds = [], []
        for x in values:
            names = [f"X{i}" for i in range(x.shape[1])]
            table = pd.DataFrame(x, columns=names)
            start = time.perf_counter()
            search = HillClimbSearch(scoring_method="bic-g", show_progress=False).fit(table)
            seconds.append(time.perf_counter() - start)
            found = search.adjacency_matrix_.loc[names, names].to_numpy() != 0
            edges.append(np.where(found & found.T, 0.5, found))
        np.savez(output, edges=np.stack(edges), seconds=seconds)

    return run
