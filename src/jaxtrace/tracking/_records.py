"""What a run keeps, and the trajectory that is made of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import worldloom as wl
from jaxtrace._config import float_dtype
from jaxtrace._errors import TrackError
from jaxtrace._status import Status
from jaxtrace.fields._frame import Frame
from jaxtrace.tracking._particles import Particles
from jaxtrace.tracking._schedule import Schedule
from jaxtrace.tracking._trajectory import RunReport, Trajectory


def _positions(p: Particles) -> Any:
    return p.x.T


def _velocities(p: Particles) -> Any:
    return p.v.T


def _scalars(p: Particles) -> Any:
    return {name: value.T for name, value in p.scalars.items()}


def _status(p: Particles) -> Any:
    return p.status


def _age(p: Particles) -> Any:
    return p.age


def _generation(p: Particles) -> Any:
    assert p.generation is not None
    return p.generation


def _short_age(p: Particles) -> Any:
    return _age(p).astype(jnp.int16)


def _short_generation(p: Particles) -> Any:
    return _generation(p).astype(jnp.int16)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The `save` of a run, and the steps that its records belong to."""

    save: dict[str, Any]
    steps: np.ndarray
    every: int
    positions: bool
    notes: tuple[str, ...]

    @property
    def rows(self) -> int:
        """How many records there will be."""
        return len(self.steps) if self.positions else 2


def plan(
    schedule: Schedule,
    *,
    save_every: int,
    save_times: Any,
    save_positions: bool,
    statistics: dict[str, Callable],
    velocities: bool,
    scalars: bool,
    reseeds: bool,
    count: int,
) -> Plan:
    """What to keep, and when."""
    if isinstance(save_every, bool) or int(save_every) != save_every or save_every < 1:
        raise TrackError(f"save_every={save_every}: expected a whole number from 1 up")
    every = int(save_every) if save_times is None else 1
    notes = ()
    if save_times is None:
        steps = np.arange(0, schedule.steps + 1, every)
        if steps[-1] != schedule.steps:
            over = schedule.steps - int(steps[-1])
            notes = (
                f"save_every={every} does not divide {schedule.steps} steps: the last record, at "
                f"the end, is {over} step{'s' * (over > 1)} after the one before",
            )
            steps = np.append(steps, schedule.steps)
    else:
        steps = np.unique(schedule.step_at(save_times, "save_times"))

    def when(of: Callable) -> Any:
        if save_times is None:
            return wl.Every(every, of=of, initial=True, last=True)
        return wl.At(steps.tolist(), of=of)

    save: dict[str, Any] = {}
    if save_positions:
        save["positions"] = when(_positions)
        if velocities:
            save["velocities"] = when(_velocities)
        if scalars:
            save["scalars"] = when(_scalars)
        if reseeds:
            short = schedule.steps < 2**15  # no particle is older, nor has begun more often
            save["status"], save["age"] = when(_status), when(_short_age if short else _age)
            save["generation"] = when(_short_generation if short else _generation)
    else:
        save["first"] = wl.At([0], of=_positions)
    if statistics:
        save["statistics"] = {name: when(OfParticles(of, count)) for name, of in statistics.items()}
    return Plan(save, steps, every, save_positions, notes)


@dataclasses.dataclass(frozen=True)
class OfParticles:
    """A user's function of the particles alone, without the slots that fill up the devices."""

    function: Callable
    count: int

    def __call__(self, particles: Particles) -> Any:
        """What the function gives."""
        return self.function(particles.first(self.count))


@dataclasses.dataclass(frozen=True)
class Part:
    """What is kept of the run of one batch: not its state, which would hold on to the device."""

    records: Any
    final: dict[str, np.ndarray]
    scalars: tuple[str, ...]
    compile_seconds: float
    run_seconds: float
    count: int


def part_of(result: wl.RunResult, count: int) -> Part:
    """Records and last positions of the first `count` slots."""
    return Part(
        records=result.records,
        final=_final(result.state, count),
        scalars=tuple(result.state.scalars),
        compile_seconds=result.compile_seconds,
        run_seconds=result.run_seconds,
        count=count,
    )


def assemble(
    parts: list[Part],
    plan: Plan,
    schedule: Schedule,
    device: str,
    field_bytes: int,
    frame: Frame,
    **about: Any,
) -> Trajectory:
    """The trajectory of the runs of all batches."""
    final = {name: np.concatenate([p.final[name] for p in parts]) for name in parts[0].final}
    steps = plan.steps if plan.positions else np.array([0, schedule.steps])

    def joined(pick: Callable[[Any], Any]) -> Any:
        kept = [_cut(pick(part.records), part.count) for part in parts]
        return kept[0] if len(kept) == 1 else np.concatenate(kept, axis=1)

    if plan.positions:
        positions = joined(lambda t: t["positions"])
    else:
        first = joined(lambda t: t["first"])
        positions = np.concatenate([np.asarray(first), final["x"][None]])
    if "status" in plan.save:
        status, age = joined(lambda t: t["status"]), joined(lambda t: t["age"])
    else:
        status, age = _history(final, steps)
    scalars = {}
    for name in parts[0].scalars if "scalars" in plan.save else ():
        value = joined(lambda t, name=name: t["scalars"][name])
        scalars[name] = value[..., 0] if value.shape[-1] == 1 else value
    compiling = sum(part.compile_seconds for part in parts)
    running = sum(part.run_seconds for part in parts)
    size = sum(part.count for part in parts)
    return Trajectory(
        positions=positions,
        times=schedule.times(steps),
        velocities=joined(lambda t: t["velocities"]) if "velocities" in plan.save else None,
        status=np.asarray(status),
        ages=_times_of(age, abs(schedule.dt)),
        scalars=scalars,
        statistics=dict(parts[0].records.get("statistics", {})),
        generations=(
            np.asarray(joined(lambda t: t["generation"])) if "generation" in plan.save else None
        ),
        report=RunReport(
            compile_seconds=compiling,
            run_seconds=running,
            device=device,
            memory_bytes=field_bytes + int(np.prod(positions.shape)) * positions.dtype.itemsize,
            particle_steps_per_second=size * schedule.steps / max(running, 1e-9),
            notes=plan.notes,
            **about,
        ),
        frame=frame,
    )


def _cut(array: Any, count: int) -> Any:
    """Without the slots that only fill up. What is on disk is read only if it must be cut."""
    return array if array.shape[1] == count else np.asarray(array[:, :count])


def _final(state: Particles, count: int) -> dict[str, np.ndarray]:
    return {
        "x": np.asarray(jnp.asarray(state.x)).T[:count],
        "status": np.asarray(state.status)[:count],
        "age": np.asarray(state.age)[:count],
        "release": np.asarray(state.release)[:count],
    }


def _times_of(ages: Any, dt: float) -> np.ndarray:
    """Ages in steps as times; a column that stands for all stays one."""
    ages = np.asarray(ages)
    alike = ages.ndim == 2 and ages.strides[1] == 0 and ages.size > 0
    times = np.multiply(ages[:, :1] if alike else ages, dt, dtype=float_dtype())
    return np.broadcast_to(times, ages.shape) if alike else times


def _history(final: dict[str, np.ndarray], steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Status and age at each record of particles that live once, from how they ended.

    Particles that lived all the time have the same history: one column stands for all of them.
    """
    whole = (final["release"] == 0) & (final["age"] >= steps[-1]) & (final["status"] == 0)
    if whole.all():
        shape = len(steps), len(whole)
        return np.zeros(shape, np.int8), np.broadcast_to(steps[:, None].astype(np.int32), shape)
    release, age, status = final["release"], final["age"], final["status"]
    since = steps[:, None].astype(np.int32) - release[None]
    # A particle that ended took its last step `age` steps after its release.
    over = (status != Status.ALIVE) & (status != Status.WAITING)
    table = np.full(since.shape, Status.ALIVE, np.int8)
    waits = np.where(release > 0, 0, -1).astype(np.int32)
    table[since <= waits] = Status.WAITING
    np.copyto(table, status[None], where=over[None] & (since >= age[None]))
    return table, np.clip(since, 0, age[None], out=since)
