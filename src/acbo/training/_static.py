"""Names and sets of names: as hashable values, and as the arrays that a program computes with."""

from __future__ import annotations

import functools
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from acbo._errors import DataError

Name = Hashable
NameSet = Collection[Name]
StaticArgs = tuple[
    tuple[tuple[tuple[Name, ...], ...], ...], tuple[tuple[Name, ...], ...], tuple[Name, ...]
]


def prepare_static_args(
    parent_sets: Sequence[Sequence[NameSet]],
    variable_orders: Sequence[Sequence[Name]],
    target_variables: Sequence[Name],
) -> StaticArgs:
    """Lists and sets of names as nested tuples, which are hashable.

    The steps of this module do this by themselves: they take lists and sets as they are.

    ```python
    from acbo.training import prepare_static_args, restore_static_args

    names = [[frozenset(), frozenset({"X"})]], [["X", "Y"]], ["Y"]
    assert restore_static_args(prepare_static_args(*names)) == names
    ```
    """
    return (
        tuple(tuple(_ordered(one) for one in sets) for sets in parent_sets),
        tuple(tuple(order) for order in variable_orders),
        tuple(target_variables),
    )


def restore_static_args(
    hashable_args: StaticArgs,
) -> tuple[list[list[frozenset[Name]]], list[list[Name]], list[Name]]:
    """The inverse of `prepare_static_args`: lists, and frozensets in them."""
    parent_sets, variable_orders, target_variables = hashable_args
    return (
        [[frozenset(one) for one in sets] for sets in parent_sets],
        [list(order) for order in variable_orders],
        list(target_variables),
    )


def _ordered(names: NameSet) -> tuple[Name, ...]:
    return tuple(sorted(names, key=lambda name: (type(name).__name__, name)))


class Tables(NamedTuple):
    """What names stand for, as arrays: data of a program, never part of it.

    **Attributes:**

    - `sets`: which variables are in which set.
    - `real`: false for sets that only pad.
    - `targets`: the place of the target among the variables.
    - `variables`: false for variables that only pad.
    """

    sets: Bool[Array, "*batch k d"]
    real: Bool[Array, "*batch k"]
    targets: Int[Array, "*batch"]
    variables: Bool[Array, "*batch d"]


@functools.lru_cache(maxsize=64)
def tables(names: StaticArgs, k: int, d: int) -> Tables:
    """The arrays for a batch of names, padded to `k` sets and `d` variables."""
    parent_sets, orders, targets = names
    if not len(parent_sets) == len(orders) == len(targets):
        raise DataError(
            f"{len(parent_sets)} lists of parent sets, {len(orders)} variable orders and "
            f"{len(targets)} targets; expected one of each for every example"
        )
    batch = len(targets)
    members = np.zeros((batch, k, d), bool)
    real = np.zeros((batch, k), bool)
    places = np.zeros(batch, np.int32)
    variables = np.zeros((batch, d), bool)
    for b, (sets, order, target) in enumerate(zip(parent_sets, orders, targets, strict=True)):
        if len(order) > d or len(sets) > k:
            raise DataError(
                f"example {b} has {len(order)} variables and {len(sets)} parent sets; its arrays "
                f"hold {d} variables and {k} probabilities"
            )
        variables[b, : len(order)] = True
        real[b, : len(sets)] = True
        places[b] = place_of(target, order)
        known = {name: i for i, name in enumerate(order)}
        for row, names_in_set in enumerate(sets):
            for name in names_in_set:
                place = known.get(name)
                members[b, row, place_of(name, order) if place is None else place] = True
    with jax.ensure_compile_time_eval():
        return Tables(*map(jnp.asarray, (members, real, places, variables)))


def place_of(name: Name, order: Sequence[Name]) -> int:
    """Where a variable stands in an order. It is a name of the order, or a number."""
    if name in order:
        return order.index(name)
    if isinstance(name, int | np.integer) and 0 <= name < len(order):
        return int(name)
    raise DataError(f"{name!r} is no variable; the variables are {', '.join(map(str, order))}")
