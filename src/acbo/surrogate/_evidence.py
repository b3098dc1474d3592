"""How well smooth functions of one or two variables explain each variable.

For a target j and a set S of at most two others, x_j is a smooth function of x_S plus Gaussian
noise: Bayesian regression on products of sines and cosines, over the rows in which j is not set.
Its evidence has a closed form. Products of waves are sums of waves, so two moment matrices a target
hold everything that all of its regressions need; none looks at the samples again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from acbo._apart import apart, within
from acbo._solve import determinants_and_forms, in_blocks
from acbo.scm import Samples

COUNT = 5
"""How many numbers `local_evidence` gives for a pair."""

_ORDERS = 2
WAVES = 4 * _ORDERS
"""How many waves of a value, besides the constant, the sums over samples are made of."""

_PITCH = 0.75  # of the waves, in standardised units: half a wave spans more than all data
_CANDIDATES = 6
_WIDTH = 1.2  # of the functions expected, in standard deviations
_GAIN = 8.0  # variance of a function, in units of the noise's
_SHAPE, _RATE = 1.0, 0.15  # of the noise's variance
_SPARSITY = 1.5  # log odds against one more cause


def _waves(x: Float[Array, "i n"], count: Int[Array, ""] | None) -> Float[Array, "i p n"]:
    """`cos x, sin x, cos 2x, sin 2x, ...` of the pitch."""

    def multiples(first: tuple[Array, Array]) -> Float[Array, "i p n"]:
        cos, sin = first
        waves = [cos, sin]
        while len(waves) < WAVES:
            c, s = waves[-2:]
            waves += [c * cos - s * sin, s * cos + c * sin]
        return jnp.stack(waves, axis=1)

    return within(multiples, apart(_cos_sin(_PITCH * x), count), count)


def _cos_sin(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Cosine and sine, both to 1e-6, for arguments of up to about nine thousand turns.

    XLA's own take longer on CPUs.
    """
    turns = jnp.round(x / (2 * np.pi))
    # In two steps, the first of which is exact: 2 pi = 6.28125 + 0.0019353...
    x = (x - 6.28125 * turns) - (2 * np.pi - 6.28125) * turns
    half = x / 2
    z = half**2
    cos = sin = jnp.zeros_like(z)
    for k in range(6, -1, -1):
        cos = cos * z + (-1) ** k / math.factorial(2 * k)
        sin = sin * z + (-1) ** k / math.factorial(2 * k + 1)
    sin = sin * half
    return cos**2 - sin**2, 2 * sin * cos


def _products() -> np.ndarray:
    """`[a, b, p]`: wave a times wave b as a sum of waves p; the first of each is the constant."""
    few = 2 * _ORDERS + 1
    table = np.zeros((few, few, 1 + WAVES))

    def wave(index: int) -> tuple[int, bool]:
        return (index + 1) // 2, index % 2 == 1 or index == 0

    def add(a: int, b: int, order: int, cosine: bool, weight: float) -> None:
        if order < 0 and not cosine:
            weight = -weight
        order = abs(order)
        if order == 0 and not cosine:
            return
        table[a, b, 0 if order == 0 else 2 * order - (1 if cosine else 0)] += weight

    for a, b in itertools.product(range(few), repeat=2):
        (k, cos_a), (m, cos_b) = wave(a), wave(b)
        if cos_a and cos_b:
            add(a, b, k - m, True, 0.5)
            add(a, b, k + m, True, 0.5)
        elif not cos_a and not cos_b:
            add(a, b, k - m, True, 0.5)
            add(a, b, k + m, True, -0.5)
        else:
            s, c = (m, k) if cos_a else (k, m)
            add(a, b, s + c, False, 0.5)
            add(a, b, s - c, False, 0.5)
    return table


_ORDER_OF = (np.arange(2 * _ORDERS + 1) + 1) // 2
_SCALE = np.exp(-0.25 * (_ORDER_OF * _PITCH * _WIDTH) ** 2)  # of waves; squared, their variance
_PRODUCTS = _products() * _SCALE[:, None, None] * _SCALE[None, :, None]


@in_blocks
def _fit_singles(
    sums: Float[Array, "p s"], moments: Float[Array, "a s"]
) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """`_fit` of regressions on the waves of one variable, from sums of waves."""
    products, scale = (jnp.asarray(one, sums.dtype) for one in (_PRODUCTS, _SCALE))
    return _fit(jnp.einsum("abp,ps->abs", products, sums), moments * scale[:, None])


@in_blocks
def _fit_pairs(
    sums: Float[Array, "p q s"], moments: Float[Array, "a c s"]
) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """`_fit` of regressions on the products of waves of two variables."""
    (few, _, s), p = moments.shape, sums.shape[0]
    m = few**2
    products = jnp.asarray(_PRODUCTS, sums.dtype).reshape(m, p)
    scale = jnp.asarray(_SCALE, sums.dtype)
    # For each wave of the second variable: the sums are turned, not the larger half.
    half = jnp.broadcast_to(products, (p, m, p)) @ jnp.swapaxes(sums, 0, 1)
    gram = products @ half.reshape(p, m * s)
    # Features in the order of the second variable's waves, then the first's.
    gram = jnp.moveaxis(gram.reshape(few, few, few, few, s), 2, 1)
    moments = jnp.swapaxes(moments, 0, 1) * (scale[:, None] * scale[None, :])[..., None]
    return _fit(gram.reshape(m, m, s), moments.reshape(m, s))


def _fit(
    gram: Float[Array, "m m s"], moments: Float[Array, "m s"]
) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """The log determinant of regressions' precision, and the energy that they explain."""
    precision = _GAIN * gram + jnp.eye(gram.shape[0])[..., None]
    return determinants_and_forms(precision, _GAIN**0.5 * moments)


def _log_evidence(
    fit: Callable[[Array, Array], tuple[Array, Array]],
    sums: Float[Array, "j s ..."],
    moments: Float[Array, "j s ..."],
    energy: Float[Array, " j"],
    count: Float[Array, " j"],
) -> Float[Array, "j s"]:
    """Log evidence of the regressions of each target, up to a constant of the target."""
    stacks = (one.reshape(-1, *one.shape[2:]) for one in (sums, moments))
    determinant, explained = (one.reshape(moments.shape[:2]) for one in fit(*stacks))
    return _from_parts(determinant, explained, energy[:, None], count[:, None])


def _log_evidence_of_nothing(
    total: Float[Array, " d"], energy: Float[Array, " d"], count: Float[Array, " d"]
) -> Float[Array, " d"]:
    """The same for each target, with a constant as the only feature."""
    scaled = 1 + _GAIN * count
    return _from_parts(jnp.log(scaled), _GAIN * total**2 / scaled, energy, count)


def _from_parts(determinant: Array, explained: Array, energy: Array, count: Array) -> Array:
    left = jnp.maximum(energy - explained, 1e-3 * energy)
    return -0.5 * determinant - (_SHAPE + count / 2) * jnp.log(_RATE + left / 2)


def _cross(
    waves: Float[Array, "i p n"],
    who: Int[Array, "j k"],
    free: Float[Array, "j n"],
    target: Float[Array, "j n"],
    sums: Float[Array, "j i all"],
    moments: Float[Array, "j i a"],
) -> tuple[Float[Array, "j pairs all all"], Float[Array, "j pairs a a"]]:
    """For pairs of `who`: sums over samples of waves of one times waves of the other, and those
    of low order times the target, the constant among the waves.

    `sums` and `moments` are those of single variables, and so of products with the constant. One
    target after the other: its waves fit into a core's cache, those of all do not.
    """
    first, second = np.triu_indices(who.shape[1], 1)
    low = moments.shape[2] - 1

    def with_constant(products: Array, alone: Float[Array, "k all"]) -> Array:
        by_first = jnp.concatenate([alone[first][:, 1:, None], products], axis=2)
        return jnp.concatenate([alone[second][:, None], by_first], axis=1)

    def of_target(given: tuple[Array, ...]) -> tuple[Array, Array]:
        who, free, target, sums, moments = given
        near = waves[who]
        # The first of a pair is never the last of all, nor the second the first.
        weighted = near[:-1] * free[None, None], near[:-1, :low] * target[None, None]
        left, right = jnp.concatenate(weighted, axis=1), near[1:]
        (k, p, n), m = right.shape, left.shape[1]
        found = left.reshape(k * m, n) @ right.reshape(k * p, n).T
        found = found.reshape(k, m, k, p)[first, :, second - 1]
        return (
            with_constant(found[:, :p], sums[who]),
            with_constant(found[:, p:, :low], moments[who]),
        )

    return lax.map(of_target, (who, free, target, sums, moments))


def local_evidence(samples: Samples, count: Int[Array, ""] | None = None) -> Float[Array, "d d 5"]:
    """`[i, j]`: what the evidence says about i as a cause of j, of size about 1.

    Pairs of causes are tried among the six that explain a target best alone.
    """
    x, variables = lax.stop_gradient(samples.values.T), samples.variables
    d = x.shape[0]
    free = (samples.rows[None, :] & ~samples.intervened.T).astype(x.dtype)
    seen = free.sum(axis=1)
    target = x * free
    total, energy = target.sum(axis=1), (target * x).sum(axis=1)

    # The constant is a feature too; it has no say about causes.
    nothing = _log_evidence_of_nothing(total, energy, seen)
    waves = _waves(x, count)
    of_constant = jnp.stack([seen, total])
    found = jnp.concatenate([free, target]) @ waves.reshape(-1, waves.shape[2]).T
    sums, moments = jnp.concatenate(
        [
            jnp.broadcast_to(of_constant[:, :, None, None], (2, d, d, 1)),
            found.reshape(2, d, d, WAVES),
        ],
        axis=3,
    )
    moments = moments[..., : 2 * _ORDERS + 1]
    single = _log_evidence(_fit_singles, sums, moments, energy, seen)
    possible = variables[:, None] & variables[None, :] & ~jnp.eye(d, dtype=bool)
    alone = jnp.where(possible, single - nothing[:, None], -jnp.inf)  # [j, i]

    chosen = min(_CANDIDATES, d - 1)
    best, who = lax.top_k(alone, chosen)
    first, second = np.triu_indices(chosen, 1)
    i, k = who[:, first], who[:, second]
    sums, moments = _cross(waves, who, free, target, sums, moments)
    pairs = _log_evidence(_fit_pairs, sums, moments, energy, seen)
    exists = jnp.isfinite(best[:, first]) & jnp.isfinite(best[:, second])
    pairs = jnp.where(exists, pairs - nothing[:, None], -jnp.inf)  # [j, pair]

    # Everything with i against everything without.
    member = jax.nn.one_hot(i, d, dtype=bool) | jax.nn.one_hot(k, d, dtype=bool)
    scores = jnp.concatenate([jnp.zeros((d, 1)), alone - _SPARSITY, pairs - 2 * _SPARSITY], axis=1)
    inside = jnp.concatenate(
        [jnp.zeros((d, 1, d), bool), jnp.broadcast_to(jnp.eye(d, dtype=bool), (d, d, d)), member],
        axis=1,
    )
    with_it = jax.nn.logsumexp(jnp.where(inside, scores[..., None], -1e4), axis=1)
    without = jax.nn.logsumexp(jnp.where(inside, -1e4, scores[..., None]), axis=1)
    odds = with_it - without
    top = jnp.maximum(scores.max(axis=1), 0.0)

    share = jnp.maximum(seen, 1.0)[:, None]
    numbers = jnp.stack(
        [
            jnp.tanh(jnp.where(possible, alone, 0.0) / 8),
            jnp.where(possible, alone, 0.0) / share,
            jnp.tanh(odds / 3),
            jnp.tanh(odds / 20),
            jnp.broadcast_to(top[:, None] / share, (d, d)),
        ],
        axis=-1,
    )
    numbers = jnp.where(possible[..., None], numbers, 0.0)
    return jnp.swapaxes(numbers, 0, 1)
