"""What samples say about the effect of each variable on the target."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from acbo._solve import solve_positive
from acbo.optimise._environment import View

# In deviations of the target, when a variable is at its limit.
_LARGEST_EFFECT = 6.0
_LEAST_DOUBT = 0.25


class Effects(NamedTuple):
    """Effects on the target, for each variable, in raw units.

    **Attributes:**

    - `slope`: the target's change per unit of a variable that was set, from the samples in which it
      was set; drawn towards 0 while there are few.
    - `error`: the standard error of `slope`.
    - `times_set`: in how many samples a variable was set.
    - `correlation`: with the target, in samples in which nothing was set.
    - `scale`: standard deviation of each variable in those samples.
    - `centre`: mean of each variable in those samples.
    """

    slope: Float[Array, " d"]
    error: Float[Array, " d"]
    times_set: Float[Array, " d"]
    correlation: Float[Array, " d"]
    scale: Float[Array, " d"]
    centre: Float[Array, " d"]


def effects(view: View) -> Effects:
    """Direct estimates, one variable at a time."""
    x, set_, rows, _ = view.samples
    m = set_.astype(x.dtype)
    calm = rows.astype(x.dtype) * (1 - m.max(axis=1))
    total = jnp.maximum(calm.sum(), 1.0)
    centre = calm @ x / total
    centred = x - centre[None, :]
    scale = jnp.sqrt(calm @ centred**2 / total) + 1e-6
    y = centred[:, view.target]
    correlation = (calm * y) @ centred / total / (scale * scale[view.target])
    energy = (m * x**2).sum(axis=0)
    slope = (m * x * y[:, None]).sum(axis=0) / (energy + 1.0)
    error = scale[view.target] / jnp.sqrt(energy + 1.0)
    return Effects(slope, error, m.sum(axis=0), correlation, scale, centre)


def path_effects(view: View, edges: Float[Array, "d d"]) -> Float[Array, " d"]:
    """Effects on the target along all paths of a believed graph.

    Each variable is regressed on the others over the samples in which it was not set. A cause with
    edge probability `p` has a prior variance in proportion to `p / (1 - p)`, so what is no cause
    cannot explain anything; the effects along paths then multiply.
    """
    x, set_, rows, _ = view.samples
    d = x.shape[1]
    eye = jnp.eye(d)
    found = effects(view)
    z = (x - found.centre[None, :]) / found.scale[None, :]
    free = rows.astype(x.dtype)[:, None] * (1 - set_.astype(x.dtype))
    gram = jnp.einsum("nj,na,nb->jab", free, z, z)
    right = jnp.einsum("nj,na,nj->ja", free, z, z)
    p = jnp.clip(edges * (1 - eye), 1e-4, 1 - 1e-4).T
    # In proportion to the samples: a spike at 0 does not widen when there are many.
    prior = 0.015 * free.sum(axis=0)[:, None] * (1 - p) / p + 0.1
    slopes = jax.vmap(solve_positive)(gram + prior[:, :, None] * eye[None], right[..., None])
    slopes = slopes[..., 0] * edges.T * (1 - eye)
    # Through at most d - 1 edges; a believed graph may have cycles, so no inverse.
    reach, walk = jnp.zeros(d), eye[view.target]
    for _ in range(d - 1):
        walk = slopes.T @ walk * (1 - eye[view.target])
        reach = reach + walk
    return reach * found.scale[view.target] / found.scale


def outcome_edges(view: View, edges: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Edge probabilities, given that the target is an outcome: it has a cause, and causes nothing.

    Where the data cannot tell `i -> target` from `target -> i`, the rules of the game do. Edges
    between different pairs are taken to be independent.

    ```python
    import jax
    import jax.numpy as jnp
    from acbo.optimise import ProblemPrior, begin, look, outcome_edges

    problem = ProblemPrior().problem(jax.random.key(0), 2)
    view = look(begin(jax.random.key(1), problem, observed=5, budget=3), problem, 3)
    believed = jnp.array([[0.0, 0.2], [0.2, 0.0]])
    assert outcome_edges(view, believed)[1 - view.target, view.target] > 0.99
    ```
    """
    here = jnp.arange(edges.shape[0]) == view.target
    cause = edges[:, view.target]
    cause = cause / jnp.maximum(1 - edges[view.target, :], cause + 1e-6)
    cause = jnp.where(view.allowed, cause, 0.0)
    some = 1 - jnp.prod(1 - cause)
    cause = jnp.minimum(cause / jnp.maximum(some, 1e-3), 1.0)
    return jnp.where(here[None, :], cause[:, None], jnp.where(here[:, None], 0.0, edges))


class Belief(NamedTuple):
    """What is believed of the effects on the target, for each variable, in raw units.

    **Attributes:**

    - `mean`: the target's change per unit of a variable that is set.
    - `deviation`: how far that may be off.
    """

    mean: Float[Array, " d"]
    deviation: Float[Array, " d"]


def believed_effects(
    key: PRNGKeyArray, view: View, edges: Float[Array, "d d"], *, graphs: int = 64
) -> Belief:
    """Effects along the paths of graphs drawn from `edges`, joined with what setting has shown.

    Draws that disagree are doubt about the graph. Where a variable was set, what was then seen
    counts by its own error, so that a wrong belief does not outlive its test.
    """
    d = edges.shape[0]
    u, v = jax.random.uniform(key, (2, graphs, d, d))
    drawn = u < edges[None]
    # Of two directions that were both drawn, one stays.
    first = v < (edges / jnp.maximum(edges + edges.T, 1e-9))[None]
    upper = jnp.triu(jnp.ones((d, d), bool), 1)[None]
    first = jnp.where(upper, first, ~jnp.swapaxes(first, 1, 2))
    drawn = drawn & (first | ~jnp.swapaxes(drawn, 1, 2))
    along = jax.vmap(lambda graph: path_effects(view, graph))(drawn.astype(edges.dtype))

    found = effects(view)
    largest = _LARGEST_EFFECT * found.scale[view.target] / view.limit
    along = jnp.clip(along, -largest, largest)
    doubt = along.var(axis=0) + (_LEAST_DOUBT * found.scale[view.target] / view.limit) ** 2
    energy = jnp.where(view.samples.intervened, view.samples.values**2, 0.0).sum(axis=0)
    shown = found.slope * (energy + 1.0)  # energy times the slope without its pull towards 0
    variance = found.scale[view.target] ** 2
    precision = 1 / doubt + energy / variance
    mean = (along.mean(axis=0) / doubt + shown / variance) / precision
    return Belief(mean, jnp.sqrt(1 / precision))
