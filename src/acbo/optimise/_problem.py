"""What is to be optimised: a model that nobody knows, a target, and what may be set to what."""

from __future__ import annotations

from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.scm import SCM, Family
from acbo.scm._random import uniforms

_GRID = 33
_FUTURES = 64


class Problem(eqx.Module):
    """Find the intervention on one variable that makes the target largest.

    **Attributes:**

    - `scm`: the true model, hidden from policies.
    - `target`: the variable to make large; it cannot be set. It is an outcome: policies may take it
      that it has a cause, and causes nothing.
    - `limit`: values that are set lie between `-limit` and `limit`.
    - `cost`: what setting a variable costs, each time, on the scale of `worth`: at 0.3 the best
      intervention brings 0.7.
    - `noise`: the noises over which an expected value is a mean.
    - `calm`: the expected target when nothing is set.
    - `best`: the largest expected target that one intervention reaches.
    """

    scm: SCM
    target: Int[Array, ""]
    limit: Float[Array, ""]
    cost: Float[Array, " d"]
    noise: Float[Array, "d futures"]
    calm: Float[Array, ""]
    best: Float[Array, ""]

    @property
    def allowed(self) -> Bool[Array, " d"]:
        """Which variables may be set."""
        return self.scm.graph.variables & (jnp.arange(self.scm.d) != self.target)

    def expected(self, variable: Int[Array, " k"], value: Float[Array, " k"]) -> Float[Array, " k"]:
        """The expected target under each of `k` interventions."""
        return _expected(self.scm, self.target, self.noise, variable, value)

    def worth(self, expected: Float[Array, "*k"]) -> Float[Array, "*k"]:
        """An expected target on a scale where 0 is doing nothing and 1 is the best there is."""
        return (expected - self.calm) / self.gain

    @property
    def gain(self) -> Float[Array, ""]:
        """How much more than doing nothing the best intervention reaches, costs apart."""
        return jnp.maximum(self.best - self.calm, 1e-3)


@dataclass(frozen=True)
class ProblemPrior:
    """A distribution over problems.

    **Arguments:**

    - `family`: of the models.
    - `limit`: how far a variable can be set.
    - `cost`: smallest and largest cost of setting a variable, on the scale of worth.
    """

    family: Family = field(default_factory=lambda: Family(edges_per_variable=(0.5, 1.5)))
    limit: float = 3.0
    cost: tuple[float, float] = (0.0, 0.0)

    def problem(
        self, key: PRNGKeyArray, d: int, *, size: int | Int[Array, ""] | None = None
    ) -> Problem:
        """Draw a problem. The target is the last variable, in causal order, that has a cause.

        ```python
        import jax
        from acbo.optimise import ProblemPrior

        problem = ProblemPrior().problem(jax.random.key(0), 5)
        assert problem.best >= problem.calm
        ```
        """
        first, second = jax.random.split(key)
        scm = self.family.scm(first, d, size=size)
        futures = 1 if self.family.mechanism == "linear" else _FUTURES
        u, v = uniforms(second, (d,), (d, futures))
        # Symmetric noise leaves no trace in the mean of a linear model.
        noise = jnp.zeros((d, 1)) if futures == 1 else scm.noise_from(v)
        caused = scm.graph.edges.any(axis=0)
        rank = jnp.argsort(scm.graph.order)
        depth = jnp.where(scm.graph.variables, rank, -1)
        target = jnp.argmax(jnp.where(caused.any(), jnp.where(caused, depth, -1), depth))
        target = target.astype(jnp.int32)
        limit = jnp.float32(self.limit)
        cost = self.cost[0] + (self.cost[1] - self.cost[0]) * u

        calm = scm.push(noise)[target].mean()
        variable, value = choices(d, limit)
        reached = _expected(scm, target, noise, variable, value)
        may = (scm.graph.variables & (jnp.arange(d) != target))[variable]
        best = jnp.where(may, reached, calm).max()
        return Problem(scm, target, limit, cost, noise, calm, best)


def choices(d: int, limit: Float[Array, ""]) -> tuple[Int[Array, " k"], Float[Array, " k"]]:
    """Every variable at values on a grid between the limits."""
    variable = jnp.repeat(jnp.arange(d, dtype=jnp.int32), _GRID)
    return variable, jnp.tile(jnp.linspace(-limit, limit, _GRID), d)


def _expected(
    scm: SCM,
    target: Int[Array, ""],
    noise: Float[Array, "d futures"],
    variable: Int[Array, " k"],
    value: Float[Array, " k"],
) -> Float[Array, " k"]:
    d, futures = noise.shape
    k = variable.shape[0]
    chosen = jnp.arange(d)[:, None] == variable[None, :]
    wide = jnp.broadcast_to(chosen[:, :, None], (d, k, futures)).reshape(d, -1)
    do = jnp.broadcast_to(value[None, :, None], (d, k, futures)).reshape(d, -1)
    noises = jnp.broadcast_to(noise[:, None, :], (d, k, futures)).reshape(d, -1)
    return scm.push(noises, wide, do)[target].reshape(k, futures).mean(axis=1)
