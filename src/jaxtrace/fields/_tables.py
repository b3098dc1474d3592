"""Values at nodes, one table a component."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from jaxtrace._config import as_float
from jaxtrace.fields._field import Time, gather
from jaxtrace.fields._time import Slices

Read: TypeAlias = Callable[[Int[Array, " n"]], Float[Array, " n"]]
ReadAll: TypeAlias = Callable[[Int[Array, " m"]], tuple[Float[Array, "corners m"], ...]]


class Tables(eqx.Module):
    """Values `[slices, nodes]` of each component.

    One table a component, because XLA copies a slice that more than one component is read from.
    """

    parts: tuple[Float[Array, "slices nodes"], ...]

    def __init__(self, data: np.ndarray):
        self.parts = tuple(as_float(data[..., c]) for c in range(data.shape[-1]))

    @property
    def whole(self) -> Float[Array, "slices nodes components"]:
        """All components together, as they were given."""
        return jnp.stack(self.parts, axis=-1)

    def blend(
        self, slices: Slices, t: Time, interpolate: Callable[[Read], Float[Array, " n"]]
    ) -> tuple[Float[Array, " n"], ...]:
        """Every component at time `t`, where `interpolate` does one slice."""
        first, weights = self._rows(*slices.weights(t))
        rows = []
        for table in self.parts:
            values = [interpolate(_reader(table, first + k)) for k in range(len(weights))]
            terms = [value * weight for value, weight in zip(values, weights, strict=True)]
            rows.append(sum(terms[1:], terms[0]))
        return tuple(rows)

    def around(
        self, slices: Slices, t: Float[Array, ""], offsets: Sequence[int]
    ) -> tuple[Int[Array, ""], Sequence[Float[Array, ""]], ReadAll]:
        """The slice at time `t`, the weights of it and the next, and what reads both.

        What reads takes indices of nodes, and gives the values of each component at all `offsets`
        from there, slice by slice. The slice is -1 where it is not in the tables.
        """
        first, given = slices.weights(t)
        row, weights = self._rows(first, given)
        nodes = self.parts[0].shape[1]
        steps = [k * nodes + offset for k in range(len(weights)) for offset in offsets]

        def read(index: Int[Array, " m"]) -> tuple[Float[Array, "corners m"], ...]:
            all_ = (row * nodes + index)[None, :] + np.array(steps, np.int32)[:, None]
            return tuple(gather(table.reshape(-1), all_) for table in self.parts)

        return jnp.where(jnp.isnan(weights[0]), -1, first), weights, read

    def _rows(
        self, first: Int[Array, "*n"], weights: Sequence[Float[Array, "*n"]]
    ) -> tuple[Int[Array, "*n"], Sequence[Float[Array, "*n"]]]:
        """Where in the tables slice `first` is, and the weights from there on."""
        return first, weights


def _reader(table: Float[Array, "slices nodes"], row: Int[Array, "*n"]) -> Read:
    """A function from indices of nodes to values in one slice, or in one slice a particle."""
    if row.ndim == 0:
        # Cut out first: the gathers go into one slice, and XLA folds the cut into them.
        one = lax.dynamic_index_in_dim(table, row, 0, keepdims=False)
        return lambda index: gather(one, index)
    if table.size < 2**31:
        flat, start = table.reshape(-1), row * table.shape[1]
        return lambda index: gather(flat, start + index)
    return lambda index: gather(table, row, index)
