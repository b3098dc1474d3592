"""DiBS (marginal, BGe score, 20 particles), in an environment of its own."""

# pyright: reportMissingImports=none
# because dibs-lib is installed in the environment of this script alone.
from __future__ import annotations

import time
from typing import Any

import numpy as np


def setup(*, data: str, output: str, steps: int) -> Any:
    """One call answers all data sets, and writes edges and seconds."""
    import jax
    from dibs.inference import MarginalDiBS
    from dibs.models import BGe, ErdosReniDAGDistribution

    loaded = np.load(data)

    def answer(x: np.ndarray, mask: np.ndarray, key: Any) -> np.ndarray:
        d = x.shape[1]
        method = MarginalDiBS(
            x=jax.numpy.asarray(x),
            interv_mask=jax.numpy.asarray(mask, jax.numpy.int32),
            graph_model=ErdosReniDAGDistribution(n_vars=d, n_edges_per_node=1),
            likelihood_model=BGe(n_vars=d),
        )
        graphs = method.sample(key=key, n_particles=20, steps=steps)
        mixture = method.get_mixture(graphs)
        weights = np.exp(np.asarray(mixture.logp, np.float64))
        return np.einsum("p,pij->ij", weights / weights.sum(), np.asarray(mixture.g))

    def run():
        edges, seconds = [], []
        for k, (x, mask) in enumerate(zip(loaded["values"], loaded["intervened"], strict=True)):
            start = time.perf_counter()
            edges.append(answer(x, mask, jax.random.PRNGKey(k)))
            seconds.append(time.perf_counter() - start)
        np.savez(output, edges=np.stack(edges), seconds=seconds)

    return run
