"""Fields on nodes that stay where they are: grids and meshes."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError
from jaxtrace.fields._field import Field, finite
from jaxtrace.fields._stream import Window
from jaxtrace.fields._tables import Tables
from jaxtrace.fields._time import Slices


class NodeField(Field):
    """Values at nodes, in slices.

    `field.data = ...` and `field.times = ...` take new values of the same shape over, checks
    included; nodes cannot be moved. `_data_dev`, `_times_dev` and `_pos_dev` are the same arrays.
    """

    tables: Tables
    slices: Slices

    @property
    @abc.abstractmethod
    def data(self) -> Float[Array, "slices *nodes components"]:
        """The values."""

    @property
    @abc.abstractmethod
    def positions(self) -> Float[Array, "nodes dim"]:
        """Where the nodes are."""

    @property
    def components(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How many numbers there are at a node."""
        return len(self.tables.parts)

    @property
    def origin(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The first time."""
        return self.slices.origin

    @property
    def times(self) -> np.ndarray:
        """The times of the slices."""
        return self.slices.absolute()

    @property
    def time_span(self) -> tuple[float, float] | None:
        """First and last time; `None` for a steady field."""
        return self.slices.span

    def rebase(self, origin: float) -> NodeField:
        """The same field with its clock counting from another time."""
        return eqx.tree_at(lambda f: f.slices, self, self.slices.rebase(origin))

    def later(self, seconds: float) -> NodeField:
        """See `Field.later`."""
        return eqx.tree_at(lambda f: f.slices.origin, self, float(self.origin) + seconds)

    @property
    def _data_dev(self) -> Array:
        return self.data

    @property
    def _pos_dev(self) -> Array:
        return self.positions

    @property
    def _times_dev(self) -> Array:
        return as_float(self.times)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("data", "_data_dev"):
            object.__setattr__(self, "tables", self._tables_of(np.asarray(value)))
        elif name in ("times", "_times_dev"):
            object.__setattr__(self, "slices", self._slices_of(np.asarray(value)))
        elif name in ("positions", "_pos_dev"):
            here = self.positions
            if np.shape(value) != here.shape or not np.allclose(value, here, rtol=1e-5, atol=1e-6):
                raise FieldError(
                    f"the nodes of a {type(self).__name__} cannot be moved; make a new field"
                )
        else:
            super().__setattr__(name, value)

    def _tables_of(self, data: np.ndarray) -> Tables:
        if isinstance(self.tables, Window):
            raise FieldError("the values of a streamed field come from its stream")
        shape = self.data.shape
        if data.shape != shape:
            raise FieldError(f"data has shape {list(data.shape)}; this field has {list(shape)}")
        finite(data, "data")
        return Tables(data.reshape(shape[0], -1, shape[-1]))

    def _slices_of(self, times: np.ndarray) -> Slices:
        if times.shape != (self.slices.count,):
            raise FieldError(
                f"times has shape {list(times.shape)}; this field has {self.slices.count} slices"
            )
        if isinstance(self.tables, Window):
            raise FieldError("the times of a streamed field cannot change")
        return Slices(times, "linear" if self.slices.cubic is None else "cubic")
