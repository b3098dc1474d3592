"""Particles split over the processes of a run: each follows its share, and all get all tracks."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxtrace.tracking import Trajectory
from jaxtrace.tracking._particles import Particles, Step
from jaxtrace.tracking._tracker import Tracker
from worldloom import mesh


def follow_share(
    tracker: Tracker, seeds: np.ndarray, release: np.ndarray | None, **options: Any
) -> Trajectory:
    """The tracks of all seeds, of which this process follows one part in so many.

    Every process has as many particles, so that all run one program in step; the last one fills up
    with copies of the last seed, which are dropped.
    """
    count, processes = len(seeds), jax.process_count()
    size = -(-count // processes)
    first = jax.process_index() * size
    mine = np.minimum(np.arange(first, first + size), count - 1)
    part = _Numbered(**vars(tracker), first=first)
    tracks = part.track_particles(
        seeds[mine],
        release_times=None if release is None else release[mine],
        progress="tracking" if jax.process_index() == 0 else False,
        **options,
    )
    return _joined(tracks, count)


@dataclasses.dataclass
class _Numbered(Tracker):
    """A tracker whose particles are numbered from `first` on: chances belong to numbers."""

    first: int = 0

    def _place(
        self, step: Step, seeds: np.ndarray, release: np.ndarray, first: int, size: int
    ) -> tuple[Particles, Any]:
        return super()._place(step, seeds, release, self.first + first, size)


def _joined(tracks: Trajectory, count: int) -> Trajectory:
    def whole(part: Any) -> Any:
        return None if part is None else mesh.join(np.asarray(part), axis=1)[:, :count]

    report = tracks.report
    assert report is not None
    slowest = mesh.join(np.array([report.run_seconds])).max()
    steps = report.particle_steps_per_second * report.run_seconds / tracks.N
    positions = whole(tracks.positions)
    return dataclasses.replace(
        tracks,
        positions=positions,
        status=whole(tracks.status),
        ages=whole(tracks.ages),
        velocities=whole(tracks.velocities),
        scalars={name: whole(value) for name, value in tracks.scalars.items()},
        generations=whole(tracks.generations),
        report=dataclasses.replace(
            report,
            run_seconds=float(slowest),
            particle_steps_per_second=float(count * steps / slowest),
            device=f"{jax.process_count()} processes, each with {report.device}",
        ),
    )
