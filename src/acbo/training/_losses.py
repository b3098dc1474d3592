"""Losses between a predicted and an expert's distribution over parent sets.

Rules that keep them finite. Logits are held between -10,000 and 10,000 after the temperature, so
that infinite ones mean "never" and "certain". Weights of the expert below 0 count as 0, infinite
ones as very large; they are normalised, and where all are 0 the loss is 0. NaN stays NaN: it is no
distribution, and hiding it would hide what made it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import jax
import jax.numpy as jnp
from jax.scipy.special import entr
from jaxtyping import Array, Float

from acbo._errors import DataError, OptionError
from acbo.training._posterior import ParentSetPosterior

_LIMIT = 1e4
_MOST = 1e30
Expert = ParentSetPosterior | Float[Array, " k"]
Sets = Sequence[Collection] | Array | None


def kl_divergence_loss_jax(
    predicted_logits: Float[Array, " k"],
    expert_probs: Float[Array, " k"],
    parent_sets: Sets = None,
    temperature: float | Float[Array, ""] = 1.0,
) -> Float[Array, ""]:
    """The KL divergence from the expert's distribution to the predicted one, in nats.

    `parent_sets` are those that the numbers stand for; only their number is looked at.

    ```python
    import jax
    import jax.numpy as jnp
    from acbo.training import kl_divergence_loss_jax

    many = jax.vmap(kl_divergence_loss_jax, in_axes=(0, 0, None))
    assert jnp.allclose(many(jnp.zeros((5, 4)), jnp.full((5, 4), 0.25), None), 0.0, atol=1e-6)
    ```
    """
    p, log_q = _distributions(predicted_logits, expert_probs, parent_sets, temperature)
    return -(entr(p) + p * log_q).sum()


def kl_divergence_loss(
    predicted_logits: Float[Array, " k"],
    expert_posterior: Expert,
    parent_sets: Sets = None,
    temperature: float | Float[Array, ""] = 1.0,
) -> Float[Array, ""]:
    """As `kl_divergence_loss_jax`, for a `ParentSetPosterior` and a list of sets.

    An array of probabilities does too, so that a compiled step can use the same function.
    """
    probs = _aligned(expert_posterior, parent_sets)
    return kl_divergence_loss_jax(predicted_logits, probs, parent_sets, temperature)


def uncertainty_weighted_loss_jax(
    predicted_logits: Float[Array, " k"],
    expert_probs: Float[Array, " k"],
    parent_sets: Sets = None,
    temperature: float | Float[Array, ""] = 1.0,
    weight_scale: float | Float[Array, ""] = 1.0,
) -> Float[Array, ""]:
    """KL divergence times `exp(-weight_scale * H)`, with `H` the expert's entropy in nats.

    A sure expert counts fully, an unsure one less.
    """
    p, log_q = _distributions(predicted_logits, expert_probs, parent_sets, temperature)
    entropy = entr(p).sum()
    return jnp.exp(-weight_scale * entropy) * -(entropy + (p * log_q).sum())


def uncertainty_weighted_loss(
    predicted_logits: Float[Array, " k"],
    expert_posterior: Expert,
    parent_sets: Sets = None,
    temperature: float | Float[Array, ""] = 1.0,
    weight_scale: float | Float[Array, ""] = 1.0,
) -> Float[Array, ""]:
    """As `uncertainty_weighted_loss_jax`, for a `ParentSetPosterior` and a list of sets."""
    probs = _aligned(expert_posterior, parent_sets)
    return uncertainty_weighted_loss_jax(
        predicted_logits, probs, parent_sets, temperature, weight_scale
    )


def calibrated_loss(
    predicted_logits: Float[Array, " k"],
    expert_posterior: Expert,
    parent_sets: Sets = None,
    temperature: float | Float[Array, ""] = 1.0,
    calibration_weight: float | Float[Array, ""] = 0.1,
) -> Float[Array, ""]:
    """KL divergence plus `calibration_weight` times the squared distance of the distributions.

    The second part (a Brier score) is at most 2: it weighs how far probabilities are apart, where
    the first is ruled by the unlikely sets.
    """
    probs = _aligned(expert_posterior, parent_sets)
    p, log_q = _distributions(predicted_logits, probs, parent_sets, temperature)
    divergence = -(entr(p) + p * log_q).sum()
    apart = jnp.where(p.sum() > 0, ((jnp.exp(log_q) - p) ** 2).sum(), 0.0)
    return divergence + calibration_weight * apart


def _distributions(
    logits: Array, probs: Array, parent_sets: Sets, temperature: float | Array
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """The expert's probabilities and the predicted log probabilities, both normalised."""
    if not isinstance(temperature, Array) and not temperature > 0:
        raise OptionError(f"temperature is {temperature}; give a number above 0")
    if logits.shape != probs.shape:
        raise DataError(
            f"predicted_logits has shape {logits.shape}, the expert's probabilities {probs.shape}; "
            "expected one of each for every parent set"
        )
    if parent_sets is not None and len(parent_sets) != logits.shape[0]:
        raise DataError(f"{len(parent_sets)} parent sets for {logits.shape[0]} logits")
    scaled = jnp.clip(logits / temperature, -_LIMIT, _LIMIT)
    weights = jnp.clip(probs, 0.0, _MOST)
    # By the largest first: the sum of very large or very small weights is then a plain number.
    weights = weights / jnp.maximum(weights.max(), jnp.finfo(weights.dtype).tiny)
    return weights / jnp.maximum(weights.sum(), 1e-6), jax.nn.log_softmax(scaled)


def _aligned(expert: Expert, parent_sets: Sets) -> Float[Array, " k"]:
    if not isinstance(expert, ParentSetPosterior):
        return expert
    if parent_sets is None or isinstance(parent_sets, Array):
        raise DataError("a ParentSetPosterior needs parent_sets as a list of sets of names")
    return jnp.asarray([expert.probability(one) for one in parent_sets], jnp.float32)
