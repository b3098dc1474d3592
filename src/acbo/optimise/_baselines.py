"""Policies to compare with. Each is a function of a key and a view."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from acbo._solve import solve_positive
from acbo.optimise._environment import Action, View
from acbo.optimise._estimates import effects
from acbo.optimise._problem import Problem, choices

_GRID = 13


def random_policy(key: PRNGKeyArray, view: View) -> Action:
    """Any variable, any value, whatever it costs."""
    first, second = jax.random.split(key)
    variable = jax.random.categorical(first, jnp.where(view.allowed, 0.0, -jnp.inf))
    value = jax.random.uniform(second, minval=-1.0, maxval=1.0) * view.limit
    return Action(variable.astype(jnp.int32), value)


def round_robin(key: PRNGKeyArray, view: View) -> Action:
    """One variable after the other, whatever it costs, at the end of its range that looks better so
    far."""
    turn = view.used % jnp.maximum(view.allowed.sum(), 1)
    place = jnp.cumsum(view.allowed) - 1
    variable = jnp.argmax(view.allowed & (place == turn)).astype(jnp.int32)
    slope = effects(view).slope[variable]
    return Action(variable, jnp.where(slope >= 0, view.limit, -view.limit))


def greedy_correlation(key: PRNGKeyArray, view: View) -> Action:
    """The variable that goes with the target most, whatever the cause of that."""
    found = effects(view)
    return extreme(found.correlation, view, unit=found.scale[view.target])


def linear_thompson(key: PRNGKeyArray, view: View) -> Action:
    """Draw an effect for each variable from what is known of it; act as if it were true."""
    found = effects(view)
    return extreme(found.slope + found.error * jax.random.normal(key, found.slope.shape), view)


def linear_ucb(key: PRNGKeyArray, view: View) -> Action:
    """The variable whose effect may be the largest."""
    found = effects(view)
    hope = jnp.abs(found.slope) + found.error
    return extreme(jnp.where(found.slope >= 0, hope, -hope), view)


@dataclass(frozen=True)
class GaussianProcess:
    """Bayesian optimisation with one Gaussian process a variable.

    **Arguments:**

    - `acquisition`: `"ucb"`, or `"ei"` for expected improvement.
    - `edges`: the causal graph, if known. The prior mean is then the effect found by regression on
      the variable and its causes (back-door adjustment); else it is 0.

    Both acquisitions are of the target less what setting the variable costs.
    """

    acquisition: str = "ucb"
    edges: Bool[Array, "d d"] | Float[Array, "d d"] | None = None

    def __call__(self, key: PRNGKeyArray, view: View) -> Action:
        """See `Policy`."""
        x, set_, _, _ = view.samples
        found = effects(view)
        y = x[:, view.target] - found.centre[view.target]
        spread = found.scale[view.target] ** 2
        slope = jnp.zeros(x.shape[1]) if self.edges is None else _adjusted(view, self.edges)
        size = spread * (4.0 if self.edges is None else 2.0)
        grid = jnp.linspace(-view.limit, view.limit, _GRID)
        mean, deviation = jax.vmap(
            lambda at, here, slope: _posterior(at, y, here, slope, size, view.limit, spread, grid)
        )(x.T, set_.T.astype(x.dtype), slope)
        mean = mean - view.cost[:, None]
        if self.acquisition == "ucb":
            score = mean + deviation
        else:
            tried = set_.any(axis=1)
            gained = y - set_.astype(y.dtype) @ view.cost
            best = jnp.where(tried.any(), jnp.where(tried, gained, -jnp.inf).max(), 0.0)
            score = expected_improvement(mean, deviation, best)
        score = jnp.where(view.allowed[:, None], score, -jnp.inf)
        place = jnp.argmax(score)
        return Action((place // _GRID).astype(jnp.int32), grid[place % _GRID])


def expected_improvement(
    mean: Float[Array, "*k"], deviation: Float[Array, "*k"], best: Float[Array, ""]
) -> Float[Array, "*k"]:
    """By how much a normal number exceeds `best` in the mean, where it does; else 0 counts."""
    z = (mean - best) / deviation
    return deviation * (z * norm.cdf(z) + norm.pdf(z))


@dataclass(frozen=True)
class Oracle:
    """Knows the problem. Nobody can do better with one intervention at a time, costs included."""

    problem: Problem

    def __call__(self, key: PRNGKeyArray, view: View) -> Action:
        """See `Policy`."""
        return best_action(self.problem)


def best_action(problem: Problem) -> Action:
    """The intervention with the largest expected target less its cost, among values on a grid."""
    variable, value = choices(problem.scm.d, problem.limit)
    gained = problem.worth(problem.expected(variable, value)) - problem.cost[variable]
    place = jnp.argmax(jnp.where(problem.allowed[variable], gained, -jnp.inf))
    return Action(variable[place], value[place])


def extreme(
    effect: Float[Array, " d"], view: View, *, unit: Float[Array, ""] | None = None
) -> Action:
    """The variable of largest effect less its cost, at the end of its range that helps.

    `unit` is what the target gains where an effect is 1: the limit, for a change per unit.
    """
    gained = jnp.abs(effect) * (view.limit if unit is None else unit) - view.cost
    variable = jnp.argmax(jnp.where(view.allowed, gained, -jnp.inf)).astype(jnp.int32)
    return Action(variable, jnp.where(effect[variable] >= 0, view.limit, -view.limit))


def _adjusted(view: View, edges: Array) -> Float[Array, " d"]:
    """The slope of the target on each variable, given the causes of that variable."""
    x, set_, rows, _ = view.samples
    found = effects(view)
    d = x.shape[1]
    calm = rows & ~set_.any(axis=1)
    z = jnp.where(calm[:, None], x - found.centre[None, :], 0.0)
    y = z[:, view.target]

    def one(i: Array) -> Array:
        among = jnp.maximum(edges.astype(x.dtype)[:, i], jnp.eye(d)[i])
        inside = z * among[None, :]
        penalty = 0.1 + 1e3 * (1 - among)
        slopes = solve_positive(inside.T @ inside + jnp.diag(penalty), (inside.T @ y)[:, None])
        return slopes[i, 0] * (i != view.target).astype(x.dtype)

    return jax.vmap(one)(jnp.arange(d))


def _posterior(at, y, here, slope, size, length, noise, grid) -> tuple[Array, Array]:
    """Mean and deviation on `grid` of a process seen at `at` where `here` is 1."""

    def kernel(a: Array, b: Array) -> Array:
        return size * jnp.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)

    known = kernel(at, at) * here[:, None] * here[None, :] + jnp.diag(noise * here + 1 - here)
    cross = kernel(grid, at) * here[None, :]
    right = jnp.concatenate([((y - slope * at) * here)[:, None], cross.T], axis=1)
    solved = solve_positive(known, right)
    variance = size - (cross * solved[:, 1:].T).sum(axis=1)
    return slope * grid + cross @ solved[:, 0], jnp.sqrt(jnp.maximum(variance, 1e-6))
