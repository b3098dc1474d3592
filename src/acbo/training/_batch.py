"""Examples to learn from, one by one and as padded arrays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from acbo._errors import DataError, SizeError
from acbo.training._posterior import ParentSetPosterior
from acbo.training._static import Tables, prepare_static_args, tables


@dataclass(frozen=True)
class TrainingExample:
    """One table of samples, and what an expert says of the causes of its target.

    **Arguments:**

    - `observational_data`: `[N, d, 3]`: value, whether it was set, whether it is the target's.
    - `expert_posterior`: the answer to learn.
    - `target_variable`, `variable_order`: names; the order is that of the columns.
    - `expert_accuracy`: how good the expert is here, 0 to 1.
    """

    observational_data: Float[Array | np.ndarray, "N d 3"]
    expert_posterior: ParentSetPosterior
    target_variable: Hashable
    variable_order: Sequence[Hashable]
    expert_accuracy: float = 1.0

    def __post_init__(self):
        if len(self.variable_order) != self.observational_data.shape[1]:
            raise DataError(
                f"variable_order has {len(self.variable_order)} names; observational_data has "
                f"{self.observational_data.shape[1]} variables"
            )


@dataclass(frozen=True)
class TrainingBatch:
    """Some examples, which may differ in size. At least one."""

    examples: Sequence[TrainingExample]

    def __post_init__(self):
        if not self.examples:
            raise DataError("a batch needs at least one example")
        object.__setattr__(self, "examples", tuple(self.examples))

    @property
    def batch_size(self) -> int:
        """How many examples there are."""
        return len(self.examples)


class TrainingBatchJAX(eqx.Module):
    """A batch as arrays, with its names as static metadata: a pytree.

    Lists and sets of names are made hashable. `tables` is what they stand for, as arrays: a
    training step takes those, so that other names of equal sizes are the same program.

    A program of your own that takes the whole batch is compiled anew for other names.
    """

    observational_data: Float[Array, "B N d 3"]
    expert_probs: Float[Array, "B k"]
    expert_accuracies: Float[Array, " B"]
    tables: Tables
    parent_sets: tuple = eqx.field(static=True)
    variable_orders: tuple = eqx.field(static=True)
    target_variables: tuple = eqx.field(static=True)

    def __init__(
        self,
        observational_data: Any,
        expert_probs: Any,
        expert_accuracies: Any,
        parent_sets: Sequence,
        variable_orders: Sequence,
        target_variables: Sequence,
    ):
        self.observational_data = jnp.asarray(observational_data, jnp.float32)
        self.expert_probs = jnp.asarray(expert_probs, jnp.float32)
        self.expert_accuracies = jnp.asarray(expert_accuracies, jnp.float32)
        names = prepare_static_args(parent_sets, variable_orders, target_variables)
        self.parent_sets, self.variable_orders, self.target_variables = names
        if self.observational_data.ndim != 4 or self.observational_data.shape[3] != 3:
            shape = self.observational_data.shape
            raise DataError(f"observational_data has shape {shape}; expected [B, N, d, 3]")
        batch = self.observational_data.shape[0]
        if batch == 0:
            raise DataError("a batch needs at least one example")
        if not batch == self.expert_probs.shape[0] == len(self.expert_accuracies) == len(names[2]):
            raise DataError(
                f"observational_data has {batch} examples, expert_probs "
                f"{self.expert_probs.shape[0]}, expert_accuracies {len(self.expert_accuracies)}, "
                f"target_variables {len(names[2])}; expected as many of each"
            )
        self.tables = tables(names, self.expert_probs.shape[1], self.observational_data.shape[2])

    @property
    def batch_size(self) -> int:
        """How many examples there are."""
        return self.observational_data.shape[0]

    @property
    def args(self) -> tuple:
        """What `create_jax_surrogate_train_step`'s step takes between `opt_state` and `key`."""
        return (
            self.parent_sets,
            self.variable_orders,
            self.target_variables,
            self.observational_data,
            self.expert_probs,
            self.expert_accuracies,
        )


def convert_to_jax_batch(
    batch: TrainingBatch,
    *,
    samples: int | None = None,
    variables: int | None = None,
    sets: int | None = None,
) -> TrainingBatchJAX:
    """A batch as arrays, padded to its largest example, or to the sizes that are given.

    Give the sizes to keep one compiled program for problems of many sizes. Rows that pad have no
    target flag, variables that pad no name, sets that pad no probability: none changes the answer.

    ```python
    import jax
    import numpy as np
    from acbo.training import (
        ParentSetPosterior, TrainingBatch, TrainingExample, convert_to_jax_batch
    )

    posterior = ParentSetPosterior("Y", [set(), {"X"}], [0.2, 0.8])
    x = np.zeros((10, 2, 3), np.float32)
    x[:, 1, 2] = 1
    batch = TrainingBatch([TrainingExample(x, posterior, "Y", ["X", "Y"])])
    padded = convert_to_jax_batch(batch, samples=16, variables=3, sets=4)
    assert padded.observational_data.shape == (1, 16, 3, 3)
    assert padded.expert_probs.shape == (1, 4)
    ```
    """
    if not isinstance(batch, TrainingBatch):
        batch = TrainingBatch(batch)
    examples = batch.examples
    n, d = (
        _size(name, given, max(one.observational_data.shape[axis] for one in examples))
        for axis, (name, given) in enumerate([("samples", samples), ("variables", variables)])
    )
    k = _size("sets", sets, max(len(one.expert_posterior) for one in examples))
    data = np.zeros((len(examples), n, d, 3), np.float32)
    probs = np.zeros((len(examples), k), np.float32)
    for b, example in enumerate(examples):
        table = np.array(example.observational_data, np.float32)
        if not (table[..., 2] > 0.5).any():
            # Rows of padding are told by their lack of a flag.
            target = list(example.variable_order).index(example.target_variable)
            table[:, target, 2] = 1
        rows, columns, _ = table.shape
        data[b, :rows, :columns] = table
        probs[b, : len(example.expert_posterior)] = example.expert_posterior.probabilities
    return TrainingBatchJAX(
        data,
        probs,
        [example.expert_accuracy for example in examples],
        [example.expert_posterior.parent_sets for example in examples],
        [example.variable_order for example in examples],
        [example.target_variable for example in examples],
    )


def _size(name: str, given: int | None, largest: int) -> int:
    if given is None:
        return largest
    if given < largest:
        raise SizeError(f"{name} is {given}; the largest example has {largest}")
    return given
