"""The BGe score of every parent set of every variable.

The marginal likelihood of a variable given its parents, under a linear-Gaussian model with a
normal-Wishart prior (Geiger and Heckerman 2002, with the constants of Kuipers, Moffa and Heckerman
2014). The scatter matrix of prior and data is scaled to a unit diagonal, and eliminated with the
scored variable last: its last pivot is then the part of its variance which its parents do not
explain, exact to a few units in the last place. Everything is kept relative to the empty parent
set, because that is what graphs differ by; float32 would lose it in the sum of all terms.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float

from acbo._errors import DataError, OptionError, SizeError

MAX_VARIABLES = 12
IMPOSSIBLE = -1e30
"""The logarithm of no probability at all. Finite: differences and gradients stay numbers."""


@dataclasses.dataclass(frozen=True)
class BGe:
    """The normal-Wishart prior of the BGe score.

    Precision matrices are Wishart with `alpha_w = d + degrees` degrees of freedom and the diagonal
    matrix `t`, `t = mean_strength (degrees - 1) / (mean_strength + 1)`; means are zero, with the
    weight of `mean_strength` samples (`alpha_mu`). The prior has a scale: standardise the data.
    """

    mean_strength: float = 1.0
    degrees: float = 2.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean_strength) and self.mean_strength > 0):
            raise OptionError(f"mean_strength is {self.mean_strength}; give a number above 0")
        if not (math.isfinite(self.degrees) and self.degrees > 1):
            raise OptionError(f"degrees is {self.degrees}; give a number above 1")

    @property
    def scale(self) -> float:
        """The diagonal of the Wishart's matrix."""
        return self.mean_strength * (self.degrees - 1) / (self.mean_strength + 1)


STANDARD = BGe()


@functools.cache
def parent_set_table(d: int) -> Bool[np.ndarray, "sets {d}"]:
    """Which variables are in which set: row `s` has variable `i` if bit `i` of `s` is set.

    Tables of scores and probabilities, `[d, 2 ** d]`, have their columns in this order.
    """
    table = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    table.flags.writeable = False
    return table


def as_data(
    values: Float[Array | np.ndarray, "n d"],
    intervened: Bool[Array | np.ndarray, "n d"] | None,
    limit: int,
) -> tuple[Float[Array, "n d"], Bool[Array, "n d"]]:
    """Both as arrays of the device, of one shape, with no more than `limit` variables."""
    n, d = values.shape
    if not 1 <= d <= limit:
        raise SizeError(f"values has {d} variables; this method takes 1 to {limit}")
    if n == 0:
        raise DataError("values has no rows")
    if intervened is None:
        intervened = np.zeros((n, d), bool)
    if intervened.shape != (n, d):
        raise DataError(f"intervened has the shape {intervened.shape}, values has {(n, d)}")
    return jnp.asarray(values, jnp.float32), jnp.asarray(intervened)


def scatter(
    values: Float[Array, "n d"], intervened: Bool[Array, "n d"], bge: BGe
) -> tuple[Float[Array, "d d d"], Float[Array, " d"]]:
    """For each variable, prior and data scatter, and the count, of the rows that tell of it.

    Those are the rows in which it was not set from outside.
    """
    kept = (~intervened).astype(values.dtype)
    counts = kept.sum(0)
    # Around the mean of all rows first: the scatter of far-away data would round away.
    centre = values.mean(0)
    centred = values - centre[None]
    sums = jnp.matmul(kept.T, centred, precision="highest")
    means = sums / jnp.maximum(counts, 1.0)[:, None]

    def of(weights: Float[Array, " n"], mean: Float[Array, " d"]) -> Float[Array, "d d"]:
        rest = (centred - mean[None]) * weights[:, None]
        return jnp.matmul(rest.T, rest, precision="highest")

    spread = jax.vmap(of, in_axes=(1, 0))(kept, means)
    offset = means + centre[None]
    pull = counts * bge.mean_strength / (counts + bge.mean_strength)
    outer = offset[:, :, None] * offset[:, None, :]
    prior = bge.scale * jnp.eye(values.shape[1])
    return prior[None] + spread + pull[:, None, None] * outer, counts


def log_gamma_half_step(x: Float[Array, " m"]) -> Float[Array, " m"]:
    """`log Γ(x + 1/2) - log Γ(x)`, without the difference of two large numbers.

    An asymptotic series at `x + 8`, and the recurrence of the gamma function down to `x`.
    """
    far = x + 8
    series = -1 / (8 * far) + 1 / (128 * far**2) + 5 / (1024 * far**3)
    steps = jnp.log1p(0.5 / (x[:, None] + jnp.arange(8.0)[None, :])).sum(1)
    return 0.5 * jnp.log(far) + jnp.log1p(series) - steps


def relative_score(
    pivot: Float[Array, "*sets"],
    log_determinant: Float[Array, "*sets"],
    sizes: Float[Array, "*sets"],
    *,
    own: Float[Array, ""],
    count: Float[Array, ""],
    largest: int,
    bge: BGe,
) -> Float[Array, "*sets"]:
    """Log marginal likelihood of a variable given parents, less that given none.

    `pivot` is the unexplained part of its variance, `log_determinant` that of the parents' scatter,
    `own` its own diagonal element, `count` the number of rows.
    """
    halves = np.arange(largest) / 2
    after = log_gamma_half_step((count + bge.degrees + 1) / 2 + jnp.asarray(halves, jnp.float32))
    start = (bge.degrees + 1) / 2 + halves
    before = [math.lgamma(x + 0.5) - math.lgamma(x) for x in start]
    steps = after - jnp.asarray(before, jnp.float32)
    gained = jnp.concatenate([jnp.zeros(1), jnp.cumsum(steps)])
    return (
        gained[sizes.astype(int)]
        + sizes * math.log(bge.scale)
        - 0.5 * (count + bge.degrees + 1 + sizes) * jnp.log(pivot)
        - 0.5 * sizes * jnp.log(own)
        - 0.5 * log_determinant
    )


def empty_score(own: Float[Array, " d"], count: Float[Array, " d"], bge: BGe) -> Float[Array, " d"]:
    """Log marginal likelihood of each variable without parents."""
    return (
        0.5 * (jnp.log(bge.mean_strength) - jnp.log(count + bge.mean_strength))
        + gammaln((count + bge.degrees + 1) / 2)
        - math.lgamma((bge.degrees + 1) / 2)
        - 0.5 * count * math.log(math.pi)
        + 0.5 * (bge.degrees + 1) * math.log(bge.scale)
        - 0.5 * (count + bge.degrees + 1) * jnp.log(own)
    )


def _all_subsets(
    matrix: Float[Array, "d d"],
) -> tuple[Float[Array, " sets"], Float[Array, " sets"]]:
    """For every subset of all but the last: its log determinant, and the last pivot given it.

    One variable a round: each matrix is followed by what is left when the variable is passed over,
    and by what is left when it is eliminated.
    """
    stack = matrix[None]
    log_determinant = jnp.zeros(1)
    for _ in range(matrix.shape[0] - 1):
        first, column, rest = stack[:, 0, 0], stack[:, 1:, 0], stack[:, 1:, 1:]
        reduced = rest - column[:, :, None] * (column / first[:, None])[:, None, :]
        stack = jnp.concatenate([rest, reduced])
        log_determinant = jnp.concatenate([log_determinant, log_determinant + jnp.log(first)])
    return log_determinant, stack[:, 0, 0]


@functools.cache
def _others(d: int) -> tuple[np.ndarray, np.ndarray]:
    """For each variable: all with it last, and each set's place among subsets of the others."""
    order = np.array([[*(i for i in range(d) if i != j), j] for j in range(d)])
    bits = parent_set_table(d)
    place = np.stack([bits[:, order[j, :-1]] @ (1 << np.arange(d - 1)) for j in range(d)])
    return order, place


def relative_scores(
    values: Float[Array, "n d"],
    intervened: Bool[Array, "n d"],
    *,
    max_parents: int | None,
    bge: BGe,
    variables: Bool[Array, " d"] | None = None,
) -> tuple[Float[Array, "d sets"], Float[Array, " d"]]:
    """Scores less those of no parents, and the scores of no parents.

    Impossible sets (a variable among its own parents, too many, absent ones) have `IMPOSSIBLE`.
    """
    d = values.shape[1]
    order, place = _others(d)
    bits = parent_set_table(d)
    matrices, counts = scatter(values, intervened, bge)
    sizes = jnp.asarray(parent_set_table(d - 1).sum(1), jnp.float32)

    def of(
        matrix: Float[Array, "d d"], count: Float[Array, ""], order: Array
    ) -> tuple[Float[Array, " sets"], Float[Array, ""]]:
        matrix = matrix[order][:, order]
        diagonal = jnp.diagonal(matrix)
        scale = jax.lax.rsqrt(diagonal)
        log_determinant, pivot = _all_subsets(matrix * scale[:, None] * scale[None, :])
        log_scales = jnp.asarray(parent_set_table(d - 1), jnp.float32) @ jnp.log(diagonal[:-1])
        score = relative_score(
            pivot,
            log_determinant + log_scales,
            sizes,
            own=diagonal[-1],
            count=count,
            largest=d - 1,
            bge=bge,
        )
        return score, diagonal[-1]

    compact, own = jax.vmap(of)(matrices, counts, jnp.asarray(order))
    scores = jnp.take_along_axis(compact, jnp.asarray(place), axis=1)
    allowed = ~bits.T
    if max_parents is not None:
        allowed = allowed & (bits.sum(1) <= max_parents)
    allowed = jnp.asarray(allowed)
    empty = empty_score(own, counts, bge)
    if variables is not None:
        present = ~(jnp.asarray(bits) & ~variables[None]).any(1)
        nothing = jnp.asarray(~bits.any(1))
        allowed &= (variables[:, None] & present[None]) | nothing[None]
        empty = jnp.where(variables, empty, 0.0)
    return jnp.where(allowed, scores, IMPOSSIBLE), empty


def check_max_parents(max_parents: int | None) -> None:
    """`None`, or a number of parents."""
    if max_parents is not None and max_parents < 0:
        raise OptionError(f"max_parents is {max_parents}; give 0 or more, or None for no limit")


@functools.partial(jax.jit, static_argnames=("max_parents", "bge"))
def _local_scores(
    values: Array, intervened: Array, *, max_parents: int | None, bge: BGe
) -> Float[Array, "d sets"]:
    scores, empty = relative_scores(values, intervened, max_parents=max_parents, bge=bge)
    return jnp.where(scores > IMPOSSIBLE, scores + empty[:, None], -jnp.inf)


def local_scores(
    values: Float[Array | np.ndarray, "n d"],
    intervened: Bool[Array | np.ndarray, "n d"] | None = None,
    *,
    max_parents: int | None = None,
    bge: BGe = STANDARD,
) -> Float[Array, "d sets"]:
    """The BGe score of every parent set: log marginal likelihoods, `[d, 2 ** d]`.

    Entry `[j, s]` is the log density of the values of variable `j` given its parents, the set `s`
    of `parent_set_table(d)`, over the rows in which `j` was not set from outside. Minus infinity
    where `j` is its own parent, and above `max_parents`. Up to 12 variables. A row in which every
    variable is intervened on counts for nothing, so it can pad data to a shape.

    ```python
    import jax
    from acbo import exact

    x = jax.random.normal(jax.random.key(0), (50, 3))
    scores = exact.local_scores(x)
    assert scores.shape == (3, 8)
    ```
    """
    check_max_parents(max_parents)
    values, intervened = as_data(values, intervened, MAX_VARIABLES)
    return _local_scores(values, intervened, max_parents=max_parents, bge=bge)
