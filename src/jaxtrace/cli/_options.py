"""What the commands share: which files, where particles begin, how long they run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from worldloom._reading import reading
from worldloom.cli import OutputFile, UsageError, check_room, seed_or_fresh

if TYPE_CHECKING:
    import numpy as np

    from jaxtrace.fields import Field
    from jaxtrace.io import Dataset

Walls = Literal["none", "reflective", "periodic", "clamping", "absorbing", "outflow"]


@dataclasses.dataclass(frozen=True)
class TrackFile(OutputFile):
    """A file of tracks, or the folder that some endings stand for."""

    def check(self, path: Path) -> None:
        """See `OutputFile`; a folder of older tracks may be replaced."""
        from jaxtrace.export._place import check_place

        check_place(path)
        check_room(path, self.room)


def check_sizes(out: Sequence[Path], particles: int, dim: int, records: float) -> None:
    """Refuse tracks for which there is no room, before they are computed.

    Times, positions, status and ages are counted, uncompressed where the format has no choice.
    """
    for path in out:
        squeezed = {".nc": 0.1, ".zarr": 0.1, ".html": 0.0}.get(path.suffix.lower(), 1.0)
        check_room(path, 2**20 + squeezed * particles * records * (4 * dim + 5))


@dataclasses.dataclass(frozen=True)
class Flow:
    """Files that hold a flow."""

    files: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FILES"), tyro.conf.Positional] = ()
    """Files or patterns: PVD, VTU, VTI, VTR, VTS, VTKHDF, legacy VTK, NetCDF, Zarr."""

    velocity: tuple[str, ...] = ()
    """The name of the velocity, or the names of its components, where files leave a doubt."""

    times: tuple[float, ...] = ()
    """The time of each file, where files have none."""

    scalars: tuple[str, ...] = ()
    """Other arrays to sample along the way."""

    def open(self) -> Dataset:
        """The files, opened."""
        from jaxtrace.io import open_dataset

        if not self.files:
            raise UsageError("name the files of a flow, such as 'flow_*.vtu' or ocean.nc")
        one = len(self.velocity) == 1
        return open_dataset(
            self.files[0] if len(self.files) == 1 else list(self.files),
            velocity=(self.velocity[0] if one else self.velocity) or None,
            times=self.times or None,
            scalars=self.scalars,
        )


@dataclasses.dataclass(frozen=True)
class Box:
    """A part of the domain."""

    low: tuple[float, ...] = ()
    """The least coordinates; those of the flow if left out."""

    high: tuple[float, ...] = ()
    """The greatest coordinates."""

    def bounds(self, dataset: Dataset) -> list[list[float]]:
        """The corners, `[2, dim]`."""
        corners = []
        for name, given, own in zip(
            ("low", "high"), (self.low, self.high), dataset.bounds, strict=True
        ):
            if given and len(given) != dataset.dim:
                raise UsageError(f"{name} {given}: expected {dataset.dim} coordinates")
            corners.append(list(given) if given else [float(x) for x in own])
        return corners


@dataclasses.dataclass(frozen=True)
class Seeds(Box):
    """Where particles begin: a grid, a file, or by chance."""

    count: int = 1000
    """How many, by chance."""

    resolution: tuple[int, ...] = ()
    """Or so many along each axis, on a grid."""

    file: Path | None = None
    """Or the rows of a file, .npy or text with a column a coordinate."""

    release: tuple[float, ...] = ()
    """Release all of them again at each of these times."""

    key: int | None = None
    """Draw the same by chance again; another each time if left out."""

    def make(self, dataset: Dataset) -> tuple[np.ndarray, np.ndarray | None]:
        """Positions, and release times if there are any."""

        from jaxtrace.seeding import random_seeds, repeated_release, uniform_grid_seeds

        if self.file is not None:
            seeds = _read_seeds(self.file)
        elif self.resolution:
            if len(self.resolution) != dataset.dim:
                raise UsageError(
                    f"seeds.resolution {self.resolution}: expected {dataset.dim} numbers"
                )
            seeds = uniform_grid_seeds(self.resolution, self.bounds(dataset))
        else:
            seeds = random_seeds(self.count, self.bounds(dataset), seed=seed_or_fresh(self.key))
        if not self.release:
            return seeds, None
        return repeated_release(seeds, self.release)


def _read_seeds(path: Path) -> np.ndarray:
    import numpy as np

    if not path.is_file():
        raise UsageError(f"seeds.file: there is no file {str(path)!r}")
    with reading(f"seeds.file {str(path)!r}", "rows of numbers", UsageError):
        if path.suffix == ".npy":
            # Mapped, so that a header which claims more than the file has is refused.
            return np.array(np.load(path, mmap_mode="r", allow_pickle=False), np.float64)
        return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None, ndmin=2)


@dataclasses.dataclass(frozen=True)
class Clock:
    """When a run begins and ends; the words of `track_particles`."""

    time_span: tuple[float, float] | None = None
    """Beginning and end; those of the data if left out. An end before the beginning runs back."""

    n_timesteps: int | None = None
    """The number of steps."""

    dt: float | None = None
    """Or the length of a step."""

    def resolve(self, dataset: Dataset) -> dict[str, Any]:
        """Arguments for `track_particles`."""
        span = self.time_span or dataset.time_span
        if span is None and (self.n_timesteps is None or self.dt is None):
            raise UsageError(
                "the flow is steady, so it has no end: give --time-span, or --n-timesteps and --dt"
            )
        steps = self.n_timesteps
        if steps is None and self.dt is None:
            steps = max(200, 4 * (len(dataset) - 1))
        if self.time_span is None and steps is not None and self.dt is not None:
            span = None
        return {"time_span": span, "n_timesteps": steps, "dt": self.dt}


def boundary(name: Walls, dataset: Dataset) -> Any:
    """A boundary around the whole flow."""
    from jaxtrace.tracking import boundary as kinds

    if name == "none":
        return kinds.no_boundary()
    return getattr(kinds, f"{name}_boundary")(dataset.bounds)


def field(dataset: Dataset, walls: Walls, **options: Any) -> Field:
    """The flow, read; periodic like its walls."""
    if walls == "periodic" and dataset.kind == "grid":
        low, high = dataset.bounds
        options["period"] = tuple(float(p) for p in high - low)
    return dataset.field(**options)


def check_ending(out: Path, endings: Sequence[str]) -> None:
    """Refuse a file that could not be written, before anything runs."""
    if out.suffix.lower() not in endings:
        raise UsageError(f"--out {str(out)!r}: expected {', '.join(endings)} at its end")
