"""What the numbers of a field mean: its axes, its units, and the date its clock counts from."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxtrace._errors import FieldError
from worldloom._extras import import_extra

EARTH_RADIUS = 6_371_000.0
"""Metres. One degree of latitude is 111,195 m."""

DEGREE = EARTH_RADIUS * math.pi / 180
"""Metres a degree of latitude."""

AXES = ("longitude", "latitude", "metres", "pascals", "map")
PER_METRE, PER_COORDINATE = "m/s", "coordinates/s"
_LEAST_COSINE = 1e-6  # at a pole a degree of longitude has no length


@dataclasses.dataclass(frozen=True)
class Frame:
    """What the coordinates, the values and the clock of a field mean.

    A dataset knows its frame and gives it to its fields. Say it for fields of your own that meet
    such fields: speeds in m/s are then converted to degrees a second, and clocks are aligned.

    **Arguments:**

    - `axes`: what each coordinate measures: `"longitude"` and `"latitude"` (degrees), `"metres"`,
        `"pascals"`, or `"map"` (metres of a map projection). Nothing is known if left out.
    - `units`: of the values. A velocity is in `"m/s"`, or in `"coordinates/s"`: degrees a second
        along longitude and latitude.
    - `epoch`: what the clock counts seconds from, such as `"2000-01-01"`, or as a dataset says it:
        `"seconds since 2000-01-01, calendar noleap"`.
    - `parallel`: the latitude of a section along longitude.

    ```python
    import jax.numpy as jnp
    import jaxtrace as jt

    east = jt.AnalyticField(
        lambda x, t: jnp.array([1.0, 0.0]),
        dim=2,
        frame=jt.Frame(axes=("longitude", "latitude"), units="m/s"),
    )
    tracks = jt.create_tracker(field=east).track_particles([[0.0, 60.0]], (0, 86400), 24)
    assert abs(tracks.path_length()[0] - 86400) < 100
    ```
    """

    axes: tuple[str, ...] = ()
    units: str = ""
    # Other dates are the same program.
    epoch: str = dataclasses.field(default="", compare=False)
    parallel: float | None = None

    def __post_init__(self) -> None:
        unknown = [axis for axis in self.axes if axis not in AXES]
        if unknown or len(self.axes) not in (0, 2, 3):
            raise FieldError(f"axes={self.axes}: expected two or three of {AXES}")
        if self.epoch and not self.epoch.startswith("seconds since "):
            object.__setattr__(self, "epoch", f"seconds since {self.epoch}, calendar standard")

    @property
    def flat(self) -> bool:
        """Whether a unit of each coordinate is a metre, or nothing is known of it."""
        return all(axis in ("metres", "map") for axis in self.axes)

    def metres(self, x: Any) -> Any:
        """Metres a unit of each coordinate at places `[dim, ...]`, in the same shape."""
        if self.flat:
            return (jnp if isinstance(x, jax.Array) else np).ones_like(x)
        use = jnp if isinstance(x, jax.Array) else np
        rows = []
        for axis in self.axes:
            if axis == "longitude":
                rows.append(DEGREE * use.maximum(self.cosine(x), _LEAST_COSINE))
            else:
                rows.append(use.full_like(x[0], DEGREE if axis == "latitude" else 1.0))
        return use.stack(rows)

    def cosine(self, x: Any) -> Any:
        """The cosine of the latitude at places `[dim, ...]`."""
        use = jnp if isinstance(x, jax.Array) else np
        if "latitude" in self.axes:
            return use.cos(x[self.axes.index("latitude")] * (math.pi / 180))
        if self.parallel is None:
            raise FieldError(
                "a degree of longitude has no length without a latitude: say that of the section "
                "with Frame(parallel=...)"
            )
        return use.full_like(x[0], math.cos(math.radians(self.parallel)))

    def describe(self) -> str:
        """The axes and the units of the values, in words."""
        units = {"longitude": "degrees", "latitude": "degrees", "pascals": "Pa", "map": "m"}
        axes = [f"{axis} in {units.get(axis, 'm')}" for axis in self.axes]
        if not self.flat and self.units == PER_COORDINATE:
            short = {"longitude": "degrees/s", "latitude": "degrees/s", "pascals": "Pa/s"}
            values = ", ".join(short.get(axis, "m/s") for axis in self.axes)
        else:
            values = "m/s" if self.axes and self.units == PER_COORDINATE else self.units
        return f"{', '.join(axes) or 'coordinates as they are'}; values in {values or '?'}"


def merged(frames: list[Frame], what: str) -> Frame:
    """What fields have in common: the axes and the epoch of the first that knows them."""
    known = [frame for frame in frames if frame.axes]
    axes = known[0].axes if known else ()
    for frame in known[1:]:
        if frame.axes != axes:
            raise FieldError(
                f"{what} are on different axes: {axes} and {frame.axes}; bring them to one grid "
                "first"
            )
    parallels = [frame.parallel for frame in frames if frame.parallel is not None]
    epochs = [frame.epoch for frame in frames if frame.epoch]
    return Frame(
        axes,
        epoch=epochs[0] if epochs else "",
        parallel=parallels[0] if parallels else None,
    )


def seconds_between(epoch: str, other: str) -> float:
    """Seconds from one epoch to another."""
    if epoch == other:
        return 0.0
    cftime = import_extra("cftime", extra="trace", purpose="aligning clocks")
    (date, calendar), (after, own) = _parts(epoch), _parts(other)
    if calendar != own:
        raise FieldError(
            f"the clocks {epoch!r} and {other!r} have different calendars; bring the times to one "
            "calendar first"
        )
    try:
        moment = cftime.num2date(0, f"seconds since {after}", calendar)
        return float(cftime.date2num(moment, f"seconds since {date}", calendar))
    except ValueError as error:
        raise FieldError(f"epochs {epoch!r} and {other!r}: {error}") from error


def dates(times: np.ndarray, epoch: str) -> list[str] | None:
    """Dates of times, to the minute, or to the second where they are near; `None` without epoch."""
    if not epoch:
        return None
    cftime = import_extra("cftime", extra="trace", purpose="showing dates")
    date, calendar = _parts(epoch)
    moments = cftime.num2date(np.asarray(times), f"seconds since {date}", calendar)
    near = np.ptp(times) < 600 if len(times) > 1 else False
    form = "%Y-%m-%d %H:%M:%S" if near else "%Y-%m-%d %H:%M"
    return [moment.strftime(form) for moment in np.atleast_1d(moments)]


def browser_time(time: float, epoch: str) -> float | None:
    """Milliseconds since 1970 of a time; `None` on calendars that browsers do not know."""
    if not epoch:
        return None
    cftime = import_extra("cftime", extra="trace", purpose="showing dates")
    date, calendar = _parts(epoch)
    moment = cftime.num2date(time, f"seconds since {date}", calendar)
    if calendar not in ("standard", "proleptic_gregorian") or moment.year < 1583:
        return None
    return float(cftime.date2num(moment, "milliseconds since 1970-01-01", calendar))


def _parts(epoch: str) -> tuple[str, str]:
    """The date and the calendar, which has one name only."""
    date, _, calendar = epoch.removeprefix("seconds since ").partition(", calendar ")
    twins = {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}
    return date, twins.get(calendar, calendar) or "standard"
