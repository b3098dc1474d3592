"""How well scores rank what is true above what is not."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Real


def _parts(
    scores: Real[Array, "*shape"],
    labels: Bool[Array, "*shape"],
    where: Bool[Array, "*shape"] | None,
) -> tuple[Float[Array, " m"], Bool[Array, " m"], Bool[Array, " m"]]:
    """All entries in a row: their scores, and which are true, and which false."""
    counts = jnp.ones(scores.shape, bool) if where is None else where
    flat = scores.reshape(-1).astype(jnp.float32)
    truth, counts = labels.reshape(-1), counts.reshape(-1)
    return flat, truth & counts, ~truth & counts


def _at_least(scores: Float[Array, " m"], chosen: Bool[Array, " m"], *, ties: bool) -> Array:
    """For each score, how many chosen ones are above it, or equal to it where `ties`."""
    ordered = jnp.sort(jnp.where(chosen, scores, -jnp.inf))
    side = "left" if ties else "right"
    return jnp.minimum(scores.size - jnp.searchsorted(ordered, scores, side=side), chosen.sum())


def auroc(
    scores: Real[Array, "*shape"],
    labels: Bool[Array, "*shape"],
    *,
    where: Bool[Array, "*shape"] | None = None,
) -> Float[Array, ""]:
    """The area under the receiver operating characteristic.

    The chance that a true entry has a higher score than a false one; a tie counts half. NaN where
    there is no true or no false entry. Entries with `where` false do not exist.

    ```python
    import jax.numpy as jnp
    from acbo import metrics

    scores, labels = jnp.array([0.9, 0.4, 0.4, 0.1]), jnp.array([True, True, False, False])
    assert metrics.auroc(scores, labels) == 0.875
    ```
    """
    flat, true, false = _parts(scores, labels, where)
    above = _at_least(flat, false, ties=False)
    level = _at_least(flat, false, ties=True) - above
    negatives = false.sum()
    doubled = jnp.where(true, 2 * (negatives - above) - level, 0).astype(jnp.float32)
    pairs = true.sum().astype(jnp.float32) * negatives.astype(jnp.float32)
    return doubled.sum() / (2 * pairs)


def average_precision(
    scores: Real[Array, "*shape"],
    labels: Bool[Array, "*shape"],
    *,
    where: Bool[Array, "*shape"] | None = None,
) -> Float[Array, ""]:
    """The precision at the score of each true entry, averaged: the area under precision-recall.

    Entries of equal scores come in together. NaN where there is no true entry.
    """
    flat, true, false = _parts(scores, labels, where)
    right, wrong = _at_least(flat, true, ties=True), _at_least(flat, false, ties=True)
    precision = right / jnp.maximum(right + wrong, 1)
    return jnp.where(true, precision, 0.0).sum() / true.sum().astype(jnp.float32)


def f1(
    scores: Real[Array, "*shape"],
    labels: Bool[Array, "*shape"],
    *,
    threshold: float | Float[Array, ""] = 0.5,
    where: Bool[Array, "*shape"] | None = None,
) -> Float[Array, ""]:
    """The harmonic mean of precision and recall when scores above `threshold` are called true.

    NaN where nothing is true and nothing is called true.
    """
    flat, true, false = _parts(scores, labels, where)
    called = flat > threshold
    right = (called & true).sum()
    wrong = (called & false).sum() + (~called & true).sum()
    return 2 * right / (2 * right + wrong)
