"""Fields on grids."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from jaxtrace._errors import FieldError
from jaxtrace._status import Status
from jaxtrace.fields._axis import Axis, check_axis
from jaxtrace.fields._field import (
    Hint,
    Sample,
    Time,
    apart,
    apply_outside,
    check_outside,
    gather,
)
from jaxtrace.fields._frame import Frame
from jaxtrace.fields._near import KEPT_BYTES, Near, nothing_near, refresh
from jaxtrace.fields._nodes import NodeField
from jaxtrace.fields._stream import Stream, tables_of
from jaxtrace.fields._time import Slices


class StructuredField(NodeField):
    """A field on the nodes of a rectilinear grid, in two or three dimensions.

    **Arguments:**

    - `data`: `[T, *nodes, C]`: times, nodes along each axis, components. NaN nodes are land: they
        count as zero, and a particle whose nearest node is land is `BEACHED`. Land is the same at
        all times: a node that is NaN at some of them is an error. Or a
        [`jaxtrace.fields.Stream`][], which reads slices as they are needed; land is then that of
        the first slice.
    - `axes`: the coordinates of the nodes along each axis: two or three arrays, equally spaced or
        not, increasing or decreasing.
    - `times`: `[T]`, increasing. One slice needs none: it is a steady flow.
    - `method`: `"linear"` (bilinear, trilinear; exact for functions linear in each coordinate) or
        `"cubic"` (Catmull-Rom; exact for quadratic ones; about 20 times the work in 3-D).
    - `time_method`: `"linear"` or `"cubic"` between slices.
    - `outside`: outside the grid, particles get the status `EXITED` (`"status"`), the value of the
        edge (`"clamp"`), zero (`"zero"`) or NaN (`"nan"`).
    - `period`: for each axis its period, or `None`. A periodic axis covers one period, with or
        without the closing node.
    - `frame`: what coordinates, values and clock mean, a [`jaxtrace.Frame`][].

    ```python
    import numpy as np
    import jaxtrace as jt

    x = np.linspace(-1.0, 1.0, 9)
    X, Y = np.meshgrid(x, x, indexing="ij")
    field = jt.StructuredField(np.stack([-Y, X], axis=-1)[None], axes=(x, x))
    assert np.allclose(field.sample([[0.5, 0.25]], t=0.0), [[-0.25, 0.5]])
    ```
    """

    _land: UInt8[Array, " nodes"] | None
    axes: tuple[Axis, ...]
    method: str = eqx.field(static=True)
    outside: str = eqx.field(static=True)

    def __init__(
        self,
        data: Any,
        axes: Sequence[Any],
        times: Any = None,
        *,
        method: str = "linear",
        time_method: str = "linear",
        outside: str = "status",
        period: Sequence[float | None] | None = None,
        frame: Frame | None = None,
    ):
        check_outside(outside)
        if method not in ("linear", "cubic"):
            raise FieldError(f"method={method!r}: expected 'linear' or 'cubic'")
        if len(axes) not in (2, 3):
            raise FieldError(f"axes has {len(axes)} entries; expected 2 or 3")
        layout = _Layout.of(axes, period, least=4 if method == "cubic" else 2)
        if isinstance(data, Stream):
            first = np.asarray(data.read(0))[None]
            times = _times(times, None)
        else:
            data = np.asarray(data)
            first = data[:1]
            times = _times(times, len(data))
        layout.check(first)
        self.slices = Slices(times, time_method)
        pairs = zip(layout.nodes, layout.periods, strict=True)
        self.axes = tuple(Axis(a, cubic=method == "cubic", period=p) for a, p in pairs)
        dry = np.asarray(np.isnan(first).any(axis=(0, -1)))
        land = layout.arrange(dry[None])[0]
        if np.isinf(first).any():
            where = [int(i) for i in np.argwhere(np.isinf(first))[0]]
            raise FieldError(f"data is infinite at {where}; land is marked by NaN")
        if land.all():
            raise FieldError("data is NaN at every node: there is no flow")
        self._land = jnp.asarray(land.reshape(-1), jnp.uint8) if land.any() else None

        def prepare(one: np.ndarray, i: int) -> np.ndarray:
            return layout.prepare(one, land, first.shape[1:])

        self.tables = tables_of(data, times, time_method, prepare)
        self.method = method
        self.outside = outside
        self.frame = frame or Frame()

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """2 or 3."""
        return len(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def data(self) -> Float[Array, "slices *nodes components"]:
        """The values, with zeros on land."""
        whole = self.tables.whole
        return whole.reshape(whole.shape[0], *self.shape, whole.shape[-1])

    @property
    def positions(self) -> Float[Array, "nodes dim"]:
        """The nodes, the last axis fastest."""
        grids = jnp.meshgrid(*[axis.coordinates for axis in self.axes], indexing="ij")
        return jnp.stack([grid.reshape(-1) for grid in grids], axis=-1)

    @property
    def bounds(self) -> np.ndarray:
        """`[2, dim]`, the first and the last node of each axis."""
        return np.array([[a.first for a in self.axes], [a.last for a in self.axes]])

    def evaluate(
        self,
        x: Float[Array, "dim n"],
        t: Time,
        hint: Hint = None,
        active: Bool[Array, " n"] | None = None,
    ) -> Sample:
        """See `Field.evaluate`."""
        places = [axis.wrap(x[i]) for i, axis in enumerate(self.axes)]
        inside = self.axes[0].inside(places[0])
        for axis, place in zip(self.axes[1:], places[1:], strict=True):
            inside = inside & axis.inside(place)
        pairs = [axis.cell(place) for axis, place in zip(self.axes, places, strict=True)]

        def compute():
            base, interpolate = (self._linear if self.method == "linear" else self._cubic)(pairs)
            return self.tables.blend(self.slices, t, lambda read: interpolate(read, base))

        if isinstance(hint, Near) and t.ndim == 0:
            hint, compute = self._from_near(pairs, t, hint)
        value = apart(active, compute, x[0])
        value, status = apply_outside(value, inside, self.outside)
        return Sample(value, self._beach(pairs, status), hint)

    def first_hint(self, n: int, *, values: bool = True) -> Near | None:
        """Values around particles that are to be read.

        Cubic interpolation keeps none, nor do so many particles that theirs would not stay in a
        processor's caches.
        """
        whole = self.tables.parts[0]
        linear = self.method == "linear" and self.slices.cubic is None
        corners = min(self.slices.count, 2) * 2**self.dim
        size = n * corners * self.components * whole.dtype.itemsize
        if not (values and linear and whole.size < 2**31 and size <= KEPT_BYTES):
            return None
        return nothing_near(n, self.components, corners, whole.dtype)

    def _from_near(
        self, pairs: list[tuple[Array, Array]], t: Float[Array, ""], near: Near
    ) -> tuple[Near, Callable[[], tuple[Float[Array, " n"], ...]]]:
        """What is near now, and what interpolates in it: the arithmetic of `Tables.blend`."""
        now, weights, read = self.tables.around(self.slices, t, self._offsets(2))
        near = refresh(near, self._flat([i for i, _ in pairs]), now, read)

        def compute() -> tuple[Float[Array, " n"], ...]:
            rows = []
            for values in near.values:
                slices = values.reshape(len(weights), -1, values.shape[-1])
                terms = [
                    _mix(list(corners), pairs) * weight
                    for corners, weight in zip(slices, weights, strict=True)
                ]
                rows.append(sum(terms[1:], terms[0]))
            return tuple(rows)

        return near, compute

    def _flat(self, indices: Sequence[Int[Array, " n"]]) -> Int[Array, " n"]:
        flat = indices[0]
        for axis, index in zip(self.axes[1:], indices[1:], strict=True):
            flat = flat * axis.size + index
        return flat

    def _offsets(self, taps: int) -> list[int]:
        """Distances in the flat table from the first node to each of `taps**dim` nodes."""
        strides = [int(np.prod(self.shape[i + 1 :])) for i in range(self.dim)]
        corners = itertools.product(range(taps), repeat=self.dim)
        return [sum(s * k for s, k in zip(strides, corner, strict=True)) for corner in corners]

    def _linear(self, pairs: list[tuple[Array, Array]]) -> Any:
        offsets = self._offsets(2)

        def interpolate(read, base):
            return _mix([read(base + offset) for offset in offsets], pairs)

        return self._flat([i for i, _ in pairs]), interpolate

    def _cubic(self, pairs: list[tuple[Array, Array]]) -> Any:
        offsets = self._offsets(4)
        taps = [axis.cubic_weights(i, s) for axis, (i, s) in zip(self.axes, pairs, strict=True)]

        def interpolate(read, base):
            values = [read(base + offset) for offset in offsets]
            for _, w in reversed(taps):
                rows = [values[j : j + 4] for j in range(0, len(values), 4)]
                values = [r[0] * w[0] + r[1] * w[1] + r[2] * w[2] + r[3] * w[3] for r in rows]
            return values[0]

        return self._flat([first for first, _ in taps]), interpolate

    def _beach(self, pairs: list[tuple[Array, Array]], status: Int[Array, " n"]) -> Array:
        if self._land is None:
            return status
        nearest = self._flat([i + (s > 0.5).astype(jnp.int32) for i, s in pairs])
        ashore = (gather(self._land, nearest) > 0) & (status == int(Status.ALIVE))
        return jnp.where(ashore, jnp.int8(Status.BEACHED), status)


def _mix(values: list[Array], pairs: list[tuple[Array, Array]]) -> Float[Array, " n"]:
    """Linear interpolation along each axis, from the values at the corners of cells."""
    for _, s in reversed(pairs):
        values = [a + (b - a) * s for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


@dataclasses.dataclass(frozen=True)
class _Layout:
    """How data that were given become tables: which axes are turned round, which are closed."""

    nodes: list[np.ndarray]
    periods: list[float | None]
    given: tuple[int, ...]
    turned: tuple[int, ...]
    closed: tuple[int, ...]

    @classmethod
    def of(cls, axes: Sequence[Any], period: Any, least: int) -> _Layout:
        nodes = [check_axis(a, f"axes[{i}]", least) for i, a in enumerate(axes)]
        given = tuple(len(a) for a in nodes)
        turned = tuple(i for i, a in enumerate(nodes) if a[0] > a[-1])
        nodes = [a[::-1] if i in turned else a for i, a in enumerate(nodes)]
        periods: list[float | None] = [None] * len(nodes) if period is None else list(period)
        if len(periods) != len(nodes):
            raise FieldError(f"period has {len(periods)} entries; expected {len(nodes)}")
        closed = []
        for i, length in enumerate(periods):
            if length is not None and _is_open(nodes[i], i, float(length)):
                end = np.asarray(float(nodes[i][0]) + float(length), nodes[i].dtype)
                nodes[i] = np.append(nodes[i], end)
                closed.append(i)
        return cls(nodes, periods, given, turned, tuple(closed))

    def check(self, data: np.ndarray) -> None:
        """Refuse data, `[T, *nodes, C]`, that are not on these nodes."""
        dim = len(self.given)
        if data.ndim != dim + 2:
            raise FieldError(
                f"data has shape {list(data.shape)}; with {dim} axes expected [T, "
                f"{'nodes, ' * dim}C]"
            )
        for i, size in enumerate(self.given):
            if data.shape[i + 1] != size:
                raise FieldError(
                    f"data has {data.shape[i + 1]} nodes along axis {i}, but axes[{i}] has {size}"
                )

    def arrange(self, data: np.ndarray) -> np.ndarray:
        """`[T, *nodes, ...]` with axes that increase, periods closed."""
        data = np.flip(data, tuple(i + 1 for i in self.turned))
        for i in self.closed:
            data = np.concatenate([data, np.take(data, [0], axis=i + 1)], axis=i + 1)
        return data

    def prepare(self, one: np.ndarray, land: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """A slice as a row of tables, `[nodes, C]`, with zeros on land."""
        if one.shape != shape:
            raise FieldError(f"it has shape {list(one.shape)}, the first slice {list(shape)}")
        one = self.arrange(one[None])[0]
        if np.isinf(one).any():
            where = [int(i) for i in np.argwhere(np.isinf(one))[0]]
            raise FieldError(f"it is infinite at {where}; land is marked by NaN")
        other = np.isnan(one).any(axis=-1) != land
        if other.any():
            where = [int(i) for i in np.argwhere(other)[0]]
            now, before = ("a value", "NaN") if land[tuple(where)] else ("NaN", "a value")
            raise FieldError(
                f"it has {now} at {where}, where the first slice has {before} (and so in "
                f"{int(other.sum())} places): land must be the same at all times. Fill gaps; mark "
                "places that fall dry by NaN in all slices, data[:, np.isnan(data).any(axis=0)] = "
                "np.nan, or ds.where(ds[name].notnull().all('time')) with xarray"
            )
        if land.any():
            one = np.where(land[..., None], 0, one)
        return one.reshape(-1, one.shape[-1])


def _times(times: Any, slices: int | None) -> np.ndarray:
    """The times of so many slices; 0 for a single one that was given none."""
    if times is None:
        if slices != 1:
            count = "a stream" if slices is None else f"{slices} slices"
            raise FieldError(f"data has {count}, so `times` must say when they are")
        return np.zeros(1)
    times = np.asarray(times, np.float64)
    if slices is not None and times.ndim == 1 and len(times) != slices:
        raise FieldError(f"data has {slices} slices, but times has {len(times)} entries")
    return times


def _is_open(nodes: np.ndarray, axis: int, period: float) -> bool:
    """Whether the node that closes a period is missing."""
    length = float(nodes[-1]) - float(nodes[0])
    step = length / (len(nodes) - 1)
    if not length <= period * (1 + 1e-6):
        raise FieldError(f"axes[{axis}] is {length:g} long, more than its period {period:g}")
    return abs(length - period) >= 1e-3 * step
