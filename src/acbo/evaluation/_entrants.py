"""Policies by name, each made for a problem."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from acbo._errors import OptionError
from acbo.evaluation._networks import policy_or_shipped, surrogate_or_shipped
from acbo.optimise import (
    Action,
    GaussianProcess,
    Oracle,
    Policy,
    Problem,
    View,
    greedy_correlation,
    linear_thompson,
    linear_ucb,
    outcome_edges,
    path_effects,
    random_policy,
    round_robin,
)
from acbo.optimise._baselines import extreme
from acbo.policy import LearnedPolicy, PolicyNetwork
from acbo.scm import standardise
from acbo.surrogate import Surrogate


def believed_edges(surrogate: Surrogate, view: View) -> Float[Array, "d d"]:
    """What a surrogate believes of the graph, given what a policy has seen and what it is told."""
    edges = jax.nn.sigmoid(surrogate(standardise(view.samples)).edge_logits)
    return outcome_edges(view, edges)


class GreedyOnBelief(eqx.Module):
    """The variable of largest effect along the paths that a surrogate believes in."""

    surrogate: Surrogate

    def __call__(self, key: PRNGKeyArray, view: View) -> Action:
        """See `acbo.optimise.Policy`."""
        edges = believed_edges(self.surrogate, view)
        return extreme(path_effects(view, edges), view)


class ProcessOnBelief(eqx.Module):
    """Causal Bayesian optimisation with a learned graph: what `GaussianProcess` does with a known
    one, with what a surrogate believes instead."""

    surrogate: Surrogate
    acquisition: str = eqx.field(static=True, default="ucb")

    def __call__(self, key: PRNGKeyArray, view: View) -> Action:
        """See `acbo.optimise.Policy`."""
        edges = believed_edges(self.surrogate, view)
        return GaussianProcess(self.acquisition, edges)(key, view)


Builder = Callable[[Problem, Surrogate, PolicyNetwork | None], Policy]

BUILDERS: dict[str, Builder] = {
    "random": lambda problem, surrogate, network: random_policy,
    "round-robin": lambda problem, surrogate, network: round_robin,
    "correlation": lambda problem, surrogate, network: greedy_correlation,
    "thompson": lambda problem, surrogate, network: linear_thompson,
    "linear-ucb": lambda problem, surrogate, network: linear_ucb,
    "gp-ei": lambda problem, surrogate, network: GaussianProcess("ei"),
    "gp-ucb": lambda problem, surrogate, network: GaussianProcess("ucb"),
    "causal-gp-ei": lambda problem, surrogate, network: GaussianProcess(
        "ei", problem.scm.graph.edges
    ),
    "causal-gp-ucb": lambda problem, surrogate, network: GaussianProcess(
        "ucb", problem.scm.graph.edges
    ),
    "learned-gp-ei": lambda problem, surrogate, network: ProcessOnBelief(surrogate, "ei"),
    "learned-gp-ucb": lambda problem, surrogate, network: ProcessOnBelief(surrogate, "ucb"),
    "greedy": lambda problem, surrogate, network: GreedyOnBelief(surrogate),
    "learned": lambda problem, surrogate, network: _learned(surrogate, network),
    "oracle": lambda problem, surrogate, network: Oracle(problem),
}
POLICIES = tuple(BUILDERS)
_WITH_SURROGATE = ("learned-gp-ei", "learned-gp-ucb", "greedy", "learned")


def make_policy(
    name: str,
    problem: Problem,
    *,
    surrogate: Surrogate | None = None,
    network: PolicyNetwork | None = None,
) -> Policy:
    """A policy by its name, for a problem. Networks are those in the package where none are given.

    - `"random"`, `"round-robin"`, `"correlation"`, `"thompson"`, `"linear-ucb"`: see
      `acbo.optimise`.
    - `"gp-ei"`, `"gp-ucb"`: a Gaussian process a variable that knows no graph.
    - `"causal-gp-ei"`, `"causal-gp-ucb"`: with the true graph, which it is told.
    - `"learned-gp-ei"`, `"learned-gp-ucb"`: with the graph that the surrogate believes in.
    - `"greedy"`: the largest effect along the paths that the surrogate believes in.
    - `"learned"`: the policy network.
    - `"oracle"`: the best intervention, which it is told.

    ```python
    import jax
    from acbo.evaluation import make_policy
    from acbo.optimise import named_problem, play

    problem = named_problem("chain")
    _, steps = play(jax.random.key(0), problem, make_policy("oracle", problem), budget=2)
    assert steps.best[-1] == 1.0
    ```
    """
    builder = builder_of(name)
    if name in _WITH_SURROGATE:
        surrogate = surrogate_or_shipped(surrogate)
    if name == "learned":
        network = policy_or_shipped(network)
    return builder(problem, surrogate, network)  # pyright: ignore[reportArgumentType]


def builder_of(name: str) -> Builder:
    """How a policy of that name is made."""
    if name not in BUILDERS:
        raise OptionError(f"policy is {name!r}; the policies are {', '.join(POLICIES)}")
    return BUILDERS[name]


def _learned(surrogate: Surrogate, network: PolicyNetwork | None) -> LearnedPolicy:
    assert network is not None
    return LearnedPolicy(network, surrogate)
