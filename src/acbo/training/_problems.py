"""Problems by difficulty, their data, and what an expert says of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from acbo import exact
from acbo._errors import DataError, OptionError
from acbo._keys import key_and_seed
from acbo.scm import SCM, Family, Samples, standardise
from acbo.scm._random import uniforms
from acbo.training._batch import TrainingBatch, TrainingExample
from acbo.training._posterior import ParentSetPosterior

DIFFICULTIES = {"easy": (3, 5), "medium": (5, 10), "hard": (10, 20)}
_EXACT = 12
FAMILY = Family()


def check_difficulty(difficulty: str) -> tuple[int, int]:
    """The smallest and largest number of variables of a difficulty."""
    if difficulty not in DIFFICULTIES:
        raise OptionError(
            f"difficulty is {difficulty!r}; give one of {', '.join(map(repr, DIFFICULTIES))}"
        )
    return DIFFICULTIES[difficulty]


def generate_scm_for_difficulty(
    difficulty: str,
    *,
    key: PRNGKeyArray | None = None,
    seed: int | None = None,
    family: Family = FAMILY,
) -> SCM:
    """A random causal model: 3-5 variables for `"easy"`, 5-10 for `"medium"`, 10-20 for `"hard"`.

    It is padded to the largest number of its difficulty, so that all models of one have one shape;
    `scm.graph.variables` says which variables exist. Without a `key`, `seed` makes one; without
    either it is a fresh one, which the log `acbo` tells.

    ```python
    from acbo.training import generate_scm_for_difficulty

    scm = generate_scm_for_difficulty("easy", seed=3)
    assert 3 <= scm.graph.variables.sum() <= 5 == scm.d
    ```
    """
    check_difficulty(difficulty)
    if key is None and seed is not None:
        key = jax.random.key(seed)
    key, _ = key_and_seed(key, "generate_scm_for_difficulty")
    return _scm(key, family, difficulty)


@functools.partial(jax.jit, static_argnames=("family", "difficulty"))
def _scm(key: PRNGKeyArray, family: Family, difficulty: str) -> SCM:
    low, high = DIFFICULTIES[difficulty]
    draw, pick = jax.random.split(key)
    (u,) = uniforms(pick, (1,))
    size = low + jnp.floor(u[0] * (high - low + 1)).astype(jnp.int32)
    return family.scm(draw, high, size=size)


def collect_observational_data(
    scm: SCM,
    *,
    n: int = 100,
    key: PRNGKeyArray | None = None,
    interventional: float = 0.0,
) -> Samples:
    """Draw `n` samples of a model, standardised.

    In a share `interventional` of the rows one variable is set; by default nothing is. The same
    `key` gives the same samples; by default it is a fresh one, which the log `acbo` tells.
    """
    if n < 2:
        raise OptionError(f"n is {n}; give 2 or more samples")
    if not 0 <= interventional <= 1:
        raise OptionError(f"interventional is {interventional}; give a share, 0 to 1")
    key, _ = key_and_seed(key, "collect_observational_data")
    return _collect(scm, key, jnp.float32(interventional), n)


@functools.partial(jax.jit, static_argnames="n")
def _collect(scm: SCM, key: PRNGKeyArray, interventional: Float[Array, ""], n: int) -> Samples:
    return draw_samples(scm, key, interventional, n)


def draw_samples(scm: SCM, key: PRNGKeyArray, interventional: Any, n: int) -> Samples:
    """`n` standardised samples, inside a program."""
    choose, noise = jax.random.split(key)
    variables = scm.graph.variables
    intervened, do = FAMILY.interventions(choose, n, variables, interventional)
    values = scm.sample(noise, n, intervened=intervened, do=do)
    return standardise(Samples(values, intervened, jnp.ones(n, bool), variables))


def create_training_batch(
    first: Any,
    samples: Samples | None = None,
    target_variable: Hashable | None = None,
    *,
    max_parent_size: int = 3,
    edge_probability: float | None = None,
    key: PRNGKeyArray | None = None,
) -> TrainingBatch:
    """Examples from tables of samples, with the posterior of an expert for each.

    Call it with

    - `(samples)`: a table, or a list of tables. Every variable is the target once.
    - `(scm, samples, target_variable)`: one example. The expert's accuracy is the probability that
      it gives to the true causes; without a model, that of its likeliest set.
    - `(examples)`: a list of `TrainingExample`s, as they are.

    The expert is the exact posterior of linear-Gaussian models (`acbo.exact.marginals`) for up to
    12 variables. For more, edge probabilities are sampled (`acbo.exact.order_mcmc`, with `key`, by
    default a fresh one), and sets have the product of their edges' chances.

    **Arguments:**

    - `max_parent_size`: the largest set of causes that the expert thinks of.
    - `edge_probability`: how likely an edge is before any data; by default one edge a variable,
      at most one half.

    Variables are called X0, X1, ...

    ```python
    from acbo.training import (
        collect_observational_data, create_training_batch, generate_scm_for_difficulty
    )

    scm = generate_scm_for_difficulty("easy")
    samples = collect_observational_data(scm, interventional=0.5)
    batch = create_training_batch(scm, samples, "X0")
    assert batch.batch_size == 1
    ```
    """
    options = {"max_parent_size": max_parent_size, "edge_probability": edge_probability, "key": key}
    if isinstance(first, SCM):
        if samples is None:
            raise DataError("a model alone has no data: give (scm, samples, target_variable)")
        return TrainingBatch(_examples(samples, first, target_variable, **options))
    if samples is not None or target_variable is not None:
        raise DataError(f"the first argument is a {type(first).__name__}; expected an SCM")
    tables: list[Any] = [first] if isinstance(first, Samples) else list(first)
    if tables and all(isinstance(one, TrainingExample) for one in tables):
        return TrainingBatch(tables)
    strange = [type(one).__name__ for one in tables if not isinstance(one, Samples)]
    if strange:
        raise DataError(f"expected tables of samples or training examples, got {strange[0]}")
    parts = [_examples(one, None, None, **options) for one in tables]
    return TrainingBatch(list(itertools.chain.from_iterable(parts)))


def _examples(
    samples: Samples,
    scm: SCM | None,
    target: Hashable | None,
    *,
    max_parent_size: int,
    edge_probability: float | None,
    key: PRNGKeyArray | None,
) -> list[TrainingExample]:
    d = int(samples.variables.sum())
    names = [f"X{i}" for i in range(d)]
    if target is not None and target not in names:
        raise DataError(f"target_variable is {target!r}; the variables are {', '.join(names)}")
    chances, sets = expert(samples, max_parent_size, edge_probability, key)
    values, intervened, rows, _ = map(np.asarray, samples)
    found = []
    for j, name in enumerate(names):
        if target is not None and name != target:
            continue
        table = np.zeros((int(rows.sum()), d, 3), np.float32)
        table[..., 0], table[..., 1] = values[rows, :d], intervened[rows, :d]
        table[:, j, 2] = 1
        # A set that holds the target, or padding, has no chance at all.
        kept = ~sets[:, j] & ~sets[:, d:].any(axis=1)
        members = [frozenset(names[i] for i in np.flatnonzero(one)) for one in sets[kept]]
        posterior = ParentSetPosterior(name, members, chances[j, kept])
        if scm is None:
            accuracy = max(posterior.probabilities)
        else:
            truth = np.flatnonzero(np.asarray(scm.graph.edges)[:, j])
            accuracy = posterior.probability({names[i] for i in truth})
        found.append(TrainingExample(table, posterior, name, names, accuracy))
    return found


def expert(
    samples: Samples,
    max_parent_size: int,
    edge_probability: float | None,
    key: PRNGKeyArray | None,
) -> tuple[Float[np.ndarray, "d k"], Bool[np.ndarray, "k d"]]:
    """The probability of each set of causes of each variable, and the sets."""
    d = samples.values.shape[1]
    size = int(samples.variables.sum())
    if edge_probability is None:
        edge_probability = min(0.5, 2 / max(size - 1, 1))
    # A row in which everything was set tells nothing: so padding is told to the score.
    intervened = samples.intervened | ~samples.rows[:, None]
    if d <= _EXACT:
        found = exact.marginals(
            samples.values,
            intervened,
            prior="orders",
            edge_probability=jnp.float32(edge_probability),
            max_parents=min(max_parent_size, d - 1),
            variables=samples.variables,
        )
        sets = exact.parent_set_table(d)
        small = sets.sum(axis=1) <= max_parent_size
        return np.asarray(found.parent_sets)[:, small], sets[small]
    edges = exact.order_mcmc(
        samples.values[:, :size],
        intervened[:, :size],
        key=key_and_seed(key, "create_training_batch")[0],
        max_parents=min(max_parent_size, size - 1),
        edge_probability=edge_probability,
    ).edge_probabilities
    sets = np.zeros((0, d), bool)
    for count in range(max_parent_size + 1):
        members = list(itertools.combinations(range(size), count))
        rows = np.zeros((len(members), d), bool)
        rows[
            np.arange(len(members))[:, None], np.array(members, int).reshape(len(members), count)
        ] = True
        sets = np.concatenate([sets, rows])
    chance = np.clip(np.asarray(edges, np.float64), 1e-6, 1 - 1e-6)
    odds = np.log(chance) - np.log1p(-chance)
    np.fill_diagonal(odds, 0.0)
    score = odds.T @ sets[:, :size].T.astype(np.float64)
    return np.exp(score - score.max(axis=1, keepdims=True)), sets
