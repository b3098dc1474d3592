"""A posterior over the sets of causes of one target, with names."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acbo._errors import DataError, OptionError

Name = Hashable


@dataclass(frozen=True)
class ParentSetPosterior:
    """Probabilities of sets of causes of `target_variable`. They are normalised on the way in.

    **Arguments:**

    - `target_variable`: whose causes these are.
    - `parent_sets`: sets of names, each once.
    - `probabilities`: one for each set; not negative, not all 0.

    ```python
    from acbo.training import ParentSetPosterior, get_most_likely_parents

    posterior = ParentSetPosterior("Y", [set(), {"X"}], [1.0, 3.0])
    assert posterior.probability({"X"}) == 0.75
    assert get_most_likely_parents(posterior) == [frozenset({"X"})]
    ```
    """

    target_variable: Name
    parent_sets: tuple[frozenset[Name], ...]
    probabilities: tuple[float, ...]

    def __init__(
        self,
        target_variable: Name,
        parent_sets: Sequence[Collection[Name]],
        probabilities: Any,
    ):
        sets = tuple(frozenset(one) for one in parent_sets)
        chances = np.asarray(probabilities, np.float64)
        if not sets or chances.shape != (len(sets),):
            raise DataError(
                f"{len(sets)} parent sets and probabilities of shape {chances.shape}; expected at "
                "least one set, and one probability for each"
            )
        if len(set(sets)) != len(sets):
            raise DataError("parent_sets has a set twice; add their probabilities first")
        if not np.isfinite(chances).all() or (chances < 0).any() or chances.sum() <= 0:
            raise DataError("probabilities must be finite, not negative, and not all 0")
        if any(target_variable in one for one in sets):
            raise DataError(f"{target_variable!r} is the target, and cannot be a cause of itself")
        object.__setattr__(self, "target_variable", target_variable)
        object.__setattr__(self, "parent_sets", sets)
        object.__setattr__(self, "probabilities", tuple((chances / chances.sum()).tolist()))

    def __len__(self) -> int:
        return len(self.parent_sets)

    @property
    def parent_set_probs(self) -> Mapping[frozenset[Name], float]:
        """The probability of each set."""
        return dict(zip(self.parent_sets, self.probabilities, strict=True))

    def probability(self, parent_set: Collection[Name]) -> float:
        """The probability of one set; 0 if the posterior does not have it."""
        return self.parent_set_probs.get(frozenset(parent_set), 0.0)


def get_most_likely_parents(posterior: ParentSetPosterior, k: int = 1) -> list[frozenset[Name]]:
    """The `k` likeliest sets, likeliest first. Of equals, the first in the posterior."""
    if k < 1:
        raise OptionError(f"k is {k}; give 1 or more")
    order = sorted(range(len(posterior)), key=lambda i: -posterior.probabilities[i])
    return [posterior.parent_sets[i] for i in order[:k]]


def get_marginal_parent_probabilities(
    posterior: ParentSetPosterior, all_variables: Sequence[Name] | None = None
) -> dict[Name, float]:
    """The probability that each variable is a cause of the target.

    `all_variables` are those to tell of; by default those that are in any set. The target is none.
    """
    if all_variables is None:
        all_variables = sorted(frozenset().union(*posterior.parent_sets), key=str)
    chances = posterior.parent_set_probs.items()
    return {
        name: min(1.0, math.fsum(chance for one, chance in chances if name in one))
        for name in all_variables
        if name != posterior.target_variable
    }


def compute_posterior_entropy(posterior: ParentSetPosterior) -> float:
    """How unsure a posterior is, in nats: 0 for one certain set."""
    return -math.fsum(p * math.log(p) for p in posterior.probabilities if p > 0) + 0.0


def compare_posteriors(first: ParentSetPosterior, second: ParentSetPosterior) -> dict[str, float]:
    """How far two posteriors of the same target are apart.

    - `kl_divergence`: from the first to the second, in nats. Infinite where the first has a set
      that is impossible in the second.
    - `total_variation`: half the sum of differences, 0 to 1.
    - `jensen_shannon`: a symmetric divergence, 0 to log 2, always finite.
    - `same_most_likely`: 1 if both have the same likeliest set, else 0.
    """
    if first.target_variable != second.target_variable:
        raise DataError(
            f"posteriors of {first.target_variable!r} and {second.target_variable!r}: compare two "
            "of the same target"
        )
    sets = sorted({*first.parent_sets, *second.parent_sets}, key=lambda one: sorted(map(str, one)))
    pairs = [(first.probability(one), second.probability(one)) for one in sets]
    middle = [((p + q) / 2, p, q) for p, q in pairs]
    apart = math.fsum(_part(p, m) + _part(q, m) for m, p, q in middle) / 2
    same = get_most_likely_parents(first) == get_most_likely_parents(second)
    return {
        "kl_divergence": max(0.0, math.fsum(_part(p, q) for p, q in pairs)),
        "total_variation": math.fsum(abs(p - q) for p, q in pairs) / 2,
        "jensen_shannon": max(0.0, apart),
        "same_most_likely": float(same),
    }


def _part(p: float, q: float) -> float:
    if p == 0:
        return 0.0
    return p * math.log(p / q) if q > 0 else math.inf
