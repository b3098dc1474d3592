"""The record that every source of data becomes, and what it must satisfy."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
from jaxtyping import Bool, Float

from acbo._errors import AcboWarning, DataError

# A column whose spread is a smaller part of its size than this loses digits in float32.
SMALLEST_SPREAD = 1e-5


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Samples of a system: names of its variables, their values, and what was set from outside.

    `read_data` makes one, and checks it. The arrays cannot be written to.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "n d"]
    """float32, one sample a row."""
    intervened: Bool[np.ndarray, "n d"]
    """True where that variable of that row was set from outside."""

    def __repr__(self) -> str:
        n, d = self.values.shape
        rows = int(self.intervened.any(1).sum())
        return f"Dataset({n} samples of {d} variables, {rows} samples under intervention)"

    def index(self, name: str) -> int:
        """The column of a variable."""
        if name not in self.names:
            raise DataError(f"no variable is called {name!r}; there are {', '.join(self.names)}")
        return self.names.index(name)

    def standardised(self) -> Dataset:
        """The same with every column of mean 0 and variance 1, over all its samples."""
        values = self.values.astype(np.float64)
        values = (values - values.mean(0)) / values.std(0)
        return dataclasses.replace(self, values=frozen(values.astype(np.float32)))


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, closed to writing."""
    array.flags.writeable = False
    return array


def check_names(names: tuple[str, ...]) -> None:
    """At least two variables, and no name twice."""
    if not names:
        raise DataError("source has no columns")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"source has more than one column called {twice[0]!r}; rename one")
    if len(names) == 1:
        raise DataError(f"source has one variable, {names[0]!r}; a causal graph needs at least two")


def make(
    names: tuple[str, ...], values: Float[np.ndarray, "n d"], intervened: Bool[np.ndarray, "n d"]
) -> Dataset:
    """A checked data set. `values` is float64."""
    n, d = values.shape
    if n == 0:
        raise DataError("source has no rows")
    for j, name in enumerate(names):
        _check_column(name, values[:, j])
    if n < d:
        warnings.warn(
            f"source has {n} samples of {d} variables: fewer samples than variables, so answers "
            "lean on what is believed before any data; `discover` says what that is",
            AcboWarning,
            stacklevel=3,
        )
    for name in np.array(names)[intervened.all(0)]:
        warnings.warn(
            f"column {str(name)!r} was set from outside in every row: its effects can be learned, "
            "its causes cannot",
            AcboWarning,
            stacklevel=3,
        )
    return Dataset(names, frozen(values.astype(np.float32)), frozen(intervened.copy()))


def checked(dataset: Dataset) -> Dataset:
    """The same data set, if its columns are such that `read_data` would have made it."""
    for name, column in zip(dataset.names, dataset.values.T, strict=True):
        _check_column(name, column.astype(np.float64))
    return dataset


def _check_column(name: str, column: Float[np.ndarray, " n"]) -> None:
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise DataError(
            f"column {name!r} has {len(bad)} values that are not finite, the first "
            f"({column[bad[0]]}) in row {bad[0]} (counted from 0); drop or fill those rows"
        )
    largest = np.abs(column).max()
    if largest > np.finfo(np.float32).max:
        raise DataError(f"column {name!r} has values up to {largest:g}, too large for float32")
    if column.min() == column.max():
        raise DataError(
            f"column {name!r} is {column[0]:g} in every row: a constant has no causes or effects "
            "that data could show; drop it"
        )
    if column.std() < SMALLEST_SPREAD * largest:
        raise DataError(
            f"column {name!r} varies by {column.std():g} around {column.mean():g}, too little for "
            "float32; subtract its mean first"
        )
