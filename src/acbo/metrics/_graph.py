"""How well the edges of a graph are found."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from acbo.metrics._calibration import expected_calibration_error
from acbo.metrics._ranking import auroc, average_precision, f1


def edge_mask(d: int, variables: Bool[Array, " d"] | None = None) -> Bool[Array, "d d"]:
    """Where an edge could be: off the diagonal, between variables that are there."""
    mask = ~jnp.eye(d, dtype=bool)
    return mask if variables is None else mask & variables[:, None] & variables[None, :]


def edge_auroc(
    probabilities: Float[Array, "d d"],
    graph: Bool[Array, "d d"],
    *,
    variables: Bool[Array, " d"] | None = None,
) -> Float[Array, ""]:
    """`auroc` over all pairs of two variables, `[i, j]` for `i -> j`.

    NaN for a graph without edges.
    """
    return auroc(probabilities, graph, where=edge_mask(graph.shape[0], variables))


def shd(
    one: Bool[Array, "d d"],
    other: Bool[Array, "d d"],
    *,
    variables: Bool[Array, " d"] | None = None,
) -> Int[Array, ""]:
    """Structural Hamming distance: pairs of variables that are not connected in the same way.

    An edge too many, one too few and one turned around count one each.

    ```python
    import jax.numpy as jnp
    from acbo import metrics

    chain = jnp.eye(3, k=1, dtype=bool)
    assert metrics.shd(chain, chain.T) == 2
    ```
    """
    different = (one != other) & edge_mask(one.shape[0], variables)
    return jnp.triu(different | different.T).sum()


class EdgeMetrics(eqx.Module):
    """All measures of one graph, or of a batch of them."""

    auroc: Float[Array, "*batch"]
    average_precision: Float[Array, "*batch"]
    f1: Float[Array, "*batch"]
    shd: Int[Array, "*batch"]
    calibration_error: Float[Array, "*batch"]


def edge_metrics(
    probabilities: Float[Array, "d d"],
    graph: Bool[Array, "d d"],
    *,
    threshold: float | Float[Array, ""] = 0.5,
    variables: Bool[Array, " d"] | None = None,
) -> EdgeMetrics:
    """Every measure at once; the graph of F1 and SHD has the edges above `threshold`.

    `jax.vmap` runs over graphs. The calibration error of a single small graph says little: pool
    the edges of many for that, with `expected_calibration_error`.

    ```python
    import jax.numpy as jnp
    from acbo import metrics

    graph = jnp.array([[False, True], [False, False]])
    found = metrics.edge_metrics(jnp.array([[0.0, 0.8], [0.1, 0.0]]), graph)
    assert found.auroc == 1
    assert found.shd == 0
    ```
    """
    where = edge_mask(graph.shape[0], variables)
    return EdgeMetrics(
        auroc=auroc(probabilities, graph, where=where),
        average_precision=average_precision(probabilities, graph, where=where),
        f1=f1(probabilities, graph, threshold=threshold, where=where),
        shd=shd(probabilities > threshold, graph, variables=variables),
        calibration_error=expected_calibration_error(probabilities, graph, where=where),
    )
