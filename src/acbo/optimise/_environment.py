"""The game: look at samples, choose a variable and a value, see one more sample."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import worldloom as wl
from acbo.optimise._problem import Problem
from acbo.scm import Samples


class View(NamedTuple):
    """What a policy sees: all samples so far, raw, and the rules.

    **Attributes:**

    - `samples`: the table, padded to the samples that the budget allows.
    - `target`, `limit`, `allowed`: the rules; see `Problem`.
    - `cost`: what setting each variable costs, in units of the target.
    - `used`, `budget`: interventions made, and interventions that may be made in all: each counts
      as one, whatever it costs.
    """

    samples: Samples
    target: Int[Array, ""]
    limit: Float[Array, ""]
    allowed: Bool[Array, " d"]
    cost: Float[Array, " d"]
    used: Int[Array, ""]
    budget: Int[Array, ""]


class Action(NamedTuple):
    """Set `variable` to `value`; values beyond the limit are cut."""

    variable: Int[Array, ""]
    value: Float[Array, ""]


@runtime_checkable
class Policy(Protocol):
    """Chooses the next intervention from what is seen: any function of a key and a view."""

    def __call__(self, key: PRNGKeyArray, view: View) -> Action:
        """What to do next."""
        ...


class Step(NamedTuple):
    """What one intervention brought.

    **Attributes:**

    - `action`: what was done.
    - `seen`: the target in the one sample.
    - `worth`: the expected target; 0 is doing nothing, 1 the best that one intervention can do.
    - `best`: the largest worth so far, costs apart.
    - `reward`: worth less cost: what policies try to make large.
    """

    action: Action
    seen: Float[Array, ""]
    worth: Float[Array, ""]
    best: Float[Array, ""]
    reward: Float[Array, ""]


class Game(eqx.Module):
    """The state of an optimisation: the samples, and how far it has come."""

    samples: Samples
    used: Int[Array, ""]
    best: Float[Array, ""]
    key: PRNGKeyArray


def begin(key: PRNGKeyArray, problem: Problem, *, observed: int, budget: int) -> Game:
    """A game with `observed` samples in which nothing was set, and room for `budget` more."""
    if observed < 2:
        raise ValueError(f"observed={observed}; at least 2 samples are needed to begin")
    if budget < 1:
        raise ValueError(f"budget={budget}; expected at least one intervention")
    first, second = jax.random.split(key)
    d = problem.scm.d
    values = jnp.zeros((observed + budget, d))
    values = values.at[:observed].set(problem.scm.sample(first, observed))
    samples = Samples(
        values,
        jnp.zeros((observed + budget, d), bool),
        jnp.arange(observed + budget) < observed,
        problem.scm.graph.variables,
    )
    return Game(samples, jnp.int32(0), jnp.float32(-jnp.inf), second)


def look(game: Game, problem: Problem, budget: int) -> View:
    """What a policy may see of a game."""
    return View(
        game.samples,
        problem.target,
        problem.limit,
        problem.allowed,
        problem.cost * problem.gain,
        game.used,
        jnp.int32(budget),
    )


def act(key: PRNGKeyArray, game: Game, action: Action, problem: Problem) -> tuple[Game, Step]:
    """Make one intervention and see one sample."""
    d = problem.scm.d
    value = jnp.clip(action.value, -problem.limit, problem.limit)
    chosen = jnp.arange(d) == action.variable
    sample = problem.scm.sample(
        key, 1, intervened=chosen[None, :], do=jnp.broadcast_to(value, (1, d))
    )[0]
    values, intervened, rows, variables = game.samples
    here = (jnp.arange(rows.shape[0]) == rows.sum())[:, None]
    samples = Samples(
        jnp.where(here, sample[None, :], values),
        jnp.where(here, chosen[None, :], intervened),
        rows | here[:, 0],
        variables,
    )
    expected = problem.expected(action.variable[None], value[None])[0]
    worth = problem.worth(expected)
    best = jnp.maximum(game.best, worth)
    reward = worth - problem.cost[action.variable]
    step = Step(Action(action.variable, value), sample[problem.target], worth, best, reward)
    return Game(samples, game.used + 1, best, game.key), step


def play(
    key: PRNGKeyArray,
    problem: Problem,
    policy: Policy,
    *,
    observed: int = 20,
    budget: int = 10,
) -> tuple[Game, Step]:
    """A whole optimisation; steps have a leading axis of `budget`. Use `jax.vmap` for many.

    ```python
    import jax
    from acbo.optimise import ProblemPrior, play, random_policy

    problem = ProblemPrior().problem(jax.random.key(0), 4)
    game, steps = play(jax.random.key(1), problem, random_policy, observed=5, budget=3)
    assert steps.worth.shape == (3,)
    ```
    """

    def step(game: Game, t: Int[Array, ""]) -> tuple[Game, Step]:
        choose, see = jax.random.split(jax.random.fold_in(game.key, t))
        action = policy(choose, look(game, problem, budget))
        return act(see, game, action, problem)

    game = begin(key, problem, observed=observed, budget=budget)
    return wl.unroll(step, game, length=budget, save=wl.Every(), remat=False)
