"""What a run leaves: the tracks of particles."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from jaxtrace._errors import TrackError
from jaxtrace._status import Status
from jaxtrace.fields._frame import Frame


@dataclasses.dataclass(frozen=True)
class RunReport:
    """How a run went.

    **Attributes:**

    - `compile_seconds`, `run_seconds`: time to build the program, and for everything else.
    - `device`: what it ran on.
    - `memory_bytes`: fields and positions together; streamed ones with all their windows.
    - `particle_steps_per_second`: particles times steps, over `run_seconds`.
    - `key`: what random walk and inlets were drawn with; the same `key=` draws them again. `None`
        where there was no chance, or `key` was a `jax.random.key`.
    - `seed`: what `random_seeds` drew the first positions with, if it did.
    - `notes`: what was decided, in words.
    """

    compile_seconds: float
    run_seconds: float
    device: str
    memory_bytes: int
    particle_steps_per_second: float
    key: int | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
    """Tracks of `N` particles at `T` times, in `dim` dimensions.

    **Attributes:**

    - `positions`: `[T, N, dim]`.
    - `times`: `[T]`.
    - `velocities`: `[T, N, dim]`, or `None` if they were not recorded.
    - `status`: `[T, N]`, a `Status` each.
    - `ages`: `[T, N]`, time since release, as long as the particle was alive.
    - `scalars`: fields sampled along the way, `[T, N]` or `[T, N, components]`.
    - `statistics`: what functions of all particles gave, with `T` rows.
    - `report`: compile and run time, device, memory, keys.
    - `frame`: what coordinates measure, and the epoch of `times`: a [`jaxtrace.Frame`][].

    `trajectory[10:20]` selects times, `trajectory[10:20, :100]` times and particles.
    """

    positions: Float[Any, "t n dim"]
    times: Float[np.ndarray, " t"]
    status: Int[np.ndarray, "t n"]
    ages: Float[np.ndarray, "t n"]
    velocities: Float[Any, "t n dim"] | None = None
    scalars: dict[str, Any] = dataclasses.field(default_factory=dict)
    statistics: dict[str, Any] = dataclasses.field(default_factory=dict)
    generations: Int[np.ndarray, "t n"] | None = None
    report: RunReport | None = None
    frame: Frame = dataclasses.field(default_factory=Frame)

    @property
    def N(self) -> int:
        """Number of particles."""
        return self.positions.shape[1]

    @property
    def T(self) -> int:
        """Number of times."""
        return self.positions.shape[0]

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.positions.shape[2]

    @property
    def duration(self) -> float:
        """Time from the first record to the last; negative in a run backwards."""
        return float(self.times[-1] - self.times[0]) if self.T else 0.0

    def counts(self, at: int = -1) -> dict[Status, int]:
        """How many particles had which status, at the last time or at another."""
        codes, counts = np.unique(self.status[at], return_counts=True)
        return {Status(int(c)): int(n) for c, n in zip(codes, counts, strict=True)}

    def displacement(self) -> Float[np.ndarray, "n dim"]:
        """Last position less the first, in coordinates."""
        return np.asarray(self.positions[-1]) - np.asarray(self.positions[0])

    def path_length(self) -> Float[np.ndarray, " n"]:
        """Length of each track, along the straight lines between records; in metres on the earth.

        A slot that began anew does not count the jump to the inlet.
        """
        positions = np.asarray(self.positions)
        steps = np.diff(positions, axis=0)
        if not self.frame.flat:
            steps = steps * self._metres((positions[1:] + positions[:-1]) / 2)
        steps = np.linalg.norm(steps, axis=2)
        if self.generations is not None:
            steps = np.where(np.diff(self.generations, axis=0) > 0, 0, steps)
        return steps.sum(axis=0)

    def speed(self) -> Float[np.ndarray, "t n"]:
        """Speeds: of the velocities if they were recorded, else of the way between records.

        On longitude and latitude they are in m/s.
        """
        if self.velocities is None and self.T < 2:
            raise TrackError("speed() needs velocities, or two records or more")
        if self.velocities is not None:
            rate = np.asarray(self.velocities)
        else:
            rate = np.gradient(np.asarray(self.positions), self.times, axis=0)
            rate = rate.astype(self.positions.dtype)
        if not self.frame.flat:
            rate = rate * self._metres(np.asarray(self.positions))
        return np.linalg.norm(rate, axis=2)

    def _metres(self, positions: np.ndarray) -> np.ndarray:
        """Metres a unit of each coordinate at positions `[..., dim]`."""
        return np.moveaxis(self.frame.metres(np.moveaxis(positions, -1, 0)), 0, -1)

    def bounds(self) -> Float[np.ndarray, "2 dim"]:
        """The corners of the box that holds all tracks."""
        flat = np.asarray(self.positions).reshape(-1, self.dim)
        return np.stack([flat.min(axis=0), flat.max(axis=0)])

    def subsample(self, *, every: int = 1, particles: Any = None) -> Trajectory:
        """Every so many records, of some particles: a number of them, a slice, or indices.

        A number `n` takes `n` particles evenly.
        """
        if every < 1:
            raise TrackError(f"every={every}: expected 1 or more")
        if isinstance(particles, int | np.integer):
            if not 1 <= particles <= self.N:
                raise TrackError(f"particles={particles}: expected 1 to {self.N}")
            particles = np.linspace(0, self.N - 1, int(particles)).round().astype(int)
        return self[::every, slice(None) if particles is None else particles]

    def __len__(self) -> int:
        return self.T

    def __getitem__(self, index: Any) -> Trajectory:
        rows, columns = index if isinstance(index, tuple) else (index, slice(None))
        rows, columns = _keep_axis(rows, self.T), _keep_axis(columns, self.N)

        def both(array: Any) -> Any:
            if hasattr(array, "oindex"):  # on disk, by Zarr: nothing else is read
                return array.oindex[rows, columns]
            return None if array is None else np.asarray(array)[rows][:, columns]

        return dataclasses.replace(
            self,
            positions=both(self.positions),
            times=self.times[rows],
            status=both(self.status),
            ages=both(self.ages),
            velocities=both(self.velocities),
            scalars={name: both(value) for name, value in self.scalars.items()},
            statistics={name: np.asarray(value)[rows] for name, value in self.statistics.items()},
            generations=both(self.generations),
        )

    def __repr__(self) -> str:
        if not self.T:
            return f"Trajectory(N={self.N}, T=0)"
        ended = ", ".join(f"{n} {status.name}" for status, n in self.counts().items())
        return (
            f"Trajectory(N={self.N}, T={self.T}, dim={self.dim}, times {self.times[0]:g} to "
            f"{self.times[-1]:g}; at the end {ended})"
        )


def _keep_axis(index: Any, size: int) -> Any:
    """A slice that goes up, or the numbers that are meant: an array, so that all axes stay."""
    if isinstance(index, slice) and (index.step is None or index.step > 0):
        return index
    return np.atleast_1d(np.arange(size)[index])
