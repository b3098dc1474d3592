"""Series of NetCDF files and Zarr stores, read through xarray by the CF conventions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace._errors import TraceWarning
from jaxtrace.fields._fill import fill_message, unmarked_fill
from jaxtrace.fields._frame import DEGREE, PER_COORDINATE, Frame
from jaxtrace.io import _cf_axes, _cf_places, _cf_time, _times
from jaxtrace.io._block import ArrayInfo
from jaxtrace.io._cf_names import choose
from jaxtrace.io._errors import DataError
from jaxtrace.io._geometry import Geometry, Grid
from jaxtrace.io._netcdf import check_netcdf
from jaxtrace.io._series import ZARR
from jaxtrace.io._source import Slice
from jaxtrace.io._units import rate
from jaxtrace.io._zarr import checked_store
from worldloom._extras import import_extra
from worldloom._reading import reading
from worldloom._way import way

_WATER = ("uo", "vo", "wo", "water_u", "water_v", "vozocrtx", "vomecrty", "uvel", "vvel")
_FASTEST_WATER, _FASTEST = 20.0, 250.0  # m/s; the fastest tides reach 10, the fastest winds 135


class CfSeries:
    """See `Source`. What is opened: the coordinates of every file."""

    def __init__(
        self,
        datasets: Sequence[tuple[str, Any]],
        form: str,
        velocity: Sequence[str] | str | None,
        scalars: Sequence[str],
        times: Any,
        convert: bool,
    ):
        self.format = form
        self.files = tuple(name for name, _ in datasets)
        where, first = datasets[0]
        self._convert = convert
        self._warned: set[str] = set()
        self.arrays = tuple(
            ArrayInfo(
                str(name),
                "points",
                1,
                str(variable.dtype),
                tuple(variable.shape),
                str(variable.attrs.get("units", "")),
            )
            for name, variable in first.data_vars.items()
            if variable.ndim >= 2
        )
        names = choose(first, self.arrays, velocity, where)
        notes: list[str] = []
        first, self._place = _cf_places.locate(first, names[0], where, notes)
        u = first[names[0]]
        self._datasets = [
            (other, first if i == 0 else self._located(data, names[0], other))
            for i, (other, data) in enumerate(datasets)
        ]
        self._roles = _cf_axes.roles(u, where)
        self._axes = self._find_axes(u, where, notes)
        # Two names for a section are the components along it; otherwise they are x, y and z.
        section = velocity is not None and len(names) == len(self._axes) == 2
        along = zip(self._axes if section else "XYZ", names, strict=False)
        self._along = {r: name for r, name in along if r in self._axes}
        deep = "Z" in self._axes
        if deep and "Z" not in self._along:
            notes.append("no vertical velocity: particles stay at their depth")
        for name in self._along.values():
            self._check_dims(first[name], u, where)
        for name in scalars:
            if name not in first.data_vars:
                listed = [array.name for array in self.arrays]
                raise DataError(f"{where}: scalars: no variable {name!r}; there are {listed}")
            self._check_dims(first[name], u, where, steady=True)
        self.velocity, self.scalars = tuple(self._along.values()), tuple(scalars)
        self._parallel: float | None = None
        self._speeds: dict[str, float] = {}
        self._factors = self._conversions(first, where, notes)
        self._note_map(where, notes)
        kept = list(self._axes.values())
        self.geometry: Geometry = Grid(
            tuple(axis.nodes for axis in kept), tuple(axis.period for axis in kept)
        )
        self._moments: list[tuple[int, int]] = []
        self.epoch = ""
        self._settle_times(times)
        self.frame = Frame(
            self._kinds() if convert else (),
            PER_COORDINATE if convert else "",
            self.epoch,
            self._parallel,
        )
        round_earth = [axis.name for axis in kept if axis.period is not None]
        notes.extend(f"{name} goes round the earth: it is periodic" for name in round_earth)
        if deep and self._axes["Z"].scale < 0:
            notes.append(f"{self._axes['Z'].name} points down: z is minus {self._axes['Z'].name}")
        self.notes = tuple(notes)

    def read(self, i: int) -> Slice:
        """See `Source`."""
        which, k = self._moments[i]
        where, dataset = self._datasets[which]
        with reading(f"{where} (slice {i})", self.format, DataError):
            parts = {r: self._values(dataset[name], k) for r, name in self._along.items()}
            for r, values in parts.items():
                self._doubt(dataset[self._along[r]], values, where)
            scalars = {name: self._values(dataset[name], k) for name in self.scalars}
        some = next(iter(parts.values()))
        still = np.where(np.isnan(some), some, 0)
        stack = [parts[r] * self._factors[r] if r in parts else still for r in self._axes]
        return Slice(np.stack(stack, axis=-1), scalars)

    def _located(self, dataset: Any, name: str, where: str) -> Any:
        """A further dataset with its coordinates made one-dimensional like those of the first."""
        if name not in dataset.data_vars:
            raise DataError(f"{where}: has no variable {name!r}; {self.files[0]} has")
        return _cf_places.locate(dataset, name, where, [])[0]

    def _doubt(self, variable: Any, values: np.ndarray, where: str) -> None:
        """Warn, once a variable, of numbers that no flow has."""
        name = str(variable.name)
        if name in self._warned:
            return
        scale = float(variable.encoding.get("scale_factor", 1.0))
        packed = values
        if "scale_factor" in variable.encoding:
            packed = np.rint((values - float(variable.encoding.get("add_offset", 0.0))) / scale)
        found = unmarked_fill(packed)
        message = None if found is None else fill_message(found, name)
        if message is None and name in self._speeds:
            most = float(np.nanmax(np.abs(values), initial=0.0)) * self._speeds[name]
            about = (
                f"{variable.attrs.get('standard_name', '')} {variable.attrs.get('long_name', '')}"
            )
            limit = _FASTEST_WATER if "water" in about or name in _WATER else _FASTEST
            if most > limit:
                message = (
                    f"{name} is up to {most:.4g} m/s by its units {variable.attrs.get('units')!r}: "
                    f"more than {limit:g} m/s is not plausible. Look at the units, and whether "
                    "missing values are marked"
                )
        if message is not None:
            self._warned.add(name)
            warnings.warn(f"{where}: {message}", TraceWarning, stacklevel=4)

    def _kinds(self) -> tuple[str, ...]:
        """What each axis measures, in the words of `Frame`; nothing if nothing is said of any."""
        if all(axis.measure is None for axis in self._axes.values()):
            return ()
        words = {"X": "longitude", "Y": "latitude"}
        kinds = []
        for r, axis in self._axes.items():
            if axis.angle and r in words:
                kinds.append(words[r])
            elif axis.measure == "pressure":
                kinds.append("pascals")
            else:
                kinds.append("map" if r != "Z" and self._place.is_map else "metres")
        return tuple(kinds)

    def _note_map(self, where: str, notes: list[str]) -> None:
        """Say what a map projection means for lengths."""
        place = self._place
        if place.mapping == "rotated_latitude_longitude":
            notes.append("longitude and latitude are those of a rotated pole")
        across = [axis for r, axis in self._axes.items() if r != "Z"]
        if not place.is_map or any(axis.angle for axis in across):
            return
        scale = "of which the scale is not known"
        if place.scale is not None:
            low, high = place.scale
            scale = f"where a metre on the earth is {low:.3f} to {high:.3f} m"
        name = "" if place.mapping == "unknown" else f" ({place.mapping})"
        message = (
            f"coordinates are metres on a map{name}, {scale}: speeds along its axes are taken for "
            "metres of the map a second, so distances are wrong by its scale"
        )
        notes.append(message)
        if self._convert:
            warnings.warn(f"{where}: {message}", TraceWarning, stacklevel=4)

    def _values(self, variable: Any, k: int) -> np.ndarray:
        """One slice of a variable with its axes in the order x, y, z, each increasing."""
        time = self._roles.get("T")
        pick: dict[str, Any] = {d: 0 for d in variable.dims if variable.sizes[d] == 1}
        if time is not None and time in variable.dims:
            pick[time] = k
        kept = list(self._axes.values())
        values = variable.isel(pick).transpose(*[axis.name for axis in kept]).values
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        flips = tuple(n for n, axis in enumerate(kept) if axis.flipped)
        return np.flip(values, flips) if flips else values

    def _find_axes(self, u: Any, where: str, notes: list[str]) -> dict[str, _cf_axes.CfAxis]:
        axes = {}
        for r in "XYZ":
            if r not in self._roles:
                continue
            name = self._roles[r]
            if u.sizes[name] == 1:
                notes.append(f"{name} has one entry: that axis and its velocity are left out")
                continue
            axes[r] = _cf_axes.axis(name, r, u.coords[name], convert=self._convert, where=where)
        if len(axes) < 2:
            raise DataError(
                f"{where}: {u.name!r} has dimensions {dict(u.sizes)}; expected at least two axes "
                "of x, y and z with two entries or more"
            )
        return axes

    def _check_dims(self, variable: Any, u: Any, where: str, *, steady: bool = False) -> None:
        wanted = {d: n for d, n in u.sizes.items() if n > 1 or d == self._roles.get("T")}
        found = {d: n for d, n in variable.sizes.items() if n > 1 or d == self._roles.get("T")}
        if steady and self._roles.get("T") not in found:
            wanted.pop(self._roles.get("T"), None)
        if found != wanted:
            raise DataError(
                f"{where}: {variable.name!r} has dimensions {found}, {u.name!r} has {wanted}; "
                "expected values at the same places (an A-grid). Interpolate staggered components "
                "to one grid first, or leave one out"
                + way(" with velocity=('u', 'v')", " with --velocity u v")
            )

    def _conversions(self, first: Any, where: str, notes: list[str]) -> dict[str, Any]:
        """What each component is multiplied by: to metres, degrees or pascals a second."""
        factors: dict[str, Any] = {}
        for r, name in self._along.items():
            axis, units = self._axes[r], str(first[name].attrs.get("units", ""))
            sign = self._sign(r, first[name], where, notes)
            known = rate(units)
            if known is not None and known[0] == "length" and self._convert:
                self._speeds[name] = known[1]
            if axis.measure is None or not self._convert:
                factors[r] = sign
                if known is not None and self._convert:
                    self._note_bare(axis, where, notes)
                continue
            if known is None:
                if axis.angle:
                    message = (
                        f"{name} has units {units!r} and {axis.name} is in degrees: {name} is "
                        "taken as m/s. Set its attribute 'units'"
                        + way(", or use convert_units=False")
                    )
                    warnings.warn(f"{where}: {message}", TraceWarning, stacklevel=4)
                notes.append(f"{name} has units {units!r}: taken as m/s")
                known = ("length", 1.0)
            measure, factor = known
            if measure == axis.measure:
                factors[r] = sign * factor
            elif measure == "length" and axis.angle:
                factors[r] = sign * factor * self._per_metre(r, first, where, notes)
            else:
                raise DataError(
                    f"{where}: {name} is in {units!r}, but {axis.name} measures a {axis.measure}; "
                    "convert one of them"
                    + way(
                        ", leave this component out with velocity=('u', 'v'), or use "
                        "convert_units=False",
                        ", or leave this component out with --velocity u v",
                    )
                )
        return factors

    def _sign(self, r: str, variable: Any, where: str, notes: list[str]) -> float:
        """1 where a component points along its axis as it is read, -1 against it."""
        name, heading = str(variable.name), _cf_places.heading(variable)
        axis = self._axes[r]
        if axis.measure == "pressure":
            return -1.0 if str(variable.attrs.get("standard_name", "")).startswith("down") else 1.0
        if self._convert:
            _cf_places.check_heading(heading, r, name, self._place, where)
        if r == "Z" and axis.scale < 0:
            if heading:
                notes.append(f"{name} is positive {heading}s, as the file says")
            else:
                message = (
                    f"{axis.name} points down and is turned to z = -{axis.name}; {name} does not "
                    "say which way it points, and is taken as positive upwards. Set its attribute "
                    "'standard_name' to 'upward_sea_water_velocity' or 'downward_...'"
                )
                notes.append(message)
                warnings.warn(f"{where}: {message}", TraceWarning, stacklevel=4)
        return -1.0 if heading in ("westward", "southward", "downward") else 1.0

    def _note_bare(self, axis: _cf_axes.CfAxis, where: str, notes: list[str]) -> None:
        """Say how coordinates without units are taken; warn where they only count."""
        notes.append(f"{axis.name} has no units: taken as metres")
        if len(axis.nodes) > 2 and (np.diff(axis.nodes) == 1).all() and axis.nodes[0] in (0, 1):
            warnings.warn(
                f"{where}: {axis.name} counts {axis.nodes[0]:g}, {axis.nodes[1]:g}, ... and has no "
                "units: cells are taken to be 1 m long. Give it coordinates in metres or degrees, "
                "with their units",
                TraceWarning,
                stacklevel=4,
            )

    def _per_metre(self, r: str, first: Any, where: str, notes: list[str]) -> Any:
        """Degrees a metre: along a meridian, or along each parallel."""
        if r != "X":
            return 1 / DEGREE
        notes.append("velocities are in degrees a second")
        if "Y" in self._axes:
            latitude = self._axes["Y"].nodes
        else:
            u = first[self.velocity[0]]
            only = u.coords[self._roles["Y"]] if "Y" in self._roles else _alone(u, "Y")
            if only is None:
                raise DataError(f"{where}: a degree of longitude has no length without a latitude")
            latitude = np.atleast_1d(np.asarray(only.values, np.float64))
        if (np.abs(latitude) > 90 + 1e-6).any():
            most = np.abs(latitude).max()
            raise DataError(f"{where}: a latitude of {most:g} degrees; expected up to 90")
        cosine = np.cos(np.radians(latitude))
        # At a pole east has no meaning: particles there do not turn.
        scale = np.where(cosine > 1e-6, 1 / (DEGREE * np.maximum(cosine, 1e-6)), 0.0)
        if "Y" not in self._axes:
            self._parallel = float(latitude[0])
            return float(scale[0])
        return scale.reshape([-1 if q == "Y" else 1 for q in self._axes])

    def _settle_times(self, times: Any) -> None:
        names: list[str] = []
        found: list[float | None] = []
        name = self._roles.get("T")
        epoch, first_known = None, False
        for which, (where, dataset) in enumerate(self._datasets):
            if which:
                self._same_axes(dataset, where)
            u = dataset[self.velocity[0]]
            time = _cf_axes.coordinate_of(u, name) if name else _alone(u, "T")
            count = u.sizes[name] if name in u.dims else 1
            if time is not None and times is None:
                if not first_known:
                    epoch, first_known = _cf_time.epoch_of(time), True
                found.extend(float(t) for t in _cf_time.seconds(time, epoch, where))
            else:
                found.extend([None] * count)
            self._moments.extend((which, k) for k in range(count))
            names.extend([where] * count)
        if epoch is not None:
            self.epoch = f"seconds since {epoch[0]}, calendar {epoch[1]}"
        self.names = tuple(names)
        self.times = _times.settle(times, found, self.names)

    def _same_axes(self, dataset: Any, where: str) -> None:
        for name in (*self.velocity, *self.scalars):
            if name not in dataset.data_vars:
                raise DataError(f"{where}: has no variable {name!r}; {self.files[0]} has")
        u = dataset[self.velocity[0]]
        for r, known in self._axes.items():
            if known.name in u.coords and u.sizes.get(known.name, 1) > 1:
                here = _cf_axes.axis(
                    known.name, r, u.coords[known.name], convert=self._convert, where=where
                )
                if here.flipped == known.flipped and np.array_equal(here.nodes, known.nodes):
                    continue
            raise DataError(
                f"{where}: {known.name!r} differs from that of {self.files[0]}; expected the same "
                "grid at all times"
            )


def _alone(u: Any, which: str) -> Any:
    """The coordinate without a dimension that says where or when all of a variable is."""
    for name, coordinate in u.coords.items():
        if coordinate.ndim == 0 and _cf_axes.role(str(name), coordinate) == which:
            return coordinate
    return None


def open_files(files: Sequence[Path]) -> tuple[str, list[tuple[str, Any]]]:
    """The format, and each file with its name, opened but not read."""
    xarray = import_extra("xarray", extra="trace", purpose="reading NetCDF and Zarr")
    zarr = files[0].suffix.lower() in ZARR
    options = {"engine": "zarr", "consolidated": False} if zarr else {"engine": "netcdf4"}
    opened = []
    form = "Zarr" if zarr else "NetCDF"
    for i, path in enumerate(files):
        if not zarr:
            check_netcdf(path, f"{path} (file {i})")
        with reading(f"{path} (file {i})", form, DataError):
            place = checked_store(path) if zarr else path
            dataset = xarray.open_dataset(place, decode_times=False, cache=False, **options)
        opened.append((str(path), dataset))
    return form, opened
