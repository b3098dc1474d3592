"""`write_viewer`: one page to turn, zoom and play tracks on."""

from __future__ import annotations

import base64
import dataclasses
import os
from pathlib import Path

import numpy as np

from jaxtrace._errors import TraceError
from jaxtrace._status import Status
from jaxtrace.fields._frame import browser_time, dates
from jaxtrace.tracking import Trajectory
from jaxtrace.visualization._pack import alive_counts, choose, gather, pack
from worldloom import report
from worldloom.report._replay import script_json
from worldloom.store._files import disk_errors

_SECONDS = 12  # that a whole run plays
_FLATTEST = 0.25  # of the longest side, where sides are very unlike


class ViewerError(TraceError):
    """There is nothing to show, or not in that way."""


@dataclasses.dataclass(frozen=True, eq=False)
class Viewer:
    """Tracks as a piece of a `worldloom.report` page: to turn, zoom and play.

    Drag turns, with Shift it moves; the wheel zooms once the picture was clicked. Flow in two
    dimensions is seen from above. The page draws a smooth way between records.

    Keys: space plays and pauses, left and right step, up and down change the speed, `+` and `-`
    zoom, `w`, `a`, `s` and `d` turn, `c` changes the colour, `t` the trails, `r` goes back.

    **Arguments:**

    - `trajectory`: the tracks.
    - `colour_by`: what is shown first: `"speed"`, `"age"`, `"status"`, or the name of a scalar.
    - `max_bytes`: about how large the data may be; records and then particles are thinned out
        until they fit, and the page says so.
    - `axes`: names of the coordinates.
    - `caption`: a line below.
    - `autoplay`: play as soon as it is seen.
    """

    trajectory: Trajectory
    colour_by: str = "speed"
    max_bytes: int = 20_000_000
    axes: tuple[str, ...] = ("x", "y", "z")
    caption: str = ""
    autoplay: bool = False

    def render(self) -> report.Fragment:
        """The data, and the scripts that make a viewer of them."""
        tracks = self.trajectory
        if not (tracks.T and tracks.N):
            raise ViewerError(f"there is nothing to show: {tracks.N} particles, {tracks.T} times")
        if self.max_bytes < 1:
            raise ViewerError(f"max_bytes={self.max_bytes}: expected a positive number")
        names = self._colours()
        if self.colour_by not in (*names, "status"):
            raise ViewerError(
                f"colour_by={self.colour_by!r}: expected one of {[*names, 'status']}"
                + ("; speed needs velocities or two records" if self.colour_by == "speed" else "")
            )
        choice = choose(tracks, names, int(0.74 * self.max_bytes))  # base64 takes the rest
        packed = pack(gather(tracks, choice, names), names)
        extent = packed.high - packed.low
        scale = extent / extent.max()
        stretched = bool(scale.min() < _FLATTEST / 2)
        about = {
            "count": len(choice.particles),
            "total": tracks.N,
            "records": tracks.T,
            "dim": tracks.dim,
            "times": tracks.times[choice.rows].tolist(),
            "dates": dates(tracks.times[choice.rows], tracks.frame.epoch),
            "start": browser_time(float(tracks.times[choice.rows[0]]), tracks.frame.epoch),
            "alive": alive_counts(tracks, choice.rows),
            "low": packed.low.tolist(),
            "high": packed.high.tolist(),
            "scale": (np.maximum(scale, _FLATTEST) if stretched else scale).tolist(),
            "stretched": stretched,
            "axes": list(self.axes[: tracks.dim]),
            "ranges": {name: list(ends) for name, ends in packed.ranges.items()},
            "colour": self.colour_by,
            "status": [status.name.lower().replace("_", " ") for status in Status],
            "seconds": _SECONDS,
            "autoplay": self.autoplay,
        }
        data = base64.b64encode(packed.data).decode()
        own = "jaxtrace.visualization"
        return report.Fragment(
            '<figure class="tracks" role="group" aria-label="Tracks of particles">'
            '<div class="tracks-stage"><noscript><p class="tracks-wait">The tracks appear here '
            "where scripts may run.</p></noscript></div>"
            f'<script type="application/json" class="about">{script_json(about)}</script>'
            f'<script type="text/plain" class="data">{data}</script>'
            f"{_caption(self.caption)}</figure>",
            (
                report.Asset.load("transport.css"),
                report.Asset.load("tracks.css", package=own),
                report.Asset.load("transport.js"),
                report.Asset.load("tracks_camera.js", package=own),
                report.Asset.load("tracks_paint.js", package=own),
                report.Asset.load("tracks.js", package=own),
            ),
        )

    def _colours(self) -> list[str]:
        """What has a number for each particle, and so a colour."""
        tracks = self.trajectory
        names = ["speed"] if tracks.velocities is not None or tracks.T > 1 else []
        return [*names, "age", *(name for name, v in tracks.scalars.items() if v.ndim == 2)]


def write_viewer(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    title: str = "Tracks",
    colour_by: str = "speed",
    max_bytes: int = 20_000_000,
    axes: tuple[str, ...] = ("x", "y", "z"),
) -> Path:
    """Write one self-contained HTML page on which tracks can be turned, zoomed and played.

    The arguments are those of [`jaxtrace.visualization.Viewer`][].

    ```python
    import jax.numpy as jnp
    import jaxtrace as jt
    from jaxtrace.visualization import write_viewer

    field = jt.AnalyticField(lambda x, t: jnp.stack([-x[1], x[0], 0.1 + 0.0 * t]), dim=3)
    seeds = jt.random_seeds(200, [[-1, -1, 0], [1, 1, 1]])
    tracks = jt.create_tracker(field=field).track_particles(seeds, (0.0, 6.0), 60)
    write_viewer(tracks, "tracks.html", title="A helix")
    ```
    """
    ended = ", ".join(
        f"{n:,} {status.name.lower().replace('_', ' ')}"
        for status, n in (trajectory.counts() if trajectory.T else {}).items()
    )
    subtitle = (
        f"{trajectory.N:,} particles at {trajectory.T:,} times"
        + (f", {_moments(trajectory)}" if trajectory.T else "")
        + f". At the end: {ended}."
    )
    view = Viewer(trajectory, colour_by=colour_by, max_bytes=max_bytes, axes=axes)
    page = report.Report(title, subtitle=subtitle).add(view)
    with disk_errors("write", Path(path)):
        return page.save(Path(path))


def _moments(trajectory: Trajectory) -> str:
    ends = trajectory.times[[0, -1]]
    first, last = dates(ends, trajectory.frame.epoch) or (f"{end:.10g}" for end in ends)
    return f"{first} to {last}"


def _caption(text: str) -> str:
    return f"<figcaption>{report.escape(text)}</figcaption>" if text else ""
