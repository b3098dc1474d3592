"""How fast policies find the best intervention."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from acbo import metrics
from acbo._errors import OptionError
from acbo._keys import key_and_seed
from acbo.evaluation._discovery import timed
from acbo.evaluation._entrants import Builder, builder_of
from acbo.evaluation._networks import policy_or_shipped, surrogate_or_shipped
from acbo.metrics import Interval
from acbo.optimise import Game, Problem, ProblemPrior, Step, play
from acbo.policy import PolicyNetwork
from acbo.scm import Family, standardise
from acbo.surrogate import Surrogate

_RESAMPLES = 400
# Less than this between doing nothing and the best: there is nothing to find.
_LEAST_GAIN = 0.01


@dataclasses.dataclass(frozen=True)
class Contest:
    """Problems to play.

    **Arguments:**

    - `name`: what to call it.
    - `prior`: where problems come from.
    - `d`: variables of each.
    - `observed`, `budget`: samples at the beginning, and interventions that follow.
    """

    name: str
    prior: ProblemPrior
    d: int = 5
    observed: int = 20
    budget: int = 10

    def __post_init__(self) -> None:
        if self.d < 2:
            raise OptionError(f"d is {self.d}; a target and something to set are 2 variables")


_EDGES = (0.5, 1.5)

# The first is like what the shipped policy was trained on; the others are not.
CONTESTS = (
    Contest("in family", ProblemPrior()),
    Contest(
        "nonlinear", ProblemPrior(family=Family(mechanism="fourier", edges_per_variable=_EDGES))
    ),
    Contest(
        "scale-free", ProblemPrior(family=Family(graph="scale_free", edges_per_variable=_EDGES))
    ),
    Contest("twice the variables", ProblemPrior(), d=10),
)


@dataclasses.dataclass(frozen=True, eq=False)
class PolicyScores:
    """What a policy reaches, with 95 % bootstrap intervals over problems.

    An intervention is worth its expected target, on a scale where 0 is doing nothing and 1 is the
    best single intervention.

    **Attributes:**

    - `policy`, `contest`: what was played.
    - `problems`: how many count. `left_out` is how many had nothing to gain: there the scale has
      no meaning.
    - `best`: the largest worth within the budget, averaged over problems.
    - `mean`: the worth of all interventions, averaged.
    - `regret`: one minus the best so far after each intervention, `[budget]`.
    - `parent_f1`, `parent_auroc`: of the causes of the target, as the surrogate sees them in the
      samples that the policy has gathered by the end.
    - `milliseconds`: for one decision and its intervention, all problems in lockstep, after
      compilation.
    - `seed`: of the key that was drawn because none was given.
    """

    policy: str
    contest: Contest
    problems: int
    left_out: int
    best: Interval
    mean: Interval
    regret: Interval
    parent_f1: Interval
    parent_auroc: Interval
    milliseconds: float
    seed: int | None = None


def evaluate_policy(
    policy: str,
    contest: Contest = CONTESTS[0],
    *,
    surrogate: Surrogate | None = None,
    network: PolicyNetwork | None = None,
    problems: int = 128,
    key: PRNGKeyArray | None = None,
) -> PolicyScores:
    """Play `problems` problems with a policy, all in lockstep, in one program.

    **Arguments:**

    - `policy`: its name; see `make_policy`.
    - `surrogate`, `network`: by default those in the package. The surrogate also judges what can be
      known of the target's causes in the end.
    - `key`: of problems and samples. With the same key every policy plays the same problems from
      the same first samples. By default a fresh one, whose seed is in the scores.

    ```python
    import jax
    from acbo.evaluation import Contest, evaluate_policy
    from acbo.optimise import ProblemPrior
    from acbo.surrogate import Surrogate, SurrogateConfig

    surrogate = Surrogate(SurrogateConfig(hidden=8, blocks=2, heads=2), key=jax.random.key(0))
    contest = Contest("small", ProblemPrior(), d=3, observed=4, budget=2)
    scores = evaluate_policy("oracle", contest, surrogate=surrogate, problems=8)
    assert scores.best.estimate > 0.99
    ```
    """
    if problems < 1:
        raise OptionError(f"problems is {problems}; give 1 or more")
    build = builder_of(policy)
    surrogate = surrogate_or_shipped(surrogate)
    network = policy_or_shipped(network) if policy == "learned" else None
    own, seed = key_and_seed(key, "evaluate_policy")
    draw, start, resample = jax.random.split(own, 3)
    drawn = _draw(contest.prior, contest.d, jax.random.split(draw, problems))
    keys = jax.random.split(start, problems)
    (games, steps), seconds = timed(
        lambda: _play(build, surrogate, network, drawn, keys, contest.observed, contest.budget),
        rounds=2,
    )
    f1, auroc = _judge(surrogate, games, drawn)
    counts = drawn.best - drawn.calm > _LEAST_GAIN
    if not counts.any():
        raise OptionError(f"none of {problems} problems has anything to gain; give more problems")
    cases = {
        "worth": jnp.where(counts[:, None], steps.worth, jnp.nan),
        "best": jnp.where(counts[:, None], steps.best, jnp.nan),
        "f1": jnp.where(counts, f1, jnp.nan),
        "auroc": jnp.where(counts, auroc, jnp.nan),
    }
    found = metrics.bootstrap(cases, _summary, key=resample, resamples=_RESAMPLES)

    def part(which: int | slice) -> Interval:
        return jax.tree.map(lambda leaf: leaf[which], found)

    return PolicyScores(
        policy=policy,
        contest=contest,
        problems=int(counts.sum()),
        left_out=int((~counts).sum()),
        best=part(0),
        mean=part(1),
        parent_f1=part(2),
        parent_auroc=part(3),
        regret=part(slice(4, None)),
        milliseconds=1000 * seconds / (problems * contest.budget),
        seed=seed,
    )


@eqx.filter_jit
def _draw(prior: ProblemPrior, d: int, keys: Key[Array, " n"]) -> Problem:
    return jax.vmap(lambda key: prior.problem(key, d))(keys)


@eqx.filter_jit
def _play(
    build: Builder,
    surrogate: Surrogate,
    network: PolicyNetwork | None,
    problems: Problem,
    keys: Key[Array, " n"],
    observed: int,
    budget: int,
) -> tuple[Game, Step]:
    def one(problem: Problem, key: PRNGKeyArray) -> tuple[Game, Step]:
        policy = build(problem, surrogate, network)
        return play(key, problem, policy, observed=observed, budget=budget)

    return jax.vmap(one)(problems, keys)


@eqx.filter_jit
def _judge(surrogate: Surrogate, games: Game, problems: Problem) -> tuple[Array, Array]:
    """F1 and AUROC of the believed causes of each target."""

    def one(game: Game, problem: Problem) -> tuple[Array, Array]:
        logits = surrogate(standardise(game.samples)).edge_logits
        believed = jax.nn.sigmoid(logits)[:, problem.target]
        truth = problem.scm.graph.edges[:, problem.target]
        where = problem.scm.graph.variables & (jnp.arange(problem.scm.d) != problem.target)
        return (
            metrics.f1(believed, truth, where=where),
            metrics.auroc(believed, truth, where=where),
        )

    return jax.vmap(one)(games, problems)


def _summary(cases: dict[str, Array]) -> Float[Array, " figures"]:
    first = [
        jnp.nanmean(cases["best"][:, -1]),
        jnp.nanmean(cases["worth"]),
        jnp.nanmean(cases["f1"]),
        jnp.nanmean(cases["auroc"]),
    ]
    return jnp.concatenate([jnp.stack(first), 1 - jnp.nanmean(cases["best"], axis=0)])
