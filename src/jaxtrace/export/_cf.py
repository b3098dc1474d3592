"""Tracks as labelled arrays by the CF conventions: NetCDF and Zarr, and back."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace._status import Status
from jaxtrace.export._columns import block_shape, blocks, columns, known, native, take
from jaxtrace.export._place import ZARR_MARK, ExportError, check_place, ending
from jaxtrace.fields import Frame
from jaxtrace.io._errors import DataError
from jaxtrace.io._netcdf import check_netcdf
from jaxtrace.io._zarr import checked_store
from jaxtrace.tracking import Trajectory
from worldloom._extras import import_extra
from worldloom._reading import reading
from worldloom.batch import format_bytes
from worldloom.store._files import replacing, replacing_folder

_AXES = {
    "x": {"axis": "X"},
    "y": {"axis": "Y"},
    "z": {"axis": "Z"},
    "lon": {"axis": "X", "standard_name": "longitude", "units": "degrees_east"},
    "lat": {"axis": "Y", "standard_name": "latitude", "units": "degrees_north"},
    "depth": {"axis": "Z", "standard_name": "depth", "units": "m", "positive": "down"},
}
_WORDS = {
    "age": "time since release",
    "speed": "speed",
    "velocity": "velocity along each axis",
    "generation": "how often the slot began anew",
}
_TRACK = ("trajectory", "time")


@dataclasses.dataclass(frozen=True)
class _Variable:
    """An array of the file. One with `fill` has NaN where a particle is not in the flow."""

    name: str
    dims: tuple[str, ...]
    dtype: np.dtype
    attributes: dict[str, Any]
    fill: bool = False


def write_netcdf(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    coordinates: Sequence[str] = ("x", "y", "z"),
    time_units: str = "s",
    calendar: str = "standard",
) -> Path:
    """Write tracks as a NetCDF file by the CF conventions (`featureType = "trajectory"`).

    The arrays are `[trajectory, time]`. Positions, velocities, speeds, ages and scalars are missing
    before a particle's release and after the record at which it ended; `status` is always there.

    **Arguments:**

    - `path`: ends in `.nc`.
    - `coordinates`: names of the coordinates; `"lon"`, `"lat"` and `"depth"` get the attributes
        that CF wants for them.
    - `time_units`: `"s"`, or with a date that times count from: `"seconds since 2020-01-01"`.
    - `calendar`: one of those that CF knows, for times with a date.

    ```python
    import jax.numpy as jnp
    import jaxtrace as jt
    from jaxtrace.export import read, write_netcdf

    field = jt.AnalyticField(lambda x, t: jnp.stack([-x[1], x[0]]), dim=2)
    tracks = jt.create_tracker(field=field).track_particles([[1.0, 0.0]], (0.0, 1.0), 10)
    write_netcdf(tracks, "tracks.nc", time_units="days since 2020-01-01")
    assert read("tracks.nc").positions.shape == (11, 1, 2)
    ```
    """
    netcdf = import_extra("netCDF4", extra="trace", purpose="writing NetCDF")
    path = Path(path)
    ending(path, (".nc",))
    check_place(path)
    variables = _variables(trajectory, coordinates, time_units, calendar)
    with replacing(path) as hidden, _full_disks(path), netcdf.Dataset(hidden, "w") as file:
        for name, size in _sizes(trajectory).items():
            file.createDimension(name, size)
        made = {}
        for v in variables:
            made[v.name] = file.createVariable(
                v.name,
                v.dtype,
                v.dims,
                zlib=v.dims[:2] == _TRACK,
                complevel=1,
                fill_value=np.nan if v.fill else False,
                chunksizes=_chunks(v, trajectory) if v.dims[:2] == _TRACK else None,
            )
            made[v.name].setncatts(v.attributes)
            made[v.name].set_var_chunk_cache(size=2**20)  # chunks are written once, whole
        file.setncatts(_attributes(trajectory))
        _fill(trajectory, variables, made)
    return path


@contextlib.contextmanager
def _full_disks(path: Path) -> Iterator[None]:
    """The NetCDF library says "HDF error" where it cannot write."""
    try:
        yield
    except RuntimeError as error:
        free = format_bytes(shutil.disk_usage(path.parent).free)
        raise ExportError(
            f"{str(path)!r} cannot be written ({error}); {free} are free on that disk"
        ) from error


def write_zarr(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    coordinates: Sequence[str] = ("x", "y", "z"),
    time_units: str = "s",
    calendar: str = "standard",
) -> Path:
    """Write tracks as a Zarr folder by the CF conventions, for `xarray.open_zarr`.

    Arguments and contents are those of `write_netcdf`; `path` ends in `.zarr`.
    """
    zarr = import_extra("zarr", extra="trace", purpose="writing Zarr")
    path = Path(path)
    ending(path, (".zarr",))
    check_place(path)
    variables = _variables(trajectory, coordinates, time_units, calendar)
    sizes = _sizes(trajectory)
    with replacing_folder(path, mark=ZARR_MARK) as hidden:
        # Version 2 of the format: every xarray opens it, its metadata in one file.
        group = zarr.create_group(hidden, zarr_format=2, attributes=_attributes(trajectory))
        made = {}
        for v in variables:
            made[v.name] = group.create_array(
                v.name,
                shape=tuple(sizes[dim] for dim in v.dims),
                dtype=v.dtype,
                chunks=_chunks(v, trajectory) if v.dims[:2] == _TRACK else "auto",
                fill_value=np.nan if v.fill else None,
                attributes=v.attributes | {"_ARRAY_DIMENSIONS": list(v.dims)},
            )
        _fill(trajectory, variables, made)
        zarr.consolidate_metadata(hidden, zarr_format=2)
    return path


def _variables(
    trajectory: Trajectory, coordinates: Sequence[str], time_units: str, calendar: str
) -> list[_Variable]:
    names = list(coordinates)[: trajectory.dim]
    kept = columns(trajectory)
    taken = [*names, "trajectory", "time", *(c.name for c in kept)]
    if len(names) < trajectory.dim or len(set(taken)) < len(taken):
        raise ExportError(
            f"coordinates={tuple(coordinates)}: expected {trajectory.dim} names that differ from "
            f"{', '.join(taken[len(names) :])}"
        )
    clock: dict[str, Any] = {"axis": "T", "units": time_units, "long_name": "time"}
    if " since " in time_units:
        clock |= {"standard_name": "time", "calendar": calendar}
    variables = [
        _Variable("trajectory", ("trajectory",), np.dtype(np.int64), {"cf_role": "trajectory_id"}),
        _Variable("time", ("time",), np.dtype(np.float64), clock),
    ]
    kind = native(trajectory.positions)
    for name in names:
        attributes = {"long_name": name, **_AXES.get(name, {})}
        variables.append(_Variable(name, _TRACK, kind, attributes, fill=True))
    where = {"coordinates": " ".join(names)}
    for c in kept:
        dims = _TRACK if c.components == 1 else (*_TRACK, f"{c.name}_component")
        attributes = {"long_name": _WORDS.get(c.name, c.name), **where}
        if c.name == "speed" and trajectory.frame.axes:
            attributes["units"] = "m s-1"
        if c.name == "status":
            attributes = where | {
                "long_name": "what has become of the particle",
                "flag_values": np.array([s.value for s in Status], np.int8),
                "flag_meanings": " ".join(s.name.lower() for s in Status),
            }
        elif c.name == "age":
            # Spelled so that readers do not take it for a span of the calendar.
            attributes["units"] = {"seconds": "s", "days": "d", "hours": "h"}.get(
                word := time_units.split(" since ")[0], word
            )
        floats = np.issubdtype(c.dtype, np.floating)
        variables.append(_Variable(c.name, dims, c.dtype, _plain(attributes), fill=floats))
    return variables


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes that JSON holds too."""
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in attributes.items()}


def _sizes(trajectory: Trajectory) -> dict[str, int]:
    sizes = {"trajectory": trajectory.N, "time": trajectory.T}
    return sizes | {
        f"{c.name}_component": c.components for c in columns(trajectory) if c.components > 1
    }


def _attributes(trajectory: Trajectory) -> dict[str, Any]:
    report = trajectory.report
    drawn = {} if report is None else {"key": report.key, "seed": report.seed}
    return {
        "Conventions": "CF-1.11",
        "featureType": "trajectory",
        "title": f"Tracks of {trajectory.N} particles at {trajectory.T} times",
        "source": "JAXTrace",
        **{name: number for name, number in drawn.items() if number is not None},
    }


def _chunks(variable: _Variable, trajectory: Trajectory) -> tuple[int, ...]:
    """Chunks of some 2 MB, as long in time as blocks are, so that each is written once."""
    along = block_shape(trajectory)[0]
    across = min(trajectory.N, max(1, 500_000 // along))
    sizes = _sizes(trajectory)
    return (across, along, *(sizes[dim] for dim in variable.dims[2:]))


def _fill(trajectory: Trajectory, variables: list[_Variable], made: dict[str, Any]) -> None:
    """Put the values in, block by block."""
    made["trajectory"][:] = np.arange(trajectory.N)
    made["time"][:] = trajectory.times
    shown = known(trajectory)
    axes = [v.name for v in variables if v.dims == _TRACK][: trajectory.dim]
    for rows, particles in blocks(trajectory, *block_shape(trajectory)):
        absent = ~shown[rows, particles].T
        positions = take(trajectory, "positions", rows, particles)
        for v in variables[2:]:
            if v.name in axes:
                values = positions[..., axes.index(v.name)]
            else:
                values = take(trajectory, v.name, rows, particles)
            values = np.swapaxes(values, 0, 1).astype(v.dtype)
            if v.fill:
                values[absent] = np.nan
            made[v.name][particles, rows] = values


def read(path: str | os.PathLike[str]) -> Trajectory:
    """The tracks of a file that `write_netcdf` or `write_zarr` wrote.

    Where a particle was not in the flow, it is where it was first or last known to be.
    """
    path = Path(path)
    with _opened(path) as data:
        if not _is_tracks(data):
            raise ExportError(
                f"{str(path)!r} holds no tracks: expected featureType='trajectory' and the "
                f"dimensions trajectory and time, found {dict(data.sizes)}"
            )
        with reading(path, "tracks", ExportError):
            return _from_dataset(data, path)


def holds_tracks(path: str | os.PathLike[str]) -> bool:
    """Whether a NetCDF or Zarr file holds tracks, as `read` wants them."""
    with _opened(Path(path)) as data:
        return _is_tracks(data)


def _is_tracks(data: Any) -> bool:
    return data.attrs.get("featureType") == "trajectory" and set(_TRACK) <= set(data.dims)


def _opened(path: Path) -> Any:
    xarray = import_extra("xarray", extra="trace", purpose="reading NetCDF and Zarr")
    kind = ending(path, (".nc", ".zarr"))
    if not path.exists():
        raise ExportError(f"there is no {str(path)!r}")
    engine = "netcdf4" if kind == ".nc" else "zarr"
    if kind == ".nc":
        try:
            check_netcdf(path, repr(str(path)))
        except DataError as error:
            raise ExportError(f"{path} cannot be read: {error}") from error
    with reading(path, "NetCDF" if kind == ".nc" else "Zarr", ExportError):
        place = path if kind == ".nc" else checked_store(path)
        return xarray.open_dataset(place, engine=engine, decode_times=False)


def _from_dataset(data: Any, path: Path) -> Trajectory:
    ordered = sorted(
        (variable.attrs["axis"], name)
        for name, variable in data.variables.items()
        if variable.attrs.get("axis") in ("X", "Y", "Z")
    )
    axes = [name for _, name in ordered]
    missing = [name for name in ("status", "age") if name not in data.variables]
    if len(axes) < 2 or missing:
        raise ExportError(
            f"{str(path)!r} lacks {missing or 'coordinates'}; found {', '.join(data.variables)}"
        )

    def table(name: str) -> np.ndarray:
        return np.ascontiguousarray(np.swapaxes(data[name].values, 0, 1))

    standard = [str(data[name].attrs.get("standard_name", "")) for name in axes]
    earth = "longitude" in standard and "latitude" in standard
    kinds = tuple(name if name in ("longitude", "latitude") else "metres" for name in standard)
    clock = str(data["time"].attrs.get("units", ""))
    calendar = str(data["time"].attrs.get("calendar", "standard"))
    unknown = set(np.unique(table("status")).tolist()) - {status.value for status in Status}
    if unknown:
        raise ExportError(f"{str(path)!r} has the status {unknown.pop()}, which means nothing")
    named = {*axes, *_TRACK, "status", "age", "speed", "velocity", "generation"}
    scalars = [n for n, v in data.variables.items() if n not in named and v.dims[:2] == _TRACK]
    return Trajectory(
        positions=np.stack([_held(table(name)) for name in axes], axis=-1),
        times=data["time"].values.astype(np.float64),
        status=table("status").astype(np.int8),
        ages=np.nan_to_num(_held(table("age")).astype(np.float64)),
        velocities=_held(table("velocity")) if "velocity" in data.variables else None,
        scalars={str(name): _held(table(name)) for name in scalars},
        generations=(
            table("generation").astype(np.int32) if "generation" in data.variables else None
        ),
        frame=Frame(
            kinds if earth else (),
            epoch=f"{clock}, calendar {calendar}" if clock.startswith("seconds since ") else "",
        ),
    )


def _held(values: np.ndarray) -> np.ndarray:
    """`[T, ...]` with what is missing taken from the record before, else from the one after."""
    if not np.issubdtype(values.dtype, np.floating):
        return values
    number = np.arange(len(values)).reshape(-1, *[1] * (values.ndim - 1))
    there = np.isfinite(values)
    before = np.maximum.accumulate(np.where(there, number, -1), axis=0)
    after = np.minimum.accumulate(np.where(there, number, len(values))[::-1], axis=0)[::-1]
    source = np.where(before >= 0, before, np.minimum(after, len(values) - 1))
    return np.take_along_axis(values, source, axis=0)
