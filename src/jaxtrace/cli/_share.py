"""Particles split over the processes of a run: each follows its share, and all get all tracks."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import worldloom as wl
from jaxtrace.seeding._seeds import seed_of
from jaxtrace.tracking import TrackError, Trajectory
from jaxtrace.tracking._particles import Particles, Step
from jaxtrace.tracking._tracker import Tracker
from worldloom import mesh, store

# Of a run with a checkpoint. Its parts do not depend on who follows them, so that other processes,
# more or fewer, can go on; and a part has the same size on 1, 2, 4 or 8 devices.
PARTS = 8
_EVEN = 8


def first_part(folder: Path) -> Path:
    """Where the first part of a run is saved; what it was told holds for all parts."""
    return _part(folder, 0)


def _part(folder: str | Path, part: int) -> Path:
    return Path(folder) / f"part{part}-of-{PARTS}"


def follow_share(
    tracker: Tracker,
    seeds: np.ndarray,
    release: np.ndarray | None,
    *,
    checkpoint: wl.Checkpoint | None = None,
    **options: Any,
) -> Trajectory:
    """The tracks of all seeds, of which this process follows some.

    Seeds are cut into parts of one size; what is missing in the last is filled up with copies of
    the last seed, which are dropped. Without a checkpoint each process has one part. With one there
    are `PARTS`, each in a folder of its own: a run that was stopped goes on with any number of
    processes up to that.
    """
    processes = jax.process_count()
    parts = processes if checkpoint is None else PARTS
    if parts < processes:
        raise TrackError(
            f"{processes} processes for a run with a checkpoint, which has {PARTS} parts: start at "
            f"most {PARTS}, or leave --checkpoint out"
        )
    with contextlib.nullcontext() if checkpoint is None else store.locked(checkpoint.folder):
        return _follow_parts(tracker, seeds, release, parts, checkpoint, options)


def _follow_parts(
    tracker: Tracker,
    seeds: np.ndarray,
    release: np.ndarray | None,
    parts: int,
    checkpoint: wl.Checkpoint | None,
    options: dict[str, Any],
) -> Trajectory:
    count, processes, me = len(seeds), jax.process_count(), jax.process_index()
    size = -(-count // parts)
    if checkpoint is not None:
        size = -(-size // _EVEN) * _EVEN
    followed: list[Trajectory] = []
    for part in range(me, parts, processes):
        first = part * size
        mine = np.minimum(np.arange(first, first + size), count - 1)
        own = None
        if checkpoint is not None:
            own = dataclasses.replace(checkpoint, folder=_part(checkpoint.folder, part))
        label = "tracking" if parts == processes else f"tracking, part {part + 1} of {parts}"
        with mesh.alone():
            tracks = _Numbered(**vars(tracker), first=first).track_particles(
                seeds[mine],
                release_times=None if release is None else release[mine],
                progress=label if me == 0 else False,
                checkpoint=own,
                resume=own is not None,
                **options,
            )
        followed.append(tracks)
    # A process without a part in the last round gives one again, which is then left out.
    rounds = -(-parts // processes)
    followed += [followed[-1]] * (rounds - len(followed))
    order = [part % processes * rounds + part // processes for part in range(parts)]
    return _joined(followed, order, count, seed_of(seeds))


@dataclasses.dataclass
class _Numbered(Tracker):
    """A tracker whose particles are numbered from `first` on: chances belong to numbers."""

    first: int = 0

    def _place(
        self, step: Step, seeds: np.ndarray, release: np.ndarray, first: int, size: int
    ) -> tuple[Particles, Any]:
        return super()._place(step, seeds, release, self.first + first, size)


def _joined(
    followed: Sequence[Trajectory], order: Sequence[int], count: int, seed: int | None
) -> Trajectory:
    """The first `count` tracks of the parts of all processes, in this order."""
    tracks, size = followed[0], followed[0].N

    def whole(mine: Sequence[Any]) -> Any:
        if mine[0] is None:
            return None
        every = mesh.join(np.concatenate([np.asarray(part) for part in mine], axis=1), axis=1)
        chosen = [every[:, at * size : (at + 1) * size] for at in order]
        return np.concatenate(chosen, axis=1)[:, :count]

    reports = [part.report for part in followed if part.report is not None]
    seconds = sum(report.run_seconds for report in reports)
    slowest = float(mesh.join(np.array([seconds])).max())
    steps = max(report.particle_steps_per_second * report.run_seconds for report in reports) / size
    processes = jax.process_count()
    where = reports[0].device if processes == 1 else f"each with {reports[0].device}"
    return dataclasses.replace(
        tracks,
        positions=whole([part.positions for part in followed]),
        status=whole([part.status for part in followed]),
        ages=whole([part.ages for part in followed]),
        velocities=whole([part.velocities for part in followed]),
        scalars={name: whole([part.scalars[name] for part in followed]) for name in tracks.scalars},
        generations=whole([part.generations for part in followed]),
        report=dataclasses.replace(
            reports[0],
            compile_seconds=sum(report.compile_seconds for report in reports),
            run_seconds=slowest,
            seed=seed,
            particle_steps_per_second=count * steps / slowest if slowest else 0.0,
            device=where if processes == 1 else f"{processes} processes, {where}",
        ),
    )
