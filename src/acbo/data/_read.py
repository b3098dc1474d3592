"""From a user's data to a checked data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from acbo._errors import DataError
from acbo.data._dataset import Dataset, check_names, make
from acbo.data._table import Table, is_frame, read_table

SEPARATOR = ";"


def read_data(
    source: Any,
    interventions: Any = None,
    *,
    names: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """Samples from a file, a data frame or an array, checked.

    **Arguments:**

    - `source`: the path of a `.csv`, `.tsv` or `.parquet` file, a pandas data frame, or an array
      `[samples, variables]`. A CSV file begins with the names; a first line of numbers is data,
      and the variables are then called `x0`, `x1`, ... as those of an array.
    - `interventions`: what was set from outside. One of

        - `None`: nothing;
        - an array `[samples, variables]` of booleans, or of 0 and 1;
        - a data frame or a file of 0 and 1: its columns are matched by name, and variables without
          a column were never set;
        - the name of a column of `source` that says, row by row, which variable was set. Empty
          means none, and `a;b` means two. That column is no variable then;
        - a sequence of such entries, one a row.

    - `names`: what to call the variables of an array, or of a file without names.
    - `encoding`: of text files, such as `"latin-1"`.

    Refused, with the column and the row: missing and infinite values, text, constant columns,
    columns whose spread float32 cannot hold, equal names, a single variable, no rows, masks of
    another shape, unknown names. Accepted with an `AcboWarning`: fewer samples than variables, and
    variables that were set in every row.

    ```python
    from acbo.data import read_data

    data = read_data([[0.1, 2.0], [0.7, 1.0], [3.0, 2.2]], ["", "", "x0"])
    assert data.names == ("x0", "x1")
    assert data.intervened.tolist() == [[False, False], [False, False], [True, False]]
    ```
    """
    table = read_table(source, "source", encoding)
    if names is not None:
        table = _renamed(table, tuple(names))
    column = None
    if isinstance(interventions, str) and interventions in table.names:
        # Twice the same name would make the choice of a column a matter of luck.
        if table.names.count(interventions) > 1:
            raise DataError(f"source has more than one column called {interventions!r}; rename one")
        column = table.columns[table.names.index(interventions)]
        table = table.without(interventions)
    check_names(table.names)
    values = table.numbers("source")
    shape = values.shape
    if column is not None:
        mask = _from_entries(column, table.names, shape)
    else:
        mask = _mask(interventions, table, shape, encoding)
    return make(table.names, values, mask)


def _renamed(table: Table, names: tuple[str, ...]) -> Table:
    if table.named:
        raise DataError("names is given, and source has names of its own; rename its columns")
    if len(names) != len(table.names):
        raise DataError(f"names has {len(names)} entries for {len(table.names)} columns")
    return Table(names, table.columns)


def _mask(
    interventions: Any, table: Table, shape: tuple[int, int], encoding: str
) -> Bool[np.ndarray, "n d"]:
    if interventions is None:
        return np.zeros(shape, bool)
    if isinstance(interventions, str) and Path(interventions).suffix == "":
        raise DataError(
            f"interventions is {interventions!r}, which is neither a column of source nor a file; "
            f"the columns are {', '.join(table.names)}"
        )
    if isinstance(interventions, str | Path) or is_frame(interventions):
        return _matched(read_table(interventions, "interventions", encoding), table.names, shape)
    array = np.asarray(interventions, dtype=None if _rectangular(interventions) else object)
    if array.ndim == 1 and array.dtype.kind in "OUST":
        return _from_entries(array, table.names, shape)
    if array.shape != shape:
        raise DataError(
            f"interventions has the shape {array.shape}, source has {shape}; give one entry for "
            "each value"
        )
    return _booleans(array, table.names)


def _rectangular(entries: Any) -> bool:
    """False for a list in which entries are missing: NumPy would turn `None` into text."""
    return not (isinstance(entries, list | tuple) and any(entry is None for entry in entries))


def _matched(given: Table, names: tuple[str, ...], shape: tuple[int, int]) -> np.ndarray:
    numbers = given.numbers("interventions")
    if len(numbers) != shape[0]:
        raise DataError(f"interventions has {len(numbers)} rows, source has {shape[0]}")
    if not given.named:
        if numbers.shape != shape:
            raise DataError(f"interventions has the shape {numbers.shape}, source has {shape}")
        return _booleans(numbers, names)
    unknown = [name for name in given.names if name not in names]
    if unknown:
        raise DataError(
            f"interventions has a column {unknown[0]!r}, source has none of that name; it has "
            f"{', '.join(names)}"
        )
    mask = np.zeros(shape, bool)
    for name, column in zip(given.names, _booleans(numbers, given.names).T, strict=True):
        mask[:, names.index(name)] |= column
    return mask


def _booleans(array: np.ndarray, names: tuple[str, ...]) -> Bool[np.ndarray, "n d"]:
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "uif":
        raise DataError(f"interventions holds {array.dtype}; give booleans, or 0 and 1")
    bad = np.argwhere((array != 0) & (array != 1))
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"interventions holds {array[row, column]} for {names[column]!r} in row {row} (counted "
            "from 0); give booleans, or 0 and 1: the value that was set belongs into source"
        )
    return array == 1


def _from_entries(
    entries: np.ndarray, names: tuple[str, ...], shape: tuple[int, int]
) -> Bool[np.ndarray, "n d"]:
    if len(entries) != shape[0]:
        raise DataError(f"interventions has {len(entries)} entries, source has {shape[0]} rows")
    mask = np.zeros(shape, bool)
    for row, entry in enumerate(entries):
        # Data frames and Parquet files have None or NaN where a cell is empty.
        if entry is None or entry != entry:
            continue
        for name in str(entry).split(SEPARATOR):
            name = name.strip()
            if name and name not in names:
                raise DataError(
                    f"interventions names {name!r} in row {row} (counted from 0); the variables "
                    f"are {', '.join(names)}"
                )
            if name:
                mask[row, names.index(name)] = True
    return mask
