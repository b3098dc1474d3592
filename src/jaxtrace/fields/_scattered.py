"""Fields on scattered points."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace._config import as_float
from jaxtrace._errors import FieldError
from jaxtrace.fields._bins import MOST_ENTRIES, Bins, bin_shape
from jaxtrace.fields._field import (
    Field,
    Hint,
    Sample,
    Time,
    apart,
    apply_outside,
    check_outside,
    finite,
    gather,
)
from jaxtrace.fields._frame import Frame
from jaxtrace.fields._stream import Stream, warn_of_fill
from jaxtrace.fields._structured import _times
from jaxtrace.fields._tables import Tables
from jaxtrace.fields._time import Slices

_SHOWN = {
    "data": "data",
    "_data_dev": "data",
    "positions": "positions",
    "_pos_dev": "positions",
    "times": "times",
    "_times_dev": "times",
}


class TimeSeriesField(Field):
    """A field on points without a mesh: the value of the nearest point, or a mean of the nearest.

    The nearest points are found through a hash of bins, exactly. Where there is a mesh, use
    [`jaxtrace.TetField`][]: it is continuous, and exact for linear fields.

    Assigning to `data`, `positions` or `times` takes the new values over, checks included; nothing
    else about a field can be changed. `_data_dev`, `_pos_dev` and `_times_dev` are the same arrays.

    **Arguments:**

    - `data`: `[T, P, C]`, values at points; `[P, C]` for a steady field.
    - `positions`: `[P, 2]` or `[P, 3]`.
    - `times`: `[T]`, increasing. One slice needs none: it is a steady flow.
    - `method`: `"nearest"`, or `"idw"`: the mean of the `neighbours` nearest points, weighted by
        distance to the power `-power`.
    - `max_distance`: a place with no point within this distance is outside. Without it, a place
        outside the box around the points is.
    - `time_method`, `outside`, `frame`: as in [`jaxtrace.StructuredField`][].

    ```python
    import numpy as np
    import jaxtrace as jt

    positions = np.random.default_rng(0).random((500, 3))
    field = jt.TimeSeriesField(data=positions[None], positions=positions, times=[0.0])
    place = positions[7] + 1e-5
    assert np.allclose(field.sample([place], t=0.0), [positions[7]])
    ```
    """

    _tables: Tables
    _positions: Float[Array, "points dim"]
    _bins: Bins
    _slices: Slices
    _low: Float[Array, " dim"]
    _high: Float[Array, " dim"]
    _reach: Float[Array, ""] | None
    _power: Float[Array, ""]
    method: str = eqx.field(static=True)
    neighbours: int = eqx.field(static=True)
    outside: str = eqx.field(static=True)
    time_method: str = eqx.field(static=True)

    def __init__(
        self,
        data: Any,
        positions: Any,
        times: Any = None,
        *,
        method: str = "nearest",
        neighbours: int = 8,
        power: float | int = 2.0,
        max_distance: float | int | None = None,
        time_method: str = "linear",
        outside: str = "status",
        frame: Frame | None = None,
    ):
        check_outside(outside)
        if method not in ("nearest", "idw"):
            raise FieldError(f"method={method!r}: expected 'nearest' or 'idw'")
        if neighbours < 1:
            raise FieldError(f"neighbours={neighbours}: expected 1 or more")
        if max_distance is not None and not max_distance > 0:
            raise FieldError(f"max_distance={max_distance}: expected a positive distance")
        self.method = method
        self.neighbours = 1 if method == "nearest" else neighbours
        self.outside = outside
        self.frame = frame or Frame()
        self.time_method = time_method
        self._power = as_float(power)
        self._reach = None if max_distance is None else as_float(max_distance)
        self._fill(data, positions, times)

    def _fill(self, data: Any, positions: Any, times: Any) -> None:
        """Check the three arrays, and make what depends on them."""
        if isinstance(data, Stream):
            raise FieldError("scattered points cannot be streamed; a grid or a mesh can")
        data, positions = np.asarray(data), np.asarray(positions)
        if positions.ndim != 2 or positions.shape[1] not in (2, 3) or len(positions) == 0:
            raise FieldError(
                f"positions has shape {list(positions.shape)}; expected [P, 2] or [P, 3]"
            )
        finite(positions, "positions")
        data = data[None] if data.ndim == 2 else data
        if data.ndim != 3 or data.shape[1] != len(positions):
            raise FieldError(
                f"data has shape {list(data.shape)}; expected [T, P, C] with {len(positions)} "
                "points"
            )
        if len(positions) < self.neighbours:
            raise FieldError(
                f"neighbours={self.neighbours}, but there are only {len(positions)} points"
            )
        finite(data, "data")
        warn_of_fill(data)
        self._slices = Slices(_times(times, len(data)), self.time_method)
        self._tables = Tables(data)
        self._positions = as_float(positions)
        self._low = as_float(positions.min(axis=0))
        self._high = as_float(positions.max(axis=0))
        reach = None if self._reach is None else float(self._reach)
        self._bins = _nearest_bins(positions.astype(np.float64), self.neighbours, reach)

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(self, "_bins"):
            object.__setattr__(self, name, value)
            return
        if name not in _SHOWN:
            raise AttributeError(
                f"a field is immutable but for data, positions and times; {name!r} is not"
            )
        parts: dict[str, Any] = {
            "data": self.data,
            "positions": self.positions,
            "times": self.times,
        }
        parts[_SHOWN[name]] = value
        fresh = object.__new__(type(self))
        for part in ("method", "neighbours", "outside", "time_method", "frame", "_power", "_reach"):
            object.__setattr__(fresh, part, getattr(self, part))
        fresh._fill(parts["data"], parts["positions"], parts["times"])
        for part, new in vars(fresh).items():
            object.__setattr__(self, part, new)

    @property
    def data(self) -> Float[Array, "slices points components"]:
        """The values, on the device."""
        return self._tables.whole

    @property
    def positions(self) -> Float[Array, "points dim"]:
        """The points, on the device."""
        return self._positions

    @property
    def times(self) -> np.ndarray:
        """The times of the slices."""
        return self._slices.absolute()

    @property
    def _data_dev(self) -> Array:
        return self._tables.whole

    @property
    def _pos_dev(self) -> Array:
        return self._positions

    @property
    def _times_dev(self) -> Array:
        return as_float(self.times)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """2 or 3."""
        return self._positions.shape[1]

    @property
    def components(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How many numbers there are at a point."""
        return len(self._tables.parts)

    @property
    def origin(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The first time."""
        return self._slices.origin

    @property
    def time_span(self) -> tuple[float, float] | None:
        """First and last time; `None` for a steady field."""
        return self._slices.span

    @property
    def bounds(self) -> np.ndarray:
        """`[2, dim]`, the corners of the box around the points."""
        return np.stack([self._low, self._high])

    def rebase(self, origin: float) -> TimeSeriesField:
        """The same field with its clock counting from another time."""
        return eqx.tree_at(lambda f: f._slices, self, self._slices.rebase(origin))

    def later(self, seconds: float) -> TimeSeriesField:
        """See `Field.later`."""
        return eqx.tree_at(lambda f: f._slices.origin, self, float(self.origin) + seconds)

    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """See `Field.evaluate`."""
        inside = jnp.ones(x.shape[1], bool)
        places = []
        for i in range(self.dim):
            slack = 1e-6 * (self._high[i] - self._low[i])
            inside = inside & (x[i] >= self._low[i] - slack) & (x[i] <= self._high[i] + slack)
            places.append(jnp.clip(x[i], self._low[i], self._high[i]))
        x = jnp.stack(places)
        nearest, distance = self._nearest(lax.stop_gradient(x))
        if self._reach is not None:
            inside = inside & (distance[0] <= self._reach * self._reach)
        if self.method == "nearest":
            parts = [jnp.ones_like(x[0])]
        else:
            parts = self._inverse_distances(x, nearest)

        def interpolate(read):
            terms = [read(nearest[j]) * part for j, part in enumerate(parts)]
            return sum(terms[1:], terms[0])

        value = apart(active, lambda: self._tables.blend(self._slices, t, interpolate), x[0])
        value, status = apply_outside(value, inside, self.outside)
        return Sample(value, status, None)

    def _inverse_distances(self, x: Array, nearest: Int[Array, "k n"]) -> list[Array]:
        """Weights that add up to one, differentiable in `x`."""
        size = self._high - self._low
        # Far below any distance between points, so that a point itself counts alone.
        tiny = 1e-12 * jnp.sum(size * size)
        parts = []
        for j in range(self.neighbours):
            d2 = _distance(self._positions, nearest[j], x)
            parts.append((d2 + tiny) ** (-0.5 * self._power))
        whole = sum(parts[1:], parts[0])
        return [part / whole for part in parts]

    def _nearest(self, x: Float[Array, "dim n"]) -> tuple[Int[Array, "k n"], Float[Array, "k n"]]:
        """The nearest points, nearest first, and their squared distances.

        The list of a bin begins with the points nearest to its centre. Once those are further
        than the best found, plus the place's own distance from the centre, nothing better follows.
        """
        start, count, centre = self._bins.find(x)
        own = jnp.sqrt(sum((x[i] - c) ** 2 for i, c in enumerate(centre)))

        def look(loop):
            j, looking, best, index = loop
            p = gather(self._bins.entries, start + jnp.minimum(j, jnp.maximum(count - 1, 0)))
            d2 = jnp.where(looking, _distance(self._positions, p, x), jnp.inf)
            rows, indices = [], []
            further, candidate = d2, p
            for q in range(self.neighbours):
                closer = further < best[q]
                rows.append(jnp.where(closer, further, best[q]))
                indices.append(jnp.where(closer, candidate, index[q]))
                further = jnp.where(closer, best[q], further)
                candidate = jnp.where(closer, index[q], candidate)
            from_centre = jnp.sqrt(_distance(self._positions, p, jnp.stack(centre)))
            hopeful = from_centre - own <= jnp.sqrt(rows[-1])
            return j + 1, looking & (j + 1 < count) & hopeful, jnp.stack(rows), jnp.stack(indices)

        n = x.shape[1]
        best = jnp.full((self.neighbours, n), jnp.inf, x.dtype)
        index = jnp.zeros((self.neighbours, n), jnp.int32)
        first = (jnp.int32(0), count > 0, best, index)
        _, _, best, index = lax.while_loop(lambda loop: jnp.any(loop[1]), look, first)
        return index, best


def _distance(positions: Array, p: Int[Array, " n"], x: Float[Array, "dim n"]) -> Array:
    """Squared distances between points and places."""
    dim = positions.shape[1]
    flat = positions.reshape(-1)
    squares = [(gather(flat, p * dim + i) - x[i]) ** 2 for i in range(dim)]
    return sum(squares[1:], squares[0])


def _nearest_bins(points: np.ndarray, k: int, reach: float | None) -> Bins:
    """Bins that list every point which may be among the `k` nearest of a place in them.

    Let the k-th point be `d` from the centre of a bin, and `r` the radius of the bin. Any place in
    the bin has `k` points within `d + r`, and all of those are within `d + 2 r` of the centre.
    """
    from scipy.spatial import KDTree

    low, high = points.min(axis=0), points.max(axis=0)
    pad = 1e-6 * max((high - low).max(), 1e-30)
    low, high = low - pad, high + pad
    shape = bin_shape(low, high, len(points))
    size = (high - low) / np.asarray(shape)
    centres = np.stack(
        np.meshgrid(
            *[lo + s * (np.arange(n) + 0.5) for lo, s, n in zip(low, size, shape, strict=True)],
            indexing="ij",
        ),
        axis=-1,
    ).reshape(-1, len(shape))
    tree = KDTree(points)
    radius = float(np.linalg.norm(size)) / 2
    distance = np.reshape(tree.query(centres, k=k)[0], (len(centres), k))[:, -1]
    limit = (distance + 2 * radius) * (1 + 1e-5) + 1e-12
    if reach is not None:
        # Further points count as outside, whichever is found.
        limit = np.where(distance - radius > reach, -1.0, limit)
    counts = np.zeros(len(centres), np.int64)
    lists: list[np.ndarray] = []
    total = 0
    for at in range(0, len(centres), 65536):
        part = slice(at, at + 65536)
        found = tree.query_ball_point(centres[part], np.maximum(limit[part], 0.0), workers=-1)
        found = [f if r >= 0 else [] for f, r in zip(found, limit[part], strict=True)]
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        counts[part] = lengths
        total += int(lengths.sum())
        if total > MOST_ENTRIES:
            raise FieldError(
                f"{len(points)} points leave so much of their box empty that finding the nearest "
                "would need too much memory; give `max_distance`"
            )
        flat = np.fromiter((p for f in found for p in f), np.int64, int(lengths.sum()))
        owner = np.repeat(np.arange(at, at + len(found)), lengths)
        away = ((points[flat] - centres[owner]) ** 2).sum(axis=1)
        lists.append(flat[np.lexsort((away, owner))].astype(np.int32))
    return Bins(low, high, shape, counts, np.concatenate(lists))
