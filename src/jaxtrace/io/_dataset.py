"""A series of slices on disk: what is known of it, one slice, and the field of all."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import weakref
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

import worldloom as wl
from jaxtrace._config import float_dtype, memory_room, settings
from jaxtrace.fields import Field, Frame, Stream, TimeSeriesField
from jaxtrace.io._block import ArrayInfo
from jaxtrace.io._errors import DataError
from jaxtrace.io._geometry import Geometry
from jaxtrace.io._source import Slice, Source
from worldloom._way import way
from worldloom.batch import format_bytes

Steps: TypeAlias = slice | Sequence[int] | None


class Dataset:
    """A flow on disk, as [`jaxtrace.open_dataset`][] opens it. Its velocities are not read yet.

    **Attributes:**

    - `kind`: `"grid"`, `"mesh"` or `"points"`.
    - `format`: that of the files, such as `"PVD of VTU"`.
    - `files`: every file, pieces included.
    - `times`: `[T]`, increasing.
    - `epoch`: what times count from, where the files say it.
    - `frame`: what coordinates and velocities measure, a [`jaxtrace.Frame`][]; fields get it.
    - `arrays`: what was found, each an `ArrayInfo`.
    - `velocity`, `scalars`: the names of those that are read.
    - `geometry`: the axes of the grid, or points and simplices of the mesh.
    - `notes`: what was decided about the files, in words.

    `len(dataset)` is the number of slices. NetCDF files stay open, and locked against writing,
    until the dataset is closed: by `close()`, at the end of a `with` block, or when nothing refers
    to it and its streamed fields any more. What is closed reads no more slices; fields that were
    read stay.

    ```python
    import numpy as np
    import xarray as xr
    import jaxtrace as jt

    x = np.linspace(0.0, 1.0, 5)
    axes = {"time": [0.0, 1.0], "y": x, "x": x}
    flow = xr.Dataset({n: (("time", "y", "x"), np.ones((2, 5, 5))) for n in "uv"}, coords=axes)
    flow.to_netcdf("flow.nc")
    with jt.open_dataset("flow.nc") as dataset:
        field = dataset.field()
    flow.to_netcdf("flow.nc")  # the file is free again
    ```
    """

    def __init__(self, source: Source, files: contextlib.ExitStack | None = None):
        self._source = source
        # Closed at the latest when the dataset is collected. It knows nothing of the dataset.
        self._close = weakref.finalize(self, (files or contextlib.ExitStack()).close)
        self.format: str = source.format
        self.files: tuple[str, ...] = source.files
        self.times: np.ndarray = source.times
        self.epoch: str = source.epoch
        self.arrays: tuple[ArrayInfo, ...] = source.arrays
        self.velocity: tuple[str, ...] = source.velocity
        self.scalars: tuple[str, ...] = source.scalars
        self.geometry: Geometry = source.geometry
        self.frame: Frame = source.frame
        self.notes: tuple[str, ...] = source.notes

    def close(self) -> None:
        """Close the files. An `xarray.Dataset` that was opened by its owner stays open."""
        self._close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.times)

    @property
    def kind(self) -> str:
        """`"grid"`, `"mesh"` or `"points"`."""
        return self.geometry.kind

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.geometry.dim

    @property
    def points(self) -> int:
        """How many points or nodes there are."""
        return self.geometry.points

    @property
    def cells(self) -> int:
        """How many cells of the grid or simplices of the mesh there are."""
        return self.geometry.cells

    @property
    def bounds(self) -> np.ndarray:
        """`[2, dim]`, the corners of the domain."""
        return self.geometry.bounds

    @property
    def time_span(self) -> tuple[float, float] | None:
        """First and last time; `None` for one slice, which is a steady flow."""
        return (float(self.times[0]), float(self.times[-1])) if len(self) > 1 else None

    @property
    def slice_nbytes(self) -> int:
        """Bytes of the velocity in one slice, in the configured type."""
        return self.points * self.dim * float_dtype().itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the velocity in all slices, in the configured type."""
        return self.slice_nbytes * len(self)

    def slice(self, i: int) -> Slice:
        """Velocity and scalars of slice `i` as NumPy arrays of the configured type.

        Slices can be read in any order and from any thread; nothing is kept in memory. Values that
        no field can have are refused with their file: infinity, and NaN in a mesh. NaN in a grid is
        land.
        """
        i = self._index(i)
        if not self._close.alive:
            raise DataError(
                f"slice {i}: the dataset is closed. Read what is needed before close(), or before "
                "the end of its `with` block"
            )
        velocity, scalars = self._source.read(i)
        dtype = float_dtype()
        checked = {}
        for name, values in (("/".join(self.velocity), velocity), *scalars.items()):
            with np.errstate(over="ignore"):
                checked[name] = np.ascontiguousarray(values, dtype)
            self._check(checked[name], name, i)
        first, *_ = checked.values()
        return Slice(first, {name: checked[name] for name in scalars})

    def field(
        self,
        *,
        steps: Steps = None,
        scalar: str | None = None,
        scattered: bool = False,
        window: int | Literal["auto"] | None = None,
        progress: Any = True,
        **options: Any,
    ) -> Field:
        """Read slices into a field: of the velocity, or of one of the scalars.

        A grid becomes a [`jaxtrace.StructuredField`][], a mesh a [`jaxtrace.TetField`][], points a
        [`jaxtrace.TimeSeriesField`][]. More than `jaxtrace.configure(memory_limit_gb=...)` allows
        is refused before anything is read.

        **Arguments:**

        - `steps`: which slices: `slice(0, 10)`, `slice(None, None, 2)`, `[0, 5]`. All if left out.
        - `scalar`: one of `scalars`, instead of the velocity.
        - `scattered`: forget the cells, and make a [`jaxtrace.TimeSeriesField`][] of the points of
            a grid or mesh. Points on land are left out.
        - `window`: do not read all slices, but keep this many on the device and read the next ones
            while particles move; tracks are the same. `"auto"` does so only where the slices do not
            fit the memory limit, with as many as fit.
        - `progress`: a bar for long reads; `False` for none, or a `worldloom.Progress`.
        - `options`: what the field takes: `method`, `time_method`, `outside`, `period`...
        """
        if scalar is not None and scalar not in self.scalars:
            raise DataError(
                f"scalar={scalar!r}: the dataset reads {list(self.scalars)}; name it in "
                + way("open_dataset(..., scalars=(...,))", "--scalars")
            )
        self._check_options(TimeSeriesField if scattered else self.geometry.makes, options)
        options.setdefault("frame", self._frame(scalar))
        chosen = self._steps(steps)
        components = self.dim if scalar is None else 1
        window = self._window(window, len(chosen), self.slice_nbytes * components // self.dim)
        if window is not None:
            if scattered or self.kind == "points":
                raise DataError(f"window={window}: points without cells cannot be streamed")
            stream = Stream(lambda i: self._values(chosen[i], scalar), window)
            return self.geometry.field(stream, self.times[chosen], **options)
        data = np.empty((len(chosen), *self.geometry.shape, components), float_dtype())
        bar = _meter(progress)
        bar.start(0, len(chosen))
        try:
            for row, i in enumerate(chosen):
                data[row] = self._values(i, scalar)
                bar.update(row + 1)
        finally:
            bar.stop()
        times = self.times[chosen]
        if scattered:
            return self._scattered(data, times, options)
        return self.geometry.field(data, times, **options)

    def describe(self) -> str:
        """All that is known, in a few lines."""
        names = f"{self.files[0]}" + (f" ... {self.files[-1]}" if len(self.files) > 1 else "")
        low, high = self.bounds
        corners = " x ".join(f"[{a:.6g}, {b:.6g}]" for a, b in zip(low, high, strict=True))
        if self.kind == "grid":
            where = " x ".join(map(str, self.geometry.shape)) + " nodes"
        else:
            where = f"{self.points:,} points, {self.cells:,} simplices"
        when = "one slice: a steady flow"
        if len(self) > 1:
            steps = np.diff(self.times)
            each = (
                f"every {steps[0]:.6g}"
                if np.allclose(steps, steps[0])
                else (f"every {steps.min():.6g} to {steps.max():.6g}")
            )
            when = f"{len(self)} slices from {self.times[0]:.10g} to {self.times[-1]:.10g}, {each}"
        lines = [
            f"{self.format}, {len(self.files)} file{'s' * (len(self.files) > 1)}: {names}",
            f"{self.kind}, {self.dim}-D: {where} in {corners}",
            f"times: {when}" + (f" ({self.epoch})" if self.epoch else ""),
            f"units: {self.frame.describe()}",
            f"velocity: {', '.join(self.velocity)}"
            + (f"; scalars: {', '.join(self.scalars)}" if self.scalars else ""),
            f"memory: {format_bytes(self.slice_nbytes)} a slice, "
            f"{format_bytes(self.nbytes)} in all",
            "arrays:",
            *(f"  {array}" for array in self.arrays),
            *(f"note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return (
            f"Dataset({self.format}, {self.kind}, {self.points} points, {len(self)} slices, "
            f"velocity={', '.join(self.velocity)})"
        )

    def _frame(self, scalar: str | None) -> Frame:
        """That of the velocity, or of a scalar with its own units."""
        if scalar is None:
            return self.frame
        units = next((a.units for a in self.arrays if a.name == scalar), "")
        return dataclasses.replace(self.frame, units=units)

    def _scattered(self, data: np.ndarray, times: np.ndarray, options: Any) -> TimeSeriesField:
        data = data.reshape(len(data), self.points, -1)
        wet = ~np.isnan(data[0]).any(axis=1)
        return TimeSeriesField(data[:, wet], self.geometry.coordinates[wet], times, **options)

    def _check_options(self, makes: type, options: Any) -> None:
        known = inspect.signature(makes).parameters.values()
        names = [p.name for p in known if p.kind is inspect.Parameter.KEYWORD_ONLY]
        unknown = [name for name in options if name not in names]
        if unknown:
            raise DataError(f"a {makes.__name__} has no option {unknown[0]!r}; it has {names}")

    def _index(self, i: int) -> int:
        if not -len(self) <= i < len(self):
            raise DataError(f"slice {i}: there are {len(self)} slices")
        return int(i) % len(self)

    def _steps(self, steps: Any) -> list[int]:
        if steps is None or isinstance(steps, slice):
            chosen = list(range(len(self)))[steps or slice(None)]
        else:
            chosen = [self._index(i) for i in steps]
        if not chosen:
            raise DataError(f"steps={steps}: none of the {len(self)} slices is chosen")
        if any(b <= a for a, b in itertools.pairwise(chosen)):
            raise DataError(f"steps={steps}: expected slices in increasing order, each once")
        return chosen

    def _values(self, i: int, scalar: str | None) -> np.ndarray:
        one = self.slice(i)
        return one.velocity if scalar is None else one.scalars[scalar][..., None]

    def _window(self, window: int | str | None, count: int, each: int) -> int | None:
        """How many slices to keep at a time; `None` for all. What does not fit is refused."""
        # Without a limit of the user's, what is free must hold what is read and what is made of it.
        limit = settings().memory_limit or memory_room() // 3
        # One window is on the device while the next one is filled.
        held = 2 * window if isinstance(window, int) else count
        need = min(held, count) * each + self.geometry.nbytes
        if need <= limit:
            return window if isinstance(window, int) and window < count else None
        fit = max((limit - self.geometry.nbytes) // each, 0)
        if window == "auto" and fit >= 4:
            return fit // 2
        advice = way(f"take at most {fit} with steps=..., ") if fit else ""
        if window is None and fit >= 4:
            some = fit // 2
            advice += way(
                f"stream them with window={some}, ", f"stream them with --window {some}, "
            )
        raise DataError(
            f"{held} slices of {format_bytes(each)} and {format_bytes(self.geometry.nbytes)} for "
            f"the {self.kind} need {format_bytes(need)}, more than "
            f"{'memory_limit_gb allows' if settings().memory_limit else 'fits the free memory'} "
            f"({format_bytes(limit)}): {advice}{'or ' if advice else ''}raise the limit"
            + way(" with jaxtrace.configure(memory_limit_gb=...)", " with --memory-limit-gb")
        )

    def _check(self, values: np.ndarray, name: str, i: int) -> None:
        bad = np.isinf(values) if self.kind == "grid" else ~np.isfinite(values)
        if bad.any():
            at = [int(k) for k in np.argwhere(bad)[0]]
            hint = "land is marked by NaN" if self.kind == "grid" else "a mesh has no land"
            raise DataError(
                f"{self._source.names[i]} (slice {i}): {name} is {values[tuple(at)]} at {at} and "
                f"in {int(bad.sum())} places in all; {hint}"
            )


def _meter(progress: Any) -> Any:
    if isinstance(progress, bool):
        return wl.ProgressBar("reading") if progress else wl.NoProgress()
    return progress
