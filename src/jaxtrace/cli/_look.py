"""`worldloom trace info` and `view`: what is in files, and a page to look at it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from jaxtrace._errors import TraceWarning
from jaxtrace.cli._options import Flow, check_ending
from worldloom.cli import Command, OutputFile, UsageError, plain_warnings

if TYPE_CHECKING:
    from jaxtrace.tracking import Trajectory


@dataclasses.dataclass(frozen=True)
class Info(Flow):
    """What `worldloom trace info` does."""


def info(config: Info) -> None:
    """Print what is known of a flow, or of tracks."""
    tracks = find_tracks(config.files)
    if tracks is None:
        with plain_warnings(TraceWarning):
            print(config.open().describe())
        return
    print(tracks)
    for status, count in tracks.counts().items():
        print(f"  {status.name.lower():<15}{count:,}: {status.message}")
    low, high = tracks.bounds()
    for axis, a, b in zip("xyz", low, high, strict=False):
        print(f"  {axis:<15}{a:g} to {b:g}")
    if tracks.scalars:
        print(f"  {'scalars':<15}{', '.join(tracks.scalars)}")


def find_tracks(files: tuple[str, ...]) -> Trajectory | None:
    """The tracks of one file that holds tracks; `None` for anything else."""
    from jaxtrace import export

    if len(files) != 1 or Path(files[0]).suffix.lower() not in (".nc", ".zarr"):
        return None
    if not Path(files[0]).exists():
        raise UsageError(f"there is no {files[0]!r}")
    return export.read(files[0]) if export.holds_tracks(files[0]) else None


@dataclasses.dataclass(frozen=True)
class View(Flow):
    """What `worldloom trace view` does."""

    out: Annotated[Path, OutputFile(), tyro.conf.arg(aliases=["-o"])] = Path("tracks.html")
    """The page to write."""

    title: str = ""
    """The heading of the page; the name of the file by default."""

    colour_by: str = "speed"
    """What is coloured first: speed, age, status, or the name of a scalar."""

    max_bytes: int = 20_000_000
    """About how large the page may be."""

    particles: int = 2000
    """How many particles to follow, where the files hold a flow and no tracks."""

    def __post_init__(self) -> None:
        check_ending(self.out, (".html",))
        for name in ("max_bytes", "particles"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} must be 1 or more")


def view(config: View) -> None:
    """Write the page and say where it is."""
    from jaxtrace.visualization import write_viewer

    with plain_warnings(TraceWarning):
        tracks = find_tracks(config.files) or _follow(config)
    path = write_viewer(
        tracks,
        config.out,
        title=config.title or Path(config.files[0]).stem,
        colour_by=config.colour_by,
        max_bytes=config.max_bytes,
    )
    drawn = tracks.report.seed if tracks.report is not None else None
    seeds = "" if drawn is None else f", seeds drawn with {drawn}"
    print(f"{path}: {tracks.N:,} particles at {tracks.T:,} times{seeds}")


def _follow(config: View) -> Trajectory:
    from jaxtrace.cli._options import Seeds
    from jaxtrace.cli._run import Run, follow

    inherited = {f.name: getattr(config, f.name) for f in dataclasses.fields(Flow)}
    return follow(
        Run(**inherited, out=(config.out,), seeds=Seeds(count=config.particles)), config.open()
    )


COMMANDS = (
    Command(
        "info",
        "Tell about files: what is in them, where and when.",
        Info,
        info,
        examples=(
            ("worldloom trace info flow.pvd", "a series"),
            ("worldloom trace info tracks.nc", "tracks that `trace run` wrote"),
        ),
    ),
    Command(
        "view",
        "Make a page to turn, zoom and play tracks on.",
        View,
        view,
        examples=(
            ("worldloom trace view tracks.nc -o tracks.html", "tracks that `trace run` wrote"),
            ("worldloom trace view flow.pvd", "2,000 particles in a flow"),
        ),
    ),
)
