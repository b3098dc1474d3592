"""Fields larger than memory: a window of time slices on the device, the rest where it is."""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace._config import as_float, float_dtype
from jaxtrace._errors import FieldError, TraceWarning
from jaxtrace.fields._fill import fill_message, unmarked_fill
from jaxtrace.fields._tables import Tables

Prepare = Callable[[np.ndarray, int], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Stream:
    """Values of a field that are read while particles move, in the place of its `data`.

    A tracker keeps `window` slices on the device, and reads those that come next in the background.
    Tracks are bit for bit those of a field that is in memory as a whole. A moment outside the
    window that is loaded (`field.sample` far from the first slices) is NaN.

    **Arguments:**

    - `read`: `read(i)` gives slice `i`, `[*nodes, C]` of a grid, `[P, C]` of a mesh or of scattered
        points. It is called from another thread.
    - `window`: how many slices are on the device at a time. A second window is being filled.

    ```python
    import numpy as np
    import jaxtrace as jt
    from jaxtrace.fields import Stream

    x, times = np.linspace(0.0, 1.0, 9), np.arange(100.0)
    read = lambda i: np.full((9, 9, 2), 1e-3 * i)  # as a file would give it
    field = jt.StructuredField(Stream(read, window=6), (x, x), times)
    tracks = jt.create_tracker(field=field).track_particles([[0.1, 0.1]], (0.0, 20.0), 40)
    assert np.allclose(tracks.positions[-1], 0.1 + 1e-3 * 20**2 / 2, atol=1e-5)
    ```
    """

    read: Callable[[int], Any]
    window: int = 8

    def __post_init__(self) -> None:
        if self.window < 2:
            raise FieldError(f"window={self.window}: expected 2 slices or more")


class Source:
    """The host's side of a window: reads slices, checks them, puts windows together.

    **Arguments:**

    - `stream`: what the user gave.
    - `times`: of all slices, as they were given.
    - `prepare`: turns a slice as it was read, and its number, into `[nodes, C]`.
    - `taps`: how many slices count at one moment.
    """

    def __init__(self, stream: Stream, times: np.ndarray, prepare: Prepare, taps: int):
        self.times = np.asarray(times, np.float64)
        self.taps = min(taps, len(self.times))
        self.window = min(stream.window, len(self.times))
        if self.window < self.taps:
            raise FieldError(
                f"window={stream.window}: interpolation in time needs {self.taps} slices at once"
            )
        self._stream = stream
        self._prepare = prepare
        self._kept: dict[int, np.ndarray] = {}
        self._warned = False
        self._lock = threading.Lock()

    def __identity__(self) -> dict[str, Any]:
        """Times and some slices: to read all of a field larger than memory would take too long."""
        last = len(self.times) - 1
        slices = {"middle": self._slice(last // 2), "last": self._slice(last)}
        return {"times": self.times, "window": self.window, **slices}

    def load(self, first: int) -> list[np.ndarray]:
        """The window that begins with slice `first`: `[window, nodes]` for each component."""
        wanted = range(first, first + self.window)
        with self._lock:
            self._kept = {i: rows for i, rows in self._kept.items() if i in wanted}
            for i in wanted:
                if i not in self._kept:
                    self._kept[i] = self._slice(i)
            parts = len(self._kept[first])
            return [np.stack([self._kept[i][c] for i in wanted]) for c in range(parts)]

    def _slice(self, i: int) -> np.ndarray:
        """Slice `i`, `[C, nodes]`."""
        try:
            values = self._prepare(np.asarray(self._stream.read(i)), i)
        except Exception as error:
            raise FieldError(f"slice {i} of the streamed field cannot be used: {error}") from error
        if not self._warned:
            self._warned = warn_of_fill(values)
        return np.ascontiguousarray(values.T, float_dtype())

    def needed(self, early: np.ndarray, late: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last slice that count between two times, for each pair of times."""
        inner = self.times[1:-1]
        first = np.searchsorted(inner, early, side="right")
        last = np.searchsorted(inner, late, side="right")
        if self.taps == 4:
            first, last = (np.clip(c - 1, 0, len(self.times) - 4) for c in (first, last))
        return first, last + self.taps - 1


def tables_of(
    data: np.ndarray | Stream, times: np.ndarray, time_method: str, prepare: Prepare
) -> Tables:
    """Tables of all slices, `[T, ...]` as they were given, or the first window of a stream.

    `prepare` turns one slice and its number into `[nodes, C]`.
    """
    if isinstance(data, Stream):
        return Window(Source(data, times, prepare, 4 if time_method == "cubic" else 2))
    rows = []
    for i, one in enumerate(data):
        try:
            rows.append(prepare(one, i))
        except FieldError as error:
            raise FieldError(f"slice {i} of the field cannot be used: {error}") from error
    whole = np.stack(rows)
    warn_of_fill(whole)
    return Tables(whole)


def warn_of_fill(values: np.ndarray) -> bool:
    """Say so where numbers look like missing ones; whether they do."""
    found = unmarked_fill(values)
    if found is not None:
        warnings.warn(fill_message(found, "data"), TraceWarning, stacklevel=2)
    return found is not None


class Window(Tables):
    """Tables of some of the slices, the first of which is slice `start`."""

    start: Int[Array, ""]
    source: Source = eqx.field(static=True)

    def __init__(self, source: Source, first: int = 0):
        self.parts = tuple(as_float(part) for part in source.load(first))
        self.start = jnp.int32(first)
        self.source = source

    @property
    def whole(self) -> Float[Array, "slices nodes components"]:
        """A streamed field has no such thing."""
        raise FieldError("the data of a streamed field are not in memory")

    def _rows(
        self, first: Int[Array, "*n"], weights: Sequence[Array]
    ) -> tuple[Int[Array, "*n"], list[Array]]:
        row = first - self.start
        last = self.parts[0].shape[0] - len(weights)
        here = (row >= 0) & (row <= last)
        return jnp.clip(row, 0, last), [jnp.where(here, w, jnp.nan) for w in weights]
