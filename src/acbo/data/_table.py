"""Named columns from files, data frames and arrays."""

from __future__ import annotations

import codecs
import csv
import dataclasses
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from acbo._errors import DataError
from worldloom._extras import import_extra
from worldloom._reading import reading
from worldloom._way import way


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns of any type, by name. `named` is false where the names were made up."""

    names: tuple[str, ...]
    columns: tuple[np.ndarray, ...]
    named: bool = True

    def without(self, name: str) -> Table:
        """All columns but one."""
        kept = [j for j, other in enumerate(self.names) if other != name]
        return Table(
            tuple(self.names[j] for j in kept), tuple(self.columns[j] for j in kept), self.named
        )

    def numbers(self, argument: str) -> Float[np.ndarray, "n d"]:
        """The columns side by side, as float64."""
        parts = [
            _numbers(argument, name, column)
            for name, column in zip(self.names, self.columns, strict=True)
        ]
        return np.stack(parts, axis=1) if parts else np.zeros((0, 0))


def made_up_names(d: int) -> tuple[str, ...]:
    """`x0`, `x1`, ..."""
    return tuple(f"x{j}" for j in range(d))


def is_frame(source: Any) -> bool:
    """Whether this is a pandas data frame. Only who has imported pandas can have one."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame)


def read_table(source: Any, argument: str, encoding: str = "utf-8") -> Table:
    """The columns of a file, a data frame or an array; `encoding` is that of a text file."""
    if isinstance(source, str | Path):
        return _file(Path(source), argument, encoding)
    if is_frame(source):
        names = tuple(str(name) for name in source.columns)
        return Table(names, tuple(source.iloc[:, j].to_numpy() for j in range(len(names))))
    array = np.asarray(source)
    if array.ndim != 2:
        raise DataError(
            f"{argument} has the shape {array.shape}; give [samples, variables], a data frame, or "
            "the path of a CSV or Parquet file"
        )
    return Table(made_up_names(array.shape[1]), tuple(array.T), named=False)


def _file(path: Path, argument: str, encoding: str) -> Table:
    if not path.is_file():
        raise DataError(f"{argument} is {str(path)!r}: there is no such file")
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        parquet = import_extra("pyarrow.parquet", extra="causal", purpose="reading Parquet files")
        with reading(path, "a Parquet file", DataError):
            table = parquet.read_table(path)
            columns = tuple(column.to_numpy(zero_copy_only=False) for column in table.itercolumns())
            return Table(tuple(table.column_names), columns)
    if suffix in (".csv", ".tsv", ".txt"):
        return _csv(path, argument, "\t" if suffix == ".tsv" else ",", encoding)
    raise DataError(f"{argument} is {path.name!r}; files end in .csv, .tsv or .parquet")


def _csv(path: Path, argument: str, delimiter: str, encoding: str) -> Table:
    text = _decoded(path, argument, encoding)
    with reading(path, "a table of text", DataError):
        lines = io.StringIO(text, newline="")
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    if not rows:
        raise DataError(f"{argument} is {path.name!r}, which is empty")
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            raise DataError(
                f"{argument} is {path.name!r}: line {number + 1} has {len(row)} values, the first "
                f"has {width}"
            )
    named = not all(map(_is_number, rows[0]))
    names = tuple(name.strip() for name in rows[0]) if named else made_up_names(width)
    body = rows[1:] if named else rows
    columns = tuple(np.array([row[j] for row in body], object) for j in range(width))
    return Table(names, columns, named)


def _decoded(path: Path, argument: str, encoding: str) -> str:
    """The text of a file."""
    with reading(path, "a file", DataError):
        content = path.read_bytes()
    try:
        known = codecs.lookup(encoding).name
        return content.decode("utf-8-sig" if known == "utf-8" else known)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        advice = way(
            "; name its encoding, as in encoding='latin-1' or encoding='utf-16'",
            "; name its encoding, as in --encoding latin-1 or --encoding utf-16",
        )
        raise DataError(
            f"{argument} is {path.name!r}: byte 0x{content[error.start]:02x} in line {line} is no "
            f"text in {encoding}{advice}"
        ) from error
    except (LookupError, UnicodeError) as error:
        raise DataError(f"encoding {encoding!r} is not one that Python knows") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(argument: str, name: str, column: np.ndarray) -> Float[np.ndarray, " n"]:
    if column.dtype.kind in "buif":
        return column.astype(np.float64)
    if column.dtype.kind not in "OUST":
        raise DataError(f"{argument}: column {name!r} holds {column.dtype}, which are not numbers")
    numbers = np.empty(len(column))
    for row, cell in enumerate(column):
        try:
            # Empty cells and None are missing values, which are refused later, by row.
            numbers[row] = np.nan if cell is None or cell == "" else float(cell)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"{argument}: column {name!r} holds {cell!r} in row {row} (counted from 0), which "
                "is not a number; encode or drop the column"
            ) from None
    return numbers
