"""`worldloom trace run`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from jaxtrace._errors import TraceWarning
from jaxtrace.cli._options import (
    Clock,
    Flow,
    Seeds,
    TrackFile,
    Walls,
    boundary,
    check_ending,
    check_sizes,
    field,
)
from worldloom.cli import (
    FileCommand,
    OutputFolder,
    UsageError,
    naming_options,
    options_of,
    plain_warnings,
    recorded_options,
    seed_or_fresh,
)

if TYPE_CHECKING:
    from jaxtrace.io import Dataset
    from jaxtrace.tracking import Trajectory

# How a run is called in the shell where the engine has another word, and what may differ when it
# goes on.
_SPELLED = {
    "length": "time-span or --n-timesteps",
    "step.start": "time-span",
    "step.dt": "time-span, --n-timesteps or --dt",
}
_FREE = (
    *("time_span", "n_timesteps", "dt"),
    *("out", "coordinates", "checkpoint", "save_seconds", "memory_limit_gb"),
)

ENDINGS = (".nc", ".zarr", ".pvd", ".vtp", ".html")


@dataclasses.dataclass(frozen=True)
class Run(Clock, Flow):
    """What `worldloom trace run` does."""

    out: Annotated[tuple[Path, ...], TrackFile(), tyro.conf.arg(aliases=["-o"])] = (
        Path("tracks.nc"),
    )
    """What to write, one file or several: .nc or .zarr for xarray, .pvd or .vtp for ParaView, .html
    to look at."""

    seeds: Seeds = dataclasses.field(default_factory=Seeds)
    """Where particles begin."""

    integrator: Literal["euler", "rk2", "rk4", "dopri5"] = "rk4"
    """From one time to the next; dopri5 chooses its own steps."""

    boundary: Walls = "none"
    """What the sides of the domain do."""

    save_every: int | None = None
    """Keep every so many steps; by default some 200 records."""

    record_velocities: bool = False
    """Keep velocities beside positions."""

    diffusivity: float | None = None
    """Random walk, in m2/s where the files say what their coordinates measure."""

    max_age: float | None = None
    """Particles of this age are deleted."""

    key: int | None = None
    """For random walk; left out, a fresh one, which is printed and written."""

    coordinates: tuple[str, ...] = ("x", "y", "z")
    """Names of the coordinates in what is written, such as lon lat depth."""

    memory_limit_gb: float | None = None
    """Refuse what needs more memory."""

    window: int | None = None
    """Hold so many slices of the flow in memory at a time, and read others as they are needed."""

    checkpoint: Annotated[Path | None, OutputFolder(parents=True)] = None
    """A folder to save the run in. A run that finds itself there goes on, alone or with up to
    eight processes."""

    save_seconds: float = 60.0
    """How often it is saved."""

    def __post_init__(self) -> None:
        if not self.out:
            raise UsageError("--out: name a file to write")
        for path in self.out:
            check_ending(path, ENDINGS)
        for name in ("save_every", "n_timesteps", "window"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"--{name.replace('_', '-')} must be 1 or more, got {value}")


def run(config: Run) -> None:
    """Carry particles through a flow, write their tracks, and say how it went."""
    from worldloom import mesh

    with mesh.joined() as first, plain_warnings(TraceWarning), naming_options(_SPELLED):
        mesh.require_same(options_of(config))
        _run(config, first)


def _run(config: Run, first: bool) -> None:
    from jaxtrace import export

    dataset = config.open()
    tracks = follow(config, dataset)
    if not first:
        return
    date, _, calendar = dataset.epoch.partition(", calendar ")
    for path in config.out:
        export.write(
            tracks,
            path,
            coordinates=config.coordinates,
            time_units=date or "s",
            calendar=calendar or "standard",
        )
    print(summary(tracks))
    for path in config.out:
        print(path)


def follow(config: Run, dataset: Dataset) -> Trajectory:
    """The tracks that a configuration asks for; each process of a run follows its share."""
    import jax

    import jaxtrace as jt
    import worldloom as wl
    from jaxtrace.cli._share import first_part, follow_share

    if config.memory_limit_gb is not None:
        jt.configure(memory_limit_gb=config.memory_limit_gb)
    recorded = recorded_options(config.checkpoint and first_part(config.checkpoint))
    config = dataclasses.replace(
        config,
        key=seed_or_fresh(config.key, recorded.get("key")),
        seeds=dataclasses.replace(
            config.seeds, key=seed_or_fresh(config.seeds.key, recorded.get("seeds.key"))
        ),
    )
    seeds, release = config.seeds.make(dataset)
    when = config.resolve(dataset)
    tracker = jt.create_tracker(
        config.integrator,
        field=field(dataset, config.boundary, window=config.window),
        boundary_condition=boundary(config.boundary, dataset),
        record_velocities=config.record_velocities,
        diffusivity=config.diffusivity,
        max_age=config.max_age,
        key=config.key,
        scalars={name: dataset.field(scalar=name) for name in config.scalars},
    )
    every = config.save_every or recorded.get("save_every")
    if every is None:
        every = max(1, round(_steps(when) / 200))
    check_sizes(config.out, len(seeds), dataset.dim, _steps(when) // every + 2)
    saved = None
    if config.checkpoint is not None:
        options = options_of(config, without=_FREE) | {"save_every": every}
        saved = wl.Checkpoint(config.checkpoint, seconds=config.save_seconds, config=options)
    if saved or jax.process_count() > 1:
        return follow_share(tracker, seeds, release, checkpoint=saved, save_every=every, **when)
    return tracker.track_particles(
        seeds, **when, release_times=release, save_every=every, progress="tracking"
    )


def _steps(when: Mapping[str, Any]) -> float:
    """How many steps a run takes, about."""
    if when["n_timesteps"] is not None:
        return float(when["n_timesteps"])
    start, end = when["time_span"]
    return abs(end - start) / abs(when["dt"]) if when["dt"] else 0.0


def summary(tracks: Trajectory) -> str:
    """How a run went, one fact a line."""
    from worldloom.batch import format_bytes

    report = tracks.report
    assert report is not None
    rows = [
        ("particles", f"{tracks.N:,} in {tracks.dim} dimensions"),
        ("times", f"{tracks.T:,} records from {tracks.times[0]:g} to {tracks.times[-1]:g}"),
        *((s.name.lower(), f"{n:,}: {s.message}") for s, n in tracks.counts().items()),
        ("speed", f"{report.particle_steps_per_second:,.0f} particle-steps/s on {report.device}"),
        ("compiling", f"{report.compile_seconds:.1f} s, running {report.run_seconds:.1f} s"),
        ("memory", format_bytes(report.memory_bytes)),
        *([("key", f"{report.key} (--key)")] if report.key is not None else []),
        *(
            [("seeds", f"drawn with {report.seed} (--seeds.key)")]
            if report.seed is not None
            else []
        ),
        *(("note", note) for note in report.notes),
    ]
    return "\n".join(f"  {name:<15}{value}" for name, value in rows)


COMMAND = FileCommand(
    "run",
    "Carry particles through a flow and write their tracks.",
    Run,
    run,
    examples=(
        ("worldloom trace run flow.pvd -o tracks.nc tracks.html", "1,000 particles by chance"),
        ("worldloom trace run 'flow_*.vtu' --seeds.resolution 30 25 10", "a grid of seeds"),
        ("worldloom trace run ocean.nc --coordinates lon lat -o drift.zarr", "an ocean model"),
        ("worldloom trace run run.yaml --n-timesteps 1500", "values from a file"),
    ),
)
