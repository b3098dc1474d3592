"""A structural causal model as a pytree of arrays, and samples of it under interventions."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.scm._graphs import Graph
from acbo.scm._mechanisms import Mechanism
from acbo.scm._random import normal, uniforms

NOISES = ("gaussian", "laplace", "uniform")


class SCM(eqx.Module):
    """Variables that follow from their causes and noise of their own.

    **Attributes:**

    - `graph`: who causes whom, in which order, and which variables exist.
    - `mechanism`: how a variable follows from its causes.
    - `noise_scale`: standard deviation of the noise of each variable.
    - `noise`: its distribution.

    ```python
    import jax
    from acbo.scm import Family

    scm = Family().scm(jax.random.key(0), 5)
    values = scm.sample(jax.random.key(1), 100)
    assert values.shape == (100, 5)
    ```
    """

    graph: Graph
    mechanism: Mechanism
    noise_scale: Float[Array, " d"]
    noise: str = eqx.field(static=True, default="gaussian")

    def __check_init__(self):
        check_noise(self.noise)

    @property
    def d(self) -> int:
        """The padded number of variables."""
        return self.graph.edges.shape[-1]

    def sample(
        self,
        key: PRNGKeyArray,
        n: int,
        *,
        intervened: Bool[Array, "n d"] | None = None,
        do: Float[Array, "n d"] | None = None,
    ) -> Float[Array, "n d"]:
        """Draw `n` samples. Where `intervened`, a variable is `do`, whatever its causes are.

        Padding is 0.
        """
        if (intervened is None) != (do is None):
            raise ValueError("intervened and do belong together: give both, or neither")
        (u,) = uniforms(key, (self.d, n))
        noise = self.noise_from(u)
        if intervened is None or do is None:
            return self.push(noise).T
        return self.push(noise, intervened.T, do.T).T

    def noise_from(self, u: Float[Array, "d n"]) -> Float[Array, "d n"]:
        """The noise that the uniform numbers `u` stand for."""
        if self.noise == "gaussian":
            unit = normal(u)
        elif self.noise == "laplace":
            v = 2 * u - 1
            unit = -jnp.sign(v) * jnp.log1p(-jnp.abs(v)) / 2.0**0.5
        else:
            unit = (2 * u - 1) * 3.0**0.5
        return unit * self.noise_scale[:, None]

    def mean(self, intervened: Bool[Array, " d"], do: Float[Array, " d"]) -> Float[Array, " d"]:
        """All variables under one intervention when every noise is 0.

        In linear models this is the expected value.
        """
        noise = jnp.zeros((self.d, 1))
        return self.push(noise, intervened[:, None], do[:, None])[:, 0]

    def push(
        self,
        noise: Float[Array, "d n"],
        intervened: Bool[Array, "d n"] | None = None,
        do: Float[Array, "d n"] | None = None,
    ) -> Float[Array, "d n"]:
        """Values of all variables for a given noise, variables first: causes before effects."""
        exists = self.graph.variables

        def place(values: Array, j: Int[Array, ""]) -> tuple[Array, None]:
            own = self.mechanism(j, values) + noise[j]
            if intervened is not None and do is not None:
                own = jnp.where(intervened[j], do[j], own)
            here = (jnp.arange(self.d) == j) & exists
            return jnp.where(here[:, None], own[None, :], values), None

        values, _ = lax.scan(place, jnp.zeros_like(noise), self.graph.order)
        return values


def check_noise(kind: str) -> None:
    """Refuse what is not a distribution of noise."""
    if kind not in NOISES:
        raise ValueError(f"noise={kind!r} is not a distribution; one of {', '.join(NOISES)}")


class Samples(NamedTuple):
    """A table of samples, padded in both directions.

    **Attributes:**

    - `values`: what was seen; 0 in padding.
    - `intervened`: where a value was set instead of seen.
    - `rows`, `variables`: which rows and variables exist.
    """

    values: Float[Array, "n d"]
    intervened: Bool[Array, "n d"]
    rows: Bool[Array, " n"]
    variables: Bool[Array, " d"]


def standardise(samples: Samples) -> Samples:
    """Every variable with mean 0 and variance 1 over all existing rows.

    The variance of raw data often grows from causes to effects. Nobody should find a graph by
    that, so it is taken away.
    """
    here = (samples.rows[:, None] & samples.variables[None, :]).astype(samples.values.dtype)
    count = jnp.maximum(samples.rows.sum(), 1).astype(samples.values.dtype)
    mean = (samples.values * here).sum(axis=0) / count
    centred = (samples.values - mean[None, :]) * here
    deviation = jnp.sqrt((centred**2).sum(axis=0) / count)
    return samples._replace(values=centred / jnp.maximum(deviation, 1e-6)[None, :])
