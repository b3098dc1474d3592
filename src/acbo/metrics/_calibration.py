"""Whether probabilities mean what they say."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo._errors import OptionError


class Reliability(eqx.Module):
    """A reliability table: predictions by size, and how often they came true."""

    edges: Float[Array, " borders"]
    """The borders of the bins."""
    count: Float[Array, " bins"]
    """How many predictions fell into each bin."""
    predicted: Float[Array, " bins"]
    """The mean prediction of each bin; NaN in an empty one."""
    observed: Float[Array, " bins"]
    """The mean truth of each bin; NaN in an empty one."""

    @property
    def error(self) -> Float[Array, ""]:
        """Expected calibration error: the gap between the two, averaged over predictions."""
        gap = jnp.where(self.count > 0, jnp.abs(self.predicted - self.observed), 0.0)
        return (gap * self.count).sum() / self.count.sum()


def reliability(
    probabilities: Float[Array, "*shape"],
    truth: Bool[Array, "*shape"] | Float[Array, "*shape"],
    *,
    bins: int = 10,
    where: Bool[Array, "*shape"] | None = None,
) -> Reliability:
    """Predictions sorted into bins of equal width, with what was predicted and what is true.

    `truth` is false or true, or a probability itself: that of an exact posterior. A prediction on
    a border belongs to the upper bin, 1 to the last. Entries with `where` false do not exist.

    ```python
    import jax.numpy as jnp
    from acbo import metrics

    said = jnp.array([0.2, 0.2, 0.2, 0.2, 0.9])
    came = jnp.array([True, False, False, False, True])
    table = metrics.reliability(said, came, bins=2)
    assert table.count.tolist() == [4, 1]
    assert table.observed.tolist() == [0.25, 1.0]
    ```
    """
    if bins < 1:
        raise OptionError(f"bins is {bins}; give 1 or more")
    kept = jnp.ones(probabilities.shape, bool) if where is None else where
    weights = kept.reshape(-1).astype(jnp.float32)
    # What does not count may be NaN, and NaN times nothing is NaN.
    said = jnp.where(kept, probabilities, 0.0).reshape(-1)
    came = jnp.where(kept, truth.astype(jnp.float32), 0.0).reshape(-1)
    place = jnp.clip((said * bins).astype(jnp.int32), 0, bins - 1)

    def total(amounts: Float[Array, " m"]) -> Float[Array, " bins"]:
        return jnp.zeros(bins).at[place].add(amounts * weights)

    count = total(jnp.ones_like(weights))
    return Reliability(
        jnp.linspace(0.0, 1.0, bins + 1), count, total(said) / count, total(came) / count
    )


def expected_calibration_error(
    probabilities: Float[Array, "*shape"],
    truth: Bool[Array, "*shape"] | Float[Array, "*shape"],
    *,
    bins: int = 10,
    where: Bool[Array, "*shape"] | None = None,
) -> Float[Array, ""]:
    """`reliability(...).error`: by how much predictions miss how often they come true.

    NaN where nothing counts.
    """
    return reliability(probabilities, truth, bins=bins, where=where).error
