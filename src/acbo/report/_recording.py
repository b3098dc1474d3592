"""One optimisation, written down step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo._errors import DataError
from acbo.evaluation._entrants import Builder, builder_of
from acbo.evaluation._networks import policy_or_shipped, surrogate_or_shipped
from acbo.optimise import NamedProblem, Problem, Step, play
from acbo.policy import PolicyNetwork
from acbo.scm import standardise
from acbo.surrogate import Surrogate


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """What a policy did to a problem, and what was believed of the graph before each step.

    **Attributes:**

    - `policy`: its name.
    - `names`, `target`: the variables, and the number of the one to make large.
    - `variables`, `values`: which variable was set to what, in its own units, `[budget]`.
    - `seen`: the target in the one sample, in its own units.
    - `worth`, `best`: of the intervention, and the largest so far; 1 is the best there is.
    - `beliefs`: edge probabilities before the first step and after each, `[budget + 1, d, d]`.
    - `truth`: the true graph.
    - `minimise`: whether the target, in its own units, is to be small.
    """

    policy: str
    names: tuple[str, ...]
    target: int
    variables: Int[np.ndarray, " budget"]
    values: Float[np.ndarray, " budget"]
    seen: Float[np.ndarray, " budget"]
    worth: Float[np.ndarray, " budget"]
    best: Float[np.ndarray, " budget"]
    beliefs: Float[np.ndarray, "states d d"]
    truth: Bool[np.ndarray, "d d"]
    minimise: bool = False


def record_optimisation(
    problem: Problem,
    policy: str,
    *,
    key: PRNGKeyArray,
    surrogate: Surrogate | None = None,
    network: PolicyNetwork | None = None,
    names: Sequence[str] | None = None,
    observed: int = 20,
    budget: int = 10,
) -> Recording:
    """Play a problem with a policy of `acbo.evaluation.make_policy`, and keep everything.

    **Arguments:**

    - `surrogate`, `network`: by default those in the package. Whatever the policy, the surrogate
      says what could be believed of the graph at each step.
    - `names`: of the variables; those of a named problem by default, else `x0`, `x1`, ...
    """
    d = problem.scm.d
    named = isinstance(problem, NamedProblem)
    if names is None:
        names = problem.names if named else [f"x{j}" for j in range(d)]
    if len(names) != d:
        raise DataError(f"names has {len(names)} entries for {d} variables")
    surrogate = surrogate_or_shipped(surrogate)
    network = policy_or_shipped(network) if policy == "learned" else None
    build = builder_of(policy)
    steps, beliefs = _play(key, problem, build, surrogate, network, observed, budget)
    variables = np.asarray(steps.action.variable)
    values, seen = steps.action.value, steps.seen
    if named:
        values, seen = problem.natural(steps.action.variable, values), problem.reading(seen)
    return Recording(
        policy=policy,
        names=tuple(names),
        target=int(problem.target),
        variables=variables,
        values=np.asarray(values),
        seen=np.asarray(seen),
        worth=np.asarray(steps.worth),
        best=np.asarray(steps.best),
        beliefs=np.asarray(beliefs),
        truth=np.asarray(problem.scm.graph.edges),
        minimise=named and problem.minimise,
    )


@eqx.filter_jit
def _play(
    key: PRNGKeyArray,
    problem: Problem,
    build: Builder,
    surrogate: Surrogate,
    network: PolicyNetwork | None,
    observed: int,
    budget: int,
) -> tuple[Step, Float[Array, "states d d"]]:
    policy = build(problem, surrogate, network)
    game, steps = play(key, problem, policy, observed=observed, budget=budget)

    def believed(rows: Int[Array, ""]) -> Float[Array, "d d"]:
        here = jnp.arange(observed + budget) < rows
        values = jnp.where(here[:, None], game.samples.values, 0.0)
        known = game.samples._replace(
            values=values, rows=here, intervened=game.samples.intervened & here[:, None]
        )
        return jax.nn.sigmoid(surrogate(standardise(known)).edge_logits)

    beliefs = jax.vmap(believed)(jnp.arange(observed, observed + budget + 1))
    return steps, beliefs
