"""How sure a figure is that was measured on some graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree, Shaped

from acbo._errors import DataError, OptionError


class Interval(eqx.Module):
    """A statistic and the borders between which it lies."""

    estimate: Float[Array, "*shape"]
    low: Float[Array, "*shape"]
    high: Float[Array, "*shape"]

    def __str__(self) -> str:
        if self.estimate.ndim:
            return repr(self)
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


@functools.partial(jax.jit, static_argnames=("statistic", "resamples"))
def _bootstrap(
    values: PyTree,
    key: Key[Array, ""],
    level: float | Array,
    *,
    statistic: Callable[[PyTree], Array],
    resamples: int,
) -> Interval:
    n = jax.tree.leaves(values)[0].shape[0]

    def again(key: Key[Array, ""]) -> Array:
        rows = jax.random.randint(key, (n,), 0, n)
        return statistic(jax.tree.map(lambda leaf: leaf[rows], values))

    drawn = jax.lax.map(again, jax.random.split(key, resamples))
    tail = (1 - jnp.float32(level)) / 2
    low, high = jnp.quantile(drawn, jnp.stack([tail, 1 - tail]), axis=0)
    return Interval(statistic(values), low, high)


def bootstrap(
    values: PyTree[Shaped[Array, "_ ..."]],
    statistic: Callable[[PyTree], Array] = jnp.mean,
    *,
    key: Key[Array, ""],
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """The percentile bootstrap interval of a statistic of `n` independent cases.

    **Arguments:**

    - `values`: an array, or a pytree of them, with the cases along the first axis. Cases are drawn
      whole, with replacement.
    - `statistic`: a function of `values`, of any number of cases. Use `jnp.nanmean` where graphs
      without edges have given NaN.

    ```python
    import jax
    from acbo import metrics

    scores = jax.random.uniform(jax.random.key(0), (40,))
    interval = metrics.bootstrap(scores, key=jax.random.key(1))
    assert interval.low < interval.estimate < interval.high
    ```
    """
    leaves = jax.tree.leaves(values)
    if not leaves or any(leaf.shape[:1] != leaves[0].shape[:1] for leaf in leaves):
        raise DataError("values has no arrays, or arrays of different lengths")
    if leaves[0].shape[0] == 0:
        raise DataError("values has no cases to draw from")
    if resamples < 1:
        raise OptionError(f"resamples is {resamples}; give 1 or more")
    if not 0 < level < 1:
        raise OptionError(f"level is {level}; give a number above 0 and below 1, as 0.95")

    return _bootstrap(values, key, level, statistic=statistic, resamples=resamples)
