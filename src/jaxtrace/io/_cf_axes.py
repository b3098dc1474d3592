"""The axes of NetCDF and Zarr variables, found by the CF conventions."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jaxtrace.io._errors import DataError
from jaxtrace.io._units import quantity

_STANDARD = {
    "longitude": "X",
    "projection_x_coordinate": "X",
    "grid_longitude": "X",
    "latitude": "Y",
    "projection_y_coordinate": "Y",
    "grid_latitude": "Y",
    "depth": "Z",
    "height": "Z",
    "altitude": "Z",
    "air_pressure": "Z",
    "time": "T",
}
_NAMES = {
    "X": ("x", "lon", "longitude", "nav_lon", "xc", "xt_ocean", "xu_ocean"),
    "Y": ("y", "lat", "latitude", "nav_lat", "yc", "yt_ocean", "yu_ocean"),
    "Z": ("z", "depth", "deptht", "depthu", "lev", "level", "height", "altitude", "pressure"),
    "T": ("t", "time", "time_counter", "ocean_time"),
}


@dataclasses.dataclass(frozen=True, eq=False)
class CfAxis:
    """One axis: the dimension, its coordinates in increasing order, and how they were made.

    `angle` is true for longitude and latitude. `measure` is what the coordinates measure; `scale`
    is what those in the file were multiplied by, -1 for a depth.
    """

    name: str
    nodes: np.ndarray
    flipped: bool
    measure: str | None
    scale: float
    period: float | None = None

    @property
    def angle(self) -> bool:
        """Whether the coordinates are degrees."""
        return self.measure == "angle"


def role(name: str, variable: Any) -> str | None:
    """`"X"`, `"Y"`, `"Z"`, `"T"`, or `None`: by axis, standard name, units, then name."""
    attrs = variable.attrs
    if str(attrs.get("axis", "")).upper() in ("X", "Y", "Z", "T"):
        return str(attrs["axis"]).upper()
    standard = str(attrs.get("standard_name", ""))
    if standard in _STANDARD:
        return _STANDARD[standard]
    units = str(attrs.get("units", "")).lower()
    if " since " in units or variable.dtype.kind == "M":
        return "T"
    if variable.dtype.kind == "O" and name.lower() in _NAMES["T"]:
        return "T"
    if units.startswith(("degree", "degrees")) and units.endswith(("east", "_e")):
        return "X"
    if units.startswith(("degree", "degrees")) and units.endswith(("north", "_n")):
        return "Y"
    if str(attrs.get("positive", "")):
        return "Z"
    for one, names in _NAMES.items():
        if name.lower() in names:
            return one
    return None


def coordinate_of(variable: Any, dim: str) -> Any:
    """The coordinates along a dimension; `None` where xarray would count from 0."""
    if dim in variable.coords:
        return variable.coords[dim]
    return None


def roles(variable: Any, where: str) -> dict[str, str]:
    """For each of X, Y, Z, T the dimension of a variable that is that axis."""
    found: dict[str, str] = {}
    for dim in variable.dims:
        length = variable.sizes[dim]
        coordinate = coordinate_of(variable, dim)
        which = None
        if coordinate is not None:
            which = role(dim, coordinate)
        elif dim.lower() in _NAMES["T"]:
            which = "T"
        if coordinate is None and which is None and length > 1:
            two = [n for n, c in variable.coords.items() if c.ndim == 2 and dim in c.dims]
            why = (
                f"its coordinates {two} are two-dimensional (a curvilinear grid): interpolate it "
                "to a rectilinear one first"
                if two
                else "it has no coordinates: expected a variable of the same name"
            )
            raise DataError(f"{where}: dimension {dim!r} of {variable.name!r}: {why}")
        if which is None:
            if length == 1:
                continue
            raise DataError(
                f"{where}: dimension {dim!r} of {variable.name!r} ({length} long) is none of x, y, "
                f"z and time; choose one entry with dataset.isel({dim}=0), or mark it with the "
                "attribute 'axis'"
            )
        if which in found:
            raise DataError(f"{where}: {found[which]!r} and {dim!r} are both the {which} axis")
        found[which] = dim
    return found


def axis(name: str, which: str, coordinate: Any, *, convert: bool, where: str) -> CfAxis:
    """The axis of one dimension. Depth points down in files: here it is turned to point up."""
    values = np.asarray(coordinate.values, np.float64)
    if not np.isfinite(values).all():
        raise DataError(f"{where}: the coordinate {name!r} has values that are not finite")
    measured = quantity(str(coordinate.attrs.get("units", "")))
    measure, scale = measured if measured is not None else (None, 1.0)
    if measure == "angle" and which == "X":
        values = np.unwrap(values, period=360.0)
    if not convert:
        scale = 1.0
    if which == "Z" and measure != "pressure" and _points_down(name, coordinate, values):
        scale = -scale
    values = values * scale
    steps = np.diff(values)
    if not ((steps > 0).all() or (steps < 0).all()):
        i = int(np.argmax(steps * np.sign(steps[0]) <= 0))
        raise DataError(
            f"{where}: the coordinate {name!r} must increase or decrease all along: entry {i} is "
            f"{values[i]:g}, entry {i + 1} is {values[i + 1]:g}"
        )
    flipped = bool(steps[0] < 0)
    values = values[::-1] if flipped else values
    period = _circle(values) if measure == "angle" and which == "X" else None
    return CfAxis(name, values, flipped, measure, scale, period)


def _points_down(name: str, coordinate: Any, values: np.ndarray) -> bool:
    positive = str(coordinate.attrs.get("positive", "")).lower()
    if positive:
        return positive == "down"
    if coordinate.attrs.get("standard_name") == "depth":
        return True
    return name.lower().startswith("depth") and bool((values >= 0).all())


def _circle(nodes: np.ndarray) -> float | None:
    """360 where the nodes go round the earth: the gap that is left is none, or like a step."""
    gap, steps = 360.0 - float(nodes[-1] - nodes[0]), np.diff(nodes)
    closed = abs(gap) <= 1e-3 * steps.min()
    like_a_step = len(nodes) > 3 and 0.5 * steps.min() <= gap <= 1.01 * steps.max()
    return 360.0 if closed or like_a_step else None
