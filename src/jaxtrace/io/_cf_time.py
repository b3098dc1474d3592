"""Times of NetCDF and Zarr files, in seconds, whatever their units and calendar."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxtrace.io._errors import DataError
from worldloom._extras import import_extra

EPOCH = "1970-01-01 00:00:00"


def epoch_of(variable: Any) -> tuple[str, str] | None:
    """The date that times count from, and their calendar; `None` for plain numbers."""
    units = str(variable.encoding.get("units") or variable.attrs.get("units") or "")
    calendar = str(variable.encoding.get("calendar") or variable.attrs.get("calendar") or "")
    calendar = calendar.lower() or "standard"
    if " since " in units:
        return units.partition(" since ")[2].strip(), calendar
    if variable.dtype.kind == "M":
        return EPOCH, "standard"
    if variable.dtype.kind == "O":
        return EPOCH, str(np.ravel(variable.values)[0].calendar)
    return None


def seconds(variable: Any, epoch: tuple[str, str] | None, where: str) -> np.ndarray:
    """Times in seconds since the epoch of the first file; plain numbers as they are."""
    own = epoch_of(variable)
    values = np.atleast_1d(variable.values)
    if own is None or epoch is None:
        if own != epoch:
            raise DataError(
                f"{where}: its time has {'no units' if own is None else 'units'}, that of the "
                "first file is different; expected the same kind of time in all files"
            )
        return values.astype(np.float64)
    cftime = import_extra("cftime", extra="trace", purpose="reading times of NetCDF files")
    reference, calendar = epoch
    if _plain(own[1]) != _plain(calendar):
        raise DataError(
            f"{where}: its calendar is {own[1]!r}, that of the first file {calendar!r}; expected "
            "one calendar"
        )
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            raise DataError(f"{where}: a time is missing")
        micro = values.astype("datetime64[us]").astype(np.int64)
        start = cftime.date2num(
            cftime.num2date(0, f"seconds since {reference}", calendar),
            f"microseconds since {EPOCH}",
            calendar,
        )
        return (micro - int(start)) / 1e6
    try:
        if values.dtype.kind != "O":
            values = cftime.num2date(values, str(variable.attrs["units"]), own[1])
        return np.asarray(
            cftime.date2num(values, f"seconds since {reference}", calendar), np.float64
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{where}: times in {variable.attrs.get('units')!r} of the calendar {own[1]!r}: {error}"
        ) from error


def _plain(calendar: str) -> str:
    """One name for calendars that have two."""
    twins = {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}
    return twins.get(calendar, calendar)
