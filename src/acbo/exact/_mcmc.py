"""Order MCMC: edge probabilities where there are too many variables for an exact sum.

A chain walks over orders of the variables. The weight of an order is the sum over all graphs that
fit it, which is a product over variables; the edge probabilities given an order are exact too
(Friedman and Koller 2003). What is drawn is only the order.
"""

from __future__ import annotations

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from acbo._errors import OptionError, SizeError
from acbo.exact._prior import check_prior
from acbo.exact._score import (
    IMPOSSIBLE,
    STANDARD,
    BGe,
    as_data,
    relative_score,
    scatter,
)

MAX_ORDERED = 31


@functools.cache
def _small_sets(d: int, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """All sets of up to `largest` of `d` variables: members, filled up from `d` on, and a table."""
    sets = [s for size in range(largest + 1) for s in itertools.combinations(range(d), size)]
    members = np.tile(np.arange(d, d + largest), (len(sets), 1))
    table = np.zeros((len(sets), d), bool)
    for row, one in enumerate(sets):
        members[row, : len(one)] = one
        table[row, list(one)] = True
    return members, table


def small_set_scores(
    values: Float[Array, "n d"],
    intervened: Bool[Array, "n d"],
    *,
    max_parents: int,
    bge: BGe,
) -> Float[Array, "d sets"]:
    """Relative scores of the sets of `_small_sets`."""
    d = values.shape[1]
    members, table = _small_sets(d, max_parents)
    sizes = jnp.asarray(table.sum(1), jnp.float32)
    matrices, counts = scatter(values, intervened, bge)

    def of(
        matrix: Float[Array, "d d"], count: Float[Array, ""], j: Int[Array, ""]
    ) -> Float[Array, " sets"]:
        diagonal = jnp.diagonal(matrix)
        scale = jax.lax.rsqrt(diagonal)
        # Variables that nothing depends on stand for the places that a set leaves free.
        padded = jnp.eye(d + max_parents).at[:d, :d].set(matrix * scale[:, None] * scale[None, :])
        last = jnp.broadcast_to(j, (len(members), 1))
        chosen = jnp.concatenate([jnp.asarray(members), last], axis=1)
        stack = padded[chosen[:, :, None], chosen[:, None, :]]
        log_determinant = jnp.zeros(len(members))
        for _ in range(max_parents):
            first, column = stack[:, 0, 0], stack[:, 1:, 0]
            log_determinant += jnp.log(first)
            stack = stack[:, 1:, 1:] - column[:, :, None] * (column / first[:, None])[:, None, :]
        log_scales = jnp.asarray(table, jnp.float32) @ jnp.log(diagonal)
        return relative_score(
            stack[:, 0, 0],
            log_determinant + log_scales,
            sizes,
            own=diagonal[j],
            count=count,
            largest=max_parents,
            bge=bge,
        )

    scores = jax.vmap(of)(matrices, counts, jnp.arange(d))
    return jnp.where(jnp.asarray(table.T), IMPOSSIBLE, scores)


class OrderSample(eqx.Module):
    """What the chains of `order_mcmc` found."""

    chains: Float[Array, "chains d d"]
    """The edge probabilities of each chain."""
    log_weights: Float[Array, "chains kept"]
    """The log weight of each order that was kept, up to a constant. A trend: not there yet."""
    acceptance: Float[Array, " chains"]
    """The fraction of proposals that were taken."""

    @property
    def edge_probabilities(self) -> Float[Array, "d d"]:
        """The probability of each edge, `[i, j]` for `i -> j`: the mean of the chains."""
        return self.chains.mean(0)

    @property
    def disagreement(self) -> Float[Array, ""]:
        """The largest difference of one chain's edge probability from the mean of all."""
        return jnp.abs(self.chains - self.chains.mean(0)[None]).max()


@functools.partial(
    jax.jit, static_argnames=("chains", "kept", "thin", "warm_up", "max_parents", "bge")
)
def _order_mcmc(
    values: Array,
    intervened: Array,
    edge_probability: float | Array,
    key: Array,
    *,
    chains: int,
    kept: int,
    thin: int,
    warm_up: int,
    max_parents: int,
    bge: BGe,
) -> OrderSample:
    d = values.shape[1]
    _, table = _small_sets(d, max_parents)
    bits = jnp.asarray(table @ (1 << np.arange(d)), jnp.uint32)
    odds = jnp.log(edge_probability) - jnp.log1p(-edge_probability)
    weights = small_set_scores(values, intervened, max_parents=max_parents, bge=bge)
    weights += (jnp.asarray(table.sum(1), jnp.float32) * odds)[None]
    weights -= weights.max(1, keepdims=True)
    members = jnp.asarray(table, jnp.float32)

    def allowed(order: Int[Array, " d"]) -> Float[Array, "d sets"]:
        own = jnp.left_shift(jnp.uint32(1), order.astype(jnp.uint32))
        earlier = jnp.zeros(d, jnp.uint32).at[order].set(jnp.cumsum(own, dtype=jnp.uint32) - own)
        return jnp.where((bits[None] & ~earlier[:, None]) == 0, weights, IMPOSSIBLE)

    def log_weight(order: Int[Array, " d"]) -> Float[Array, ""]:
        return jax.nn.logsumexp(allowed(order), axis=1).sum()

    def step(carry: tuple, key: Array) -> tuple[tuple, Bool[Array, ""]]:
        order, current = carry
        pick, move, accept = jax.random.split(key, 3)
        one = jax.random.randint(pick, (), 0, d)
        # Half of the moves exchange neighbours (around the end), half any two.
        far, close = jax.random.randint(move, (2,), 1, jnp.array([d, 3]))
        other = (one + jnp.where(close == 1, 1, far)) % d
        proposal = order.at[one].set(order[other]).at[other].set(order[one])
        weight = log_weight(proposal)
        taken = jnp.log(jax.random.uniform(accept)) < weight - current
        order = jnp.where(taken, proposal, order)
        return (order, jnp.where(taken, weight, current)), taken

    def block(carry: tuple, at: tuple[Array, Array]) -> tuple[tuple, tuple[Array, Array]]:
        (order, current, edges), (key, counts) = carry, at
        (order, current), taken = jax.lax.scan(step, (order, current), jax.random.split(key, thin))
        given = jax.nn.softmax(allowed(order), axis=1)
        edges += counts * jnp.matmul(given, members, precision="highest").T
        return (order, current, edges), (current, taken.mean())

    def chain(key: Array) -> tuple[Array, Array, Array]:
        start, walk = jax.random.split(key)
        order = jax.random.permutation(start, d)
        carry = (order, log_weight(order), jnp.zeros((d, d)))
        skipped = -(-warm_up // thin)
        counts = (jnp.arange(skipped + kept) >= skipped).astype(jnp.float32)
        keys = jax.random.split(walk, skipped + kept)
        (_, _, edges), (trace, taken) = jax.lax.scan(block, carry, (keys, counts))
        return edges / kept, trace[skipped:], taken[skipped:].mean()

    return OrderSample(*jax.vmap(chain)(jax.random.split(key, chains)))


def order_mcmc(
    values: Float[Array | np.ndarray, "n d"],
    intervened: Bool[Array | np.ndarray, "n d"] | None = None,
    *,
    key: Key[Array, ""],
    chains: int = 4,
    kept: int = 500,
    thin: int = 10,
    warm_up: int = 2000,
    max_parents: int = 3,
    edge_probability: float | Float[Array, ""] = 0.5,
    bge: BGe = STANDARD,
) -> OrderSample:
    """Approximate edge probabilities for up to 31 variables, by chains over their orders.

    The prior is that of `marginals(prior="orders")`: a graph counts once for each order that fits
    it. Compared with a uniform prior over graphs that favours sparse ones a little; for up to 12
    variables `marginals` gives either exactly.

    **Arguments:**

    - `chains`: how many walk, each from an order of its own. Look at `disagreement`.
    - `kept`, `thin`, `warm_up`: orders that count, proposals from one to the next, and proposals
      before the first.
    - `max_parents`: no variable has more. Time and memory grow as `d ** (max_parents + 1)`.

    ```python
    import jax
    from acbo import exact

    x = jax.random.normal(jax.random.key(0), (100, 14))
    found = exact.order_mcmc(x, key=jax.random.key(1), kept=50, warm_up=100, max_parents=2)
    assert found.edge_probabilities.shape == (14, 14)
    ```
    """
    check_prior("orders", edge_probability)
    values, intervened = as_data(values, intervened, MAX_ORDERED)
    d = values.shape[1]
    if d < 2:
        raise SizeError("values has 1 variable; there is no order to walk over")
    for name, number, least in (
        ("chains", chains, 1),
        ("kept", kept, 1),
        ("thin", thin, 1),
        ("warm_up", warm_up, 0),
        ("max_parents", max_parents, 0),
    ):
        if number < least:
            raise OptionError(f"{name} is {number}; give {least} or more")
    return _order_mcmc(
        values,
        intervened,
        edge_probability,
        key,
        chains=chains,
        kept=kept,
        thin=thin,
        warm_up=warm_up,
        max_parents=min(max_parents, d - 1),
        bge=bge,
    )
