"""Where records go: the protocol of a sink, and the one that keeps them in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from worldloom._errors import WorldloomError
from worldloom.loop._records import Column
from worldloom.store import StoreError


class SinkError(WorldloomError, OSError):
    """Records cannot be written to, or read from, where they were said to be."""


@contextlib.contextmanager
def sink_errors(action: str, place: Path) -> Iterator[None]:
    """Turn what a disk or a library says in the block into a `SinkError` that names the place."""
    try:
        yield
    except SinkError:
        raise
    except (OSError, StoreError) as error:
        raise SinkError(f"cannot {action} records in {place}: {error}") from error


@runtime_checkable
class Sink(Protocol):
    """Takes the records of a run, row by row, in order.

    A sink is opened once, given rows chunk by chunk, and closed. After `flush` everything given
    so far survives a kill of the process. In a run of many processes each has a sink and gives
    it its own part of every row. Where a sink says in which `folder` it writes, the run holds that
    folder: a second run that is given it ends at once with an error.
    """

    def open(self, columns: Sequence[Column], rows: Mapping[str, int] | None) -> None:
        """Get ready for `columns`; `rows` of each are there already if a run is resumed."""
        ...

    def write(self, column: Column, start: int, rows: np.ndarray) -> None:
        """Take rows `start` onwards. They must be copied: the array is used again."""
        ...

    def flush(self, rows: Mapping[str, int]) -> None:
        """Make the first `rows` of each column, all written by now, durable."""
        ...

    def close(self, rows: Mapping[str, int]) -> dict[str, Any]:
        """End with so many rows of each column, and return the arrays by column name."""
        ...


class MemorySink:
    """Keep records in memory, as NumPy arrays. Each process keeps its own part."""

    def open(self, columns: Sequence[Column], rows: Mapping[str, int] | None) -> None:
        """Allocate everything at once, so that a run too large for memory fails at its start."""
        if rows is not None:
            raise SinkError(
                "a resumed run has lost the records it kept in memory; "
                "give the run sink=NpySink(...) or sink=ZarrSink(...)"
            )
        self._arrays = {c.name: np.empty((c.rows, *c.local_shape), c.dtype) for c in columns}

    def write(self, column: Column, start: int, rows: np.ndarray) -> None:
        """Copy rows into place."""
        self._arrays[column.name][start : start + len(rows)] = rows

    def flush(self, rows: Mapping[str, int]) -> None:
        """Nothing survives the process."""

    def close(self, rows: Mapping[str, int]) -> dict[str, Any]:
        """The arrays, cut to the rows that were written."""
        return {name: array[: rows[name]] for name, array in self._arrays.items()}
