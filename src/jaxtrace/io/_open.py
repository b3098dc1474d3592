"""`open_dataset` and `load_optimized_dataset`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from jaxtrace._config import float_dtype
from jaxtrace.fields import Field
from jaxtrace.io import _series
from jaxtrace.io._cf import CfSeries, open_files
from jaxtrace.io._dataset import Dataset
from jaxtrace.io._errors import DataError
from jaxtrace.io._vtk_series import VtkSeries
from worldloom._reading import reading
from worldloom._way import way


def open_dataset(
    source: Any,
    *,
    velocity: str | Sequence[str] | None = None,
    times: Any = None,
    scalars: Sequence[str] = (),
    convert_units: bool = True,
) -> Dataset:
    """Open a series of files without reading its velocities.

    **Arguments:**

    - `source`: a path, a pattern such as `"flow_*.vtu"`, a list of paths, or an `xarray.Dataset`.
        PVD, VTU, VTI, VTR, VTS, VTP and their parallel forms, legacy VTK, VTKHDF, NetCDF, Zarr.
    - `velocity`: the name of a vector, or the names of its components. Without it, a standard name
        or a name such as `velocity` must make it obvious.
    - `times`: one for each slice, in place of those in the files. Needed where the files have none.
    - `scalars`: names of other arrays to read along.
    - `convert_units`: bring velocities of NetCDF and Zarr to the units of their coordinates a
        second: degrees a second for longitude and latitude. `False` takes numbers as they are.

    ```python
    import numpy as np
    import xarray as xr
    import jaxtrace as jt

    x = np.linspace(0.0, 1.0, 5)
    uv = np.ones((3, 5, 5), np.float32)
    axes = {"time": [0.0, 1.0, 2.0], "y": x, "x": x}
    store = xr.Dataset({n: (("time", "y", "x"), uv) for n in ("u", "v")}, coords=axes)
    dataset = jt.open_dataset(store)
    assert len(dataset) == 3
    field = dataset.field(steps=slice(0, 2))
    assert np.allclose(field.sample([[0.5, 0.5]], t=0.5), 1.0)
    ```
    """
    if isinstance(scalars, str):
        scalars = (scalars,)
    if type(source).__module__.partition(".")[0] == "xarray":
        if type(source).__name__ != "Dataset":
            raise DataError(
                f"source is an xarray {type(source).__name__}; expected a Dataset with the "
                "components of the velocity"
            )
        name = str(source.encoding.get("source", "xarray.Dataset"))
        opened = [(name, source)]
        with reading(name, "a flow", DataError):
            return Dataset(CfSeries(opened, "xarray", velocity, scalars, times, convert_units))
    files = _series.find(source)
    suffixes = {path.suffix.lower() for path in files}
    if suffixes <= {*_series.NETCDF} or suffixes <= {*_series.ZARR}:
        form, opened = open_files(files)
        with contextlib.ExitStack() as closing:
            for _, one in opened:
                closing.callback(one.close)
            with reading(files[0], form, DataError):
                series = CfSeries(opened, form, velocity, scalars, times, convert_units)
            return Dataset(series, closing.pop_all())
    with reading(files[0], "a flow", DataError):
        return Dataset(VtkSeries(files, velocity, scalars, times))


def load_optimized_dataset(
    pattern: Any,
    max_time_steps: int = 40,
    dtype: str | None = None,
    *,
    keep: Literal["last", "even", "first"] = "last",
    scattered: bool = False,
    **options: Any,
) -> Field:
    """Open a series and read a bounded number of slices into a field.

    **Arguments:**

    - `pattern`, `options`: as in [`jaxtrace.open_dataset`][].
    - `max_time_steps`: the most slices to read.
    - `dtype`: the type of the field; `jaxtrace.configure` sets it, so another one is refused.
    - `keep`: which slices of a longer series: the last ones, the first ones, or every so many.
    - `scattered`: a [`jaxtrace.TimeSeriesField`][] on the points of a grid or mesh, whose `data`,
        `positions` and `times` can be assigned to. Without it, cells are used where there are
        any: that is continuous, and exact for linear fields.

    ```python
    import numpy as np
    import xarray as xr
    import jaxtrace as jt

    x = np.linspace(0.0, 1.0, 5)
    uv = np.ones((9, 5, 5), np.float32)
    axes = {"time": np.arange(9.0), "y": x, "x": x}
    store = xr.Dataset({n: (("time", "y", "x"), uv) for n in ("u", "v")}, coords=axes)
    store.to_netcdf("flow.nc")
    field = jt.load_optimized_dataset("flow.nc", max_time_steps=4, dtype="float32")
    assert np.allclose(field.times, [5.0, 6.0, 7.0, 8.0])
    ```
    """
    if max_time_steps < 1:
        raise DataError(f"max_time_steps={max_time_steps}: expected 1 or more")
    if dtype is not None and np.dtype(dtype) != float_dtype():
        raise DataError(
            f"dtype={dtype!r}, but fields are {float_dtype().name}"
            + way(f": call jaxtrace.configure(dtype={dtype!r}) first")
        )
    with open_dataset(pattern, **options) as dataset:
        steps = _kept(len(dataset), max_time_steps, keep)
        return dataset.field(steps=steps, scattered=scattered)


def _kept(count: int, most: int, keep: str) -> list[int]:
    if count <= most:
        return list(range(count))
    if keep == "last":
        return list(range(count - most, count))
    if keep == "first":
        return list(range(most))
    if keep == "even":
        return [int(i) for i in np.linspace(0, count - 1, most).round()]
    raise DataError(f"keep={keep!r}: expected 'last', 'even' or 'first'")
