"""Which arrays are the velocity. Nothing is guessed: a name says it, or the user does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxtrace.io._block import ArrayInfo
from jaxtrace.io._errors import DataError
from worldloom._way import way

VECTOR_NAMES = ("velocity", "vel", "u", "v")
COMPONENT_NAMES = (
    ("u", "v", "w"),
    ("uo", "vo", "wo"),
    ("vx", "vy", "vz"),
    ("velocity_x", "velocity_y", "velocity_z"),
    ("x_velocity", "y_velocity", "z_velocity"),
    ("water_u", "water_v", "water_w"),
    ("uvel", "vvel", "wvel"),
    ("vozocrtx", "vomecrty", "vovecrtz"),
    ("ugos", "vgos", ""),
    ("u10", "v10", ""),
)
STANDARD_NAMES = (
    ("eastward_sea_water_velocity", "northward_sea_water_velocity", "upward_sea_water_velocity"),
    ("sea_water_x_velocity", "sea_water_y_velocity", "upward_sea_water_velocity"),
    (
        "surface_eastward_sea_water_velocity",
        "surface_northward_sea_water_velocity",
        "",
    ),
    (
        "surface_geostrophic_eastward_sea_water_velocity",
        "surface_geostrophic_northward_sea_water_velocity",
        "",
    ),
    ("eastward_wind", "northward_wind", "upward_air_velocity"),
    ("x_wind", "y_wind", "upward_air_velocity"),
    ("sea_ice_x_velocity", "sea_ice_y_velocity", ""),
)


def listing(arrays: Iterable[ArrayInfo]) -> str:
    """What there is to choose from."""
    return "; ".join(str(array) for array in arrays) or "none"


def by_name(arrays: Sequence[ArrayInfo], name: str, where: str) -> ArrayInfo:
    """The array of that name; the one on points where there are two."""
    for place in ("points", "cells"):
        for array in arrays:
            if array.name == name and array.place == place:
                return array
    raise DataError(f"{where}: no array is called {name!r}; there are: {listing(arrays)}")


def choose(
    arrays: Sequence[ArrayInfo], wanted: str | Sequence[str] | None, dim: int, where: str
) -> tuple[ArrayInfo, ...]:
    """The arrays of a VTK file that make up the velocity: one vector, or `dim` scalars."""
    if wanted is None:
        return _obvious(arrays, dim, where)
    if isinstance(wanted, str):
        enough = [a for a in arrays if a.name != wanted or a.components >= dim]
        array = by_name(enough if any(a.name == wanted for a in enough) else arrays, wanted, where)
        if array.components < dim:
            raise DataError(
                f"{where}: velocity={wanted!r} has {array.components} components, and the data is "
                f"{dim}-D. There are: {listing(arrays)}"
            )
        return (array,)
    found = tuple(by_name(arrays, name, where) for name in wanted)
    many = [array.name for array in found if array.components != 1]
    if len(found) != dim or many:
        raise DataError(
            f"{where}: velocity={list(wanted)}: expected {dim} arrays of one component each"
        )
    return found


def _obvious(arrays: Sequence[ArrayInfo], dim: int, where: str) -> tuple[ArrayInfo, ...]:
    vectors = [a for a in arrays if a.name.lower() in VECTOR_NAMES and 2 <= a.components <= 3]
    vectors = [a for a in vectors if a.components >= dim]
    names = {a.name for a in vectors}
    if len(names) == 1:
        return (by_name(vectors, names.pop(), where),)
    if len(names) > 1:
        raise DataError(
            f"{where}: {sorted(names)} may each be the velocity"
            f"{way('; say which with velocity=...', '; say which with --velocity NAME')}. "
            f"There are: {listing(arrays)}"
        )
    scalars = {a.name.lower(): a.name for a in arrays if a.components == 1}
    for triple in COMPONENT_NAMES:
        if all(name in scalars for name in triple[:dim]):
            return tuple(by_name(arrays, scalars[name], where) for name in triple[:dim])
    advice = way(
        "; say which with velocity='name' or velocity=('u', 'v', 'w')",
        "; say which with --velocity NAME or --velocity U V W",
    )
    raise DataError(
        f"{where}: no array is obviously the velocity{advice}. There are: {listing(arrays)}"
    )
