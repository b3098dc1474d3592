"""Random causal graphs of a fixed padded size, drawn on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.scm._random import uniforms


class Graph(NamedTuple):
    """A directed acyclic graph over the first `size` of `d` variables.

    **Attributes:**

    - `edges`: `edges[i, j]` is true where i causes j.
    - `order`: the variables, causes before effects; padding comes last.
    - `variables`: true for variables that exist, false for padding.
    """

    edges: Bool[Array, "d d"]
    order: Int[Array, " d"]
    variables: Bool[Array, " d"]


def sample_graph(
    key: PRNGKeyArray,
    d: int,
    *,
    kind: str = "erdos_renyi",
    size: int | Int[Array, ""] | None = None,
    edges_per_variable: float | Float[Array, ""] = 1.0,
) -> Graph:
    """Draw a graph; which variable stands where in it is random too.

    **Arguments:**

    - `d`: the padded number of variables. It is a shape, so it must be a Python integer.
    - `kind`: the prior. `"erdos_renyi"` and `"scale_free"` follow `edges_per_variable`; a chain, a
      fork (one cause), a collider (one effect) and a tree have their own number of edges.
    - `size`: how many variables exist, at most `d`; all of them by default.
    - `edges_per_variable`: the expected number of edges, divided by `size`.

    ```python
    import jax
    from acbo.scm import sample_graph

    graph = sample_graph(jax.random.key(0), 8, size=5)
    assert graph.edges[:, 5:].sum() == 0
    ```
    """
    check_graph(kind)
    if d < 1:
        raise ValueError(f"d={d}; a graph has at least one variable")
    (u,) = uniforms(key, numbers_of_graph(d))
    size = jnp.asarray(d if size is None else size, jnp.int32)
    return graph_from(u, kind, size, jnp.asarray(edges_per_variable, jnp.float32))


def check_graph(kind: str) -> None:
    """Refuse what is not a graph prior."""
    if kind not in _KINDS:
        raise ValueError(f"graph={kind!r} is not a graph prior; one of {', '.join(_KINDS)}")


def numbers_of_graph(d: int) -> tuple[int, ...]:
    """How many random numbers a graph of `d` variables takes."""
    return (d, d + 2)


def graph_from(
    u: Float[Array, "d d+2"], kind: str, size: Int[Array, ""], density: Float[Array, ""]
) -> Graph:
    """The graph that the uniform numbers `u` stand for."""
    d = u.shape[0]
    ranked = _KINDS[kind](u[:, :d], u[:, d], size, density)
    exists = jnp.arange(d) < size
    ranked = ranked & exists[:, None] & exists[None, :] & jnp.triu(jnp.ones((d, d), bool), 1)

    # Existing variables keep the first labels, in an order of their own.
    scores = jnp.where(exists, u[:, d + 1], 2.0 + jnp.arange(d, dtype=jnp.float32))
    order = jnp.argsort(scores).astype(jnp.int32)
    rank = jnp.argsort(order)
    return Graph(ranked[rank][:, rank], order, exists)


def is_acyclic(edges: Bool[Array, "d d"]) -> Bool[Array, ""]:
    """Whether no path of `edges` returns to where it began."""
    return ~jnp.diagonal(ancestors(edges)).any()


def ancestors(edges: Bool[Array, "d d"]) -> Bool[Array, "d d"]:
    """`[i, j]` is true where a path leads from i to j."""
    d = edges.shape[0]
    reach = edges
    for _ in range(max(1, (d - 1).bit_length())):
        step = reach.astype(jnp.float32)
        reach = reach | (step @ step > 0)
    return reach


def _erdos_renyi(u: Array, v: Array, size: Array, density: Array) -> Array:
    pairs = jnp.maximum(size - 1, 1).astype(jnp.float32) / 2
    return u < density / pairs


def _scale_free(u: Array, v: Array, size: Array, density: Array) -> Array:
    """Each variable chooses causes among the earlier ones, the well connected sooner."""
    d = u.shape[0]

    def attach(carry, step):
        edges, degree = carry
        rank, u, v = step
        earlier = jnp.arange(d) < rank
        # `density` may be a fraction: its floor, and one more with the rest as probability.
        count = jnp.floor(density + v)
        gumbel = -jnp.log(-jnp.log(u))
        score = jnp.where(earlier, jnp.log(degree + 1.0) + gumbel, -jnp.inf)
        place = jnp.argsort(jnp.argsort(-score))
        causes = earlier & (place < count.astype(jnp.int32))
        edges = edges | (causes[:, None] & (jnp.arange(d) == rank)[None, :])
        return (edges, degree + causes.astype(jnp.float32)), None

    start = (jnp.zeros((d, d), bool), jnp.zeros(d))
    (edges, _), _ = lax.scan(attach, start, (jnp.arange(d), u, v))
    return edges


def _chain(u: Array, v: Array, size: Array, density: Array) -> Array:
    return jnp.eye(len(u), k=1, dtype=bool)


def _fork(u: Array, v: Array, size: Array, density: Array) -> Array:
    return jnp.zeros(u.shape, bool).at[0].set(True)


def _collider(u: Array, v: Array, size: Array, density: Array) -> Array:
    return jnp.broadcast_to(jnp.arange(len(u)) == size - 1, u.shape)


def _tree(u: Array, v: Array, size: Array, density: Array) -> Array:
    ranks = jnp.arange(len(u))
    cause = jnp.floor(v * ranks.astype(jnp.float32)).astype(jnp.int32)
    return cause[None, :] == ranks[:, None]


_KINDS: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "erdos_renyi": _erdos_renyi,
    "scale_free": _scale_free,
    "chain": _chain,
    "fork": _fork,
    "collider": _collider,
    "tree": _tree,
}
GRAPHS = tuple(_KINDS)
