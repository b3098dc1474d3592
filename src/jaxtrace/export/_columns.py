"""What is written about each particle at each time, taken in blocks of bounded size."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool

from jaxtrace._status import Status
from jaxtrace.tracking import Trajectory

BLOCK_BYTES = 32 * 2**20
Particles: TypeAlias = slice | np.ndarray


@dataclasses.dataclass(frozen=True)
class Column:
    """One quantity of all particles at all times."""

    name: str
    components: int
    dtype: np.dtype


def known(trajectory: Trajectory) -> Bool[np.ndarray, "t n"]:
    """Where a particle is part of the flow: while it is alive, and at the record where it ended.

    Before its release and after its end, exports leave it out.

    ```python
    import numpy as np
    import jaxtrace as jt
    from jaxtrace.export import known

    status = np.array([[1], [0], [2], [2]], np.int8)  # waits, moves, has left, has left
    zeros = np.zeros((4, 1))
    tracks = jt.Trajectory(np.zeros((4, 1, 2)), np.arange(4.0), status, zeros)
    assert known(tracks)[:, 0].tolist() == [False, True, True, False]
    ```
    """
    status = np.asarray(trajectory.status)
    shown = status == Status.ALIVE
    over = status > Status.WAITING
    shown[:1] |= over[:1]
    shown[1:] |= over[1:] & ~over[:-1]
    return shown


def columns(trajectory: Trajectory) -> list[Column]:
    """What a trajectory has beside positions and times."""
    kind = native(trajectory.positions)
    found = [Column("status", 1, np.dtype(np.int8)), Column("age", 1, np.dtype(np.float32))]
    if trajectory.velocities is not None or trajectory.T > 1:
        found.append(Column("speed", 1, kind))
    if trajectory.velocities is not None:
        found.append(Column("velocity", trajectory.dim, kind))
    if trajectory.generations is not None:
        found.append(Column("generation", 1, np.dtype(np.int32)))
    for name, value in trajectory.scalars.items():
        found.append(Column(name, 1 if value.ndim == 2 else value.shape[2], native(value)))
    return found


def native(array: Any) -> np.dtype:
    """The type of an array in the byte order of this machine."""
    return np.dtype(array.dtype).newbyteorder("=")


def part(array: Any, rows: slice, particles: Particles) -> np.ndarray:
    """A part of an array in memory or on disk; what is on disk is read only there."""
    if isinstance(particles, slice):
        return np.asarray(array[rows, particles])
    return np.asarray(array[rows])[:, particles]


def take(trajectory: Trajectory, name: str, rows: slice, particles: Particles) -> np.ndarray:
    """A column of some records and particles: `[rows, particles]`, or with components last."""
    if name == "speed":
        return _speed(trajectory, rows, particles)
    source = {
        "positions": trajectory.positions,
        "status": trajectory.status,
        "age": trajectory.ages,
        "velocity": trajectory.velocities,
        "generation": trajectory.generations,
        **trajectory.scalars,
    }[name]
    return part(source, rows, particles)


def _speed(trajectory: Trajectory, rows: slice, particles: Particles) -> np.ndarray:
    """Speeds of some records, the same as `trajectory.speed()` has there."""
    first, last, _ = rows.indices(trajectory.T)
    # One more record on either side, which the slope at the first and the last one needs.
    low, high = max(first - 1, 0), min(last + 1, trajectory.T)
    wide = slice(low, high)
    some = Trajectory(
        positions=part(trajectory.positions, wide, particles),
        times=trajectory.times[wide],
        status=part(trajectory.status, wide, particles),
        ages=part(trajectory.ages, wide, particles),
        velocities=(
            None if trajectory.velocities is None else part(trajectory.velocities, wide, particles)
        ),
        frame=trajectory.frame,
    )
    return some.speed()[first - low : last - low]


def block_shape(trajectory: Trajectory, *, limit: int = BLOCK_BYTES) -> tuple[int, int]:
    """How many records and particles make a block of about `limit` bytes."""
    width = trajectory.dim * 8 + sum(c.components * c.dtype.itemsize for c in columns(trajectory))
    across = max(1, min(trajectory.N, limit // width))
    along = max(1, min(trajectory.T, limit // (width * across)))
    return along, across


def blocks(trajectory: Trajectory, along: int, across: int) -> Iterator[tuple[slice, slice]]:
    """All records and particles, in blocks of `along` records and `across` particles."""
    for row in range(0, trajectory.T, along):
        for particle in range(0, trajectory.N, across):
            yield (
                slice(row, min(row + along, trajectory.T)),
                slice(particle, min(particle + across, trajectory.N)),
            )
