"""Where a grid is on the earth: two-dimensional longitudes, map projections, what is east."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from jaxtrace.fields._frame import EARTH_RADIUS
from jaxtrace.io._cf_axes import role
from jaxtrace.io._errors import DataError
from jaxtrace.io._units import quantity
from worldloom._way import way

_SLACK = 1e-3  # of the smallest step: coordinates that were stored in single precision
_METRES = (0.9, 1.1)  # lengths by axes over lengths by longitude and latitude
_MAP = (0.2, 5.0)
_TURNED = math.radians(0.5)
_ALIGNED = ("latitude_longitude", "mercator", "lambert_cylindrical_equal_area")


@dataclasses.dataclass(frozen=True)
class Place:
    """What is known of the axes of a variable beside their coordinates.

    **Attributes:**

    - `mapping`: the name of its map projection, `""` for none.
    - `scale`: the least and the greatest length on the map of a metre on the earth, if known.
    - `turn`: the greatest angle between x and east, in radians, if known.
    """

    mapping: str = ""
    scale: tuple[float, float] | None = None
    turn: float | None = None

    @property
    def is_map(self) -> bool:
        """Whether axes in metres are those of a map."""
        return self.mapping not in ("", "latitude_longitude", "rotated_latitude_longitude")

    @property
    def faces_east(self) -> bool:
        """Whether x is east and y is north, as far as is known."""
        if self.turn is not None:
            return self.turn <= _TURNED
        return self.mapping in ("", *_ALIGNED)


def locate(dataset: Any, name: str, where: str, notes: list[str]) -> tuple[Any, Place]:
    """The dataset with two-dimensional coordinates made one-dimensional, and what they say.

    Longitudes and latitudes that are those of a rectilinear grid become its axes. Beside axes in
    metres they say how the axes are turned, and whether the metres are metres. Others are refused.
    """
    u = dataset[name]
    mapping = _mapping(dataset, u)
    pair = _two_dimensional(dataset, u)
    if pair is None:
        return dataset, Place(mapping)
    lon, lat = pair
    straight = _straight(lon, lat)
    if straight is not None:
        old = [n for n in (lon.name, lat.name, *straight) if n in dataset.variables]
        notes.append(f"{lon.name} and {lat.name} are two-dimensional, but of a rectilinear grid")
        axes = {dim: (dim, values, about) for dim, (values, about) in straight.items()}
        return dataset.drop_vars(old).assign_coords(axes), Place("")
    return dataset, _beside(u, lon, lat, mapping, where)


def _mapping(dataset: Any, u: Any) -> str:
    """The name of the map projection of a variable; `"unknown"` where it is named and not there."""
    word = str(u.attrs.get("grid_mapping", u.encoding.get("grid_mapping", "")))
    if word:
        variable = dataset.variables.get(word.split(":")[0].split()[0])
        name = None if variable is None else variable.attrs.get("grid_mapping_name")
        return str(name or "unknown")
    standard = {str(u.coords[d].attrs.get("standard_name", "")) for d in u.dims if d in u.coords}
    if standard & {"projection_x_coordinate", "projection_y_coordinate"}:
        return "unknown"
    if standard & {"grid_longitude", "grid_latitude"}:
        return "rotated_latitude_longitude"
    return ""


def _two_dimensional(dataset: Any, u: Any) -> tuple[Any, Any] | None:
    """Longitude and latitude over the same two dimensions of a variable, if there are any."""
    found: dict[str, Any] = {}
    for names in (u.coords, dataset.variables):
        for name in names:
            variable = dataset[name]
            which = _angle(str(name), variable)
            if which is None or which in found or not set(variable.dims) <= set(u.dims):
                continue
            time = [d for d in variable.dims if d in dataset.coords and _is_time(dataset, d)]
            variable = variable.isel(dict.fromkeys(time, 0)).squeeze(drop=True)
            if variable.ndim == 2:
                found[which] = variable
    if set(found) != {"X", "Y"} or set(found["X"].dims) != set(found["Y"].dims):
        return None
    return found["X"], found["Y"].transpose(*found["X"].dims)


def _is_time(dataset: Any, dim: str) -> bool:
    return role(str(dim), dataset[dim]) == "T"


def _angle(name: str, variable: Any) -> str | None:
    """`"X"` for a longitude, `"Y"` for a latitude, `None` for anything else."""
    if variable.ndim < 2 or variable.dtype.kind not in "fiu":
        return None
    standard = str(variable.attrs.get("standard_name", ""))
    units = str(variable.attrs.get("units", "")).lower()
    for which, word, end in (
        ("X", "longitude", ("east", "_e")),
        ("Y", "latitude", ("north", "_n")),
    ):
        if standard == word or (units.startswith("degree") and units.endswith(end)):
            return which
        short = word[:3]
        if not standard and name.lower().removeprefix("nav_").startswith((short, "x" + short)):
            return which
    return None


def _straight(lon: Any, lat: Any) -> dict[str, tuple[np.ndarray, dict[str, str]]] | None:
    """One-dimensional longitudes and latitudes by dimension; `None` where they are curved."""
    east = {"units": "degrees_east", "standard_name": "longitude"}
    north = {"units": "degrees_north", "standard_name": "latitude"}
    for along, across in ((1, 0), (0, 1)):
        x = _row(np.unwrap(np.asarray(lon.values, np.float64), period=360.0, axis=along), across)
        y = _row(np.asarray(lat.values, np.float64), along)
        if x is not None and y is not None:
            return {lon.dims[along]: (x, east), lon.dims[across]: (y, north)}
    return None


def _row(values: np.ndarray, across: int) -> np.ndarray | None:
    """The values along one axis, if they do not depend on the other and go one way."""
    if np.isnan(values).all(axis=across).any():
        return None
    row = np.nanmean(values, axis=across)
    steps = np.diff(row)
    if not len(steps) or not ((steps > 0).all() or (steps < 0).all()):
        return None
    spread = np.nanmax(values, axis=across) - np.nanmin(values, axis=across)
    return row if spread.max() <= _SLACK * np.abs(steps).min() else None


def _beside(u: Any, lon: Any, lat: Any, mapping: str, where: str) -> Place:
    """What curved longitudes and latitudes say of axes in metres; refused beside any others."""
    dims = lon.dims
    axes = [u.coords[d] if d in u.coords and u.coords[d].ndim == 1 else None for d in dims]
    if any(axis is None for axis in axes):
        raise DataError(
            f"{where}: {u.name!r} is on two-dimensional {lon.name} and {lat.name} (a curvilinear "
            "grid): interpolate it to a rectilinear one first"
        )
    measures = [quantity(str(axis.attrs.get("units", ""))) for axis in axes if axis is not None]
    if all(found is not None and found[0] == "angle" for found in measures):
        return Place(mapping)
    lengths, turns = [], []
    for n, (axis, found) in enumerate(zip(axes, measures, strict=True)):
        assert axis is not None
        step = np.diff(np.asarray(axis.values, np.float64)) * (found[1] if found else 1.0)
        east, north = _ways(lon.values, lat.values, n)
        shape = [-1 if k == n else 1 for k in range(2)]
        lengths.append((np.abs(step).reshape(shape) / np.hypot(east, north)).ravel())
        if role(str(axis.name), axis) == "X":
            turns.append(np.arctan2(north, east * np.sign(step).reshape(shape)).ravel())
    ratio = np.concatenate(lengths)
    ratio = ratio[np.isfinite(ratio)]
    low, high = _MAP if mapping else _METRES
    middle = float(np.median(ratio)) if ratio.size else math.nan
    if not low <= middle <= high:
        raise DataError(
            f"{where}: {u.name!r} is on two-dimensional {lon.name} and {lat.name}, and its "
            f"coordinates {list(dims)} are not metres: a metre by {lon.name} and {lat.name} is "
            f"{middle:.3g} by them. Interpolate it to a rectilinear grid first, or give the "
            "coordinates in metres, with their units"
        )
    angle = np.concatenate(turns) if turns else np.zeros(0)
    angle = np.abs(angle[np.isfinite(angle)])
    return Place(
        mapping or "unknown",
        (float(ratio.min()), float(ratio.max())),
        float(angle.max()) if angle.size else None,
    )


def _ways(lon: Any, lat: Any, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Metres east and north from each node to the next along an axis."""
    lon, lat = np.asarray(lon, np.float64), np.radians(np.asarray(lat, np.float64))
    first, after = (np.take(lat, range(*s.indices(lat.shape[axis])), axis) for s in _NEXT)
    turn = np.radians((np.diff(lon, axis=axis) + 180.0) % 360.0 - 180.0)
    return EARTH_RADIUS * turn * np.cos((first + after) / 2), EARTH_RADIUS * (after - first)


_NEXT = (slice(None, -1), slice(1, None))


def heading(variable: Any) -> str:
    """Where a component points: eastward, westward, northward, southward, upward, downward, or ''.

    By its standard name, else by its long name, else by `positive`.
    """
    for name in ("standard_name", "long_name"):
        words = str(variable.attrs.get(name, "")).lower().replace("_", " ").split()
        for word in ("eastward", "westward", "northward", "southward", "upward", "downward"):
            if word in words:
                return word
    positive = str(variable.attrs.get("positive", "")).lower()
    return {"up": "upward", "down": "downward"}.get(positive, "")


def check_heading(heading: str, r: str, name: str, place: Place, where: str) -> None:
    """Refuse a component that does not point along its axis."""
    along = {"X": ("eastward", "westward"), "Y": ("northward", "southward")}
    along["Z"] = ("upward", "downward")
    if heading and heading not in along[r]:
        raise DataError(
            f"{where}: {name!r} is a velocity {heading}, and it was taken for the component along "
            f"{r.lower()}; name the components in the order of the axes"
            + way(", as in velocity=('u', 'v')", ", as in --velocity u v")
        )
    if heading and r != "Z" and not place.faces_east:
        about = f"of {place.mapping}" if place.mapping != "unknown" else "of a map"
        if place.turn is not None:
            about = f"turned by up to {math.degrees(place.turn):.3g} degrees from east"
        raise DataError(
            f"{where}: {name!r} is a velocity {heading}, and the axes are {about}, not east and "
            "north: turn the components to the axes of the grid first"
        )
