"""`create_tracker`: a field, a boundary and an integrator, ready to carry particles."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import worldloom as wl
from jaxtrace._config import as_float, devices, float_dtype
from jaxtrace._errors import SeedError, SlotOverflowError, TraceWarning, TrackError
from jaxtrace._status import Status
from jaxtrace.fields._compose import in_coordinates, on_clock_of
from jaxtrace.fields._field import Field
from jaxtrace.integrators import Diffusion, Integrator, integrator_named
from jaxtrace.seeding._seeds import check_seeds, seed_of
from jaxtrace.tracking import _records as records
from jaxtrace.tracking import _streaming as streaming
from jaxtrace.tracking._doubt import Doubt
from jaxtrace.tracking._keys import recall, resolve
from jaxtrace.tracking._particles import Particles, Spread, Step, begin, step_once
from jaxtrace.tracking._progress import meter
from jaxtrace.tracking._room import field_bytes, refuse_too_much
from jaxtrace.tracking._schedule import NEVER, Schedule, make_schedule, release_steps, warn_beyond
from jaxtrace.tracking._trajectory import Trajectory
from jaxtrace.tracking.boundary import Boundary, NoBoundary
from worldloom import mesh as meshes


def create_tracker(
    integrator_name: str | Integrator = "rk4",
    field: Any = None,
    boundary_condition: Any = None,
    batch_size: int | None = None,
    record_velocities: bool = False,
    use_jax_jit: bool = True,
    static_compilation: bool = True,
    use_scan_jit: bool = True,
    device_put_inputs: bool = True,
    progress_callback: Any = None,
    *,
    diffusivity: Any = None,
    key: Any = None,
    scalars: Mapping[str, Field] | None = None,
    max_age: float | int | None = None,
    delete_when: Callable[[Particles], Any] | None = None,
    device_count: int | None = None,
) -> Tracker:
    """A tracker: it carries particles through a field, in one compiled loop.

    **Arguments:**

    - `integrator_name`: `"euler"`, `"rk2"`, `"rk4"`, `"dopri5"` (adaptive), or an integrator.
    - `field`: the velocity, a field with as many components as dimensions.
    - `boundary_condition`: from `jaxtrace.tracking.boundary`; none by default.
    - `batch_size`: how many particles run at once, all by default; results are the same.
    - `record_velocities`: keep velocities beside positions.
    - `use_jax_jit`: `False` runs the same step without compiling it, for debugging. It is slow.
    - `static_compilation`, `use_scan_jit`, `device_put_inputs`: always so; `False` is refused.
    - `progress_callback`: called with the part that is done, from 0 to 1; or `True` or a label for
        a progress bar.
    - `diffusivity`: random walk, in m2/s: one number, one for each axis, or a field. Where the axes
        of the field are not known, in coordinates squared over time.
    - `key`: a number or a `jax.random.key`, for random walk and inlets. Without it the tracker
        draws one, which is `report.key` of its tracks, and an attribute of files.
    - `scalars`: fields to sample along the way, by name.
    - `max_age`: particles of this age are deleted.
    - `delete_when`: a function of all `Particles` that is true for those to delete.
    - `device_count`: how many devices to use; all by default, which on a processor is one a core.

    ```python
    import numpy as np
    import jax.numpy as jnp
    import jaxtrace as jt

    field = jt.AnalyticField(lambda x, t: jnp.stack([-x[1], x[0]]), dim=2)
    tracker = jt.create_tracker("rk4", field=field)
    tracks = tracker.track_particles([[1.0, 0.0]], time_span=(0.0, np.pi), n_timesteps=100)
    assert np.allclose(tracks.positions[-1], [[-1.0, 0.0]], atol=1e-5)
    ```
    """
    for name, value in (
        ("static_compilation", static_compilation),
        ("use_scan_jit", use_scan_jit),
        ("device_put_inputs", device_put_inputs),
    ):
        if not value:
            raise TrackError(f"{name}=False: there is one path, and it is compiled; leave it out")
    if not isinstance(field, Field):
        raise TrackError(f"field is {type(field).__name__}; expected one of jaxtrace.fields")
    if field.components != field.dim:
        raise TrackError(
            f"field has {field.components} components in {field.dim} dimensions; a velocity has "
            "as many components as dimensions"
        )
    boundary = NoBoundary() if boundary_condition is None else boundary_condition
    if not isinstance(boundary, Boundary):
        raise TrackError(
            f"boundary_condition is {type(boundary).__name__}; expected one of "
            "jaxtrace.tracking.boundary"
        )
    if batch_size is not None and batch_size < 1:
        raise TrackError(f"batch_size={batch_size}: expected 1 or more")
    if max_age is not None and not max_age > 0:
        raise TrackError(f"max_age={max_age}: expected a positive time")
    integrator = (
        integrator_named(integrator_name) if isinstance(integrator_name, str) else integrator_name
    )
    field = in_coordinates(field, field.frame)
    diffusion = None if diffusivity is None else _rebased(diffusivity, field)
    chosen, number = resolve(key, chance=diffusion is not None or boundary.draws)
    return Tracker(
        field=field,
        boundary=boundary,
        integrator=integrator,
        diffusion=diffusion,
        key=chosen,
        key_number=number,
        key_drawn=key is None,
        scalars={n: on_clock_of(f, field) for n, f in (scalars or {}).items()},
        batch_size=batch_size,
        record_velocities=record_velocities,
        compile=use_jax_jit,
        progress=progress_callback,
        max_age=max_age,
        delete_when=delete_when,
        device_count=device_count,
    )


@dataclasses.dataclass
class Tracker:
    """Carries particles through a field. Made by `create_tracker`."""

    field: Field
    boundary: Boundary
    integrator: Integrator
    diffusion: Diffusion | None
    key: Any
    scalars: dict[str, Field]
    batch_size: int | None
    record_velocities: bool
    compile: bool
    progress: Any
    max_age: float | None
    delete_when: Callable | None
    device_count: int | None
    key_number: int | None = None
    key_drawn: bool = False

    _placed: Any = None

    @property
    def _compiled_step(self) -> Any:
        return step_once if self.compile else None

    @property
    def _compiled_simulate(self) -> Any:
        return wl.run if self.compile else None

    def track_particles(
        self,
        initial_positions: Any,
        time_span: Any = None,
        n_timesteps: int | None = None,
        dt: float | int | None = None,
        *,
        release_times: Any = None,
        slots: int | None = None,
        save_every: int = 1,
        save_times: Any = None,
        save_positions: bool = True,
        statistics: Mapping[str, Callable[[Particles], Any]] | None = None,
        sink: Any = None,
        checkpoint: wl.Checkpoint | str | Path | None = None,
        resume: bool = False,
        progress: Any = None,
    ) -> Trajectory:
        """Carry particles through the field and return their tracks.

        Give two of `time_span`, `n_timesteps` and `dt`. If all three are given and contradict each
        other, `n_timesteps` and `dt` are followed, with a warning. A span that ends before it
        begins runs backwards in time.

        **Arguments:**

        - `initial_positions`: seeds, `[N, dim]`. Those outside the field get their status at once,
            with a warning.
        - `time_span`: beginning and end.
        - `n_timesteps`, `dt`: number and length of steps.
        - `release_times`: `[N]`: a particle waits at its seed until the step that begins at its
            release time, or next after it.
        - `slots`: the most particles there may be; more are an error that says how many.
        - `save_every`: keep every so many steps. The beginning and the end are always kept.
        - `save_times`: keep exactly these times instead; each must be that of a step.
        - `save_positions`: `False` keeps the first and last positions and `statistics` only.
        - `statistics`: functions of all `Particles`, by name, kept with each record.
        - `sink`: where records go: `worldloom.ZarrSink(path)`, `worldloom.NpySink(folder)`.
        - `checkpoint`, `resume`: as in `worldloom.run`. A resumed run is bit for bit the same.
        - `progress`: `True` or a label for a bar.
        """
        if checkpoint is not None:
            self, checkpoint = recall(self, checkpoint, resume=resume)
        drawn = seed_of(initial_positions)
        try:
            seeds = np.asarray(initial_positions)
        except ValueError as error:
            raise SeedError(f"initial_positions is no table of numbers: {error}") from error
        check_seeds(seeds, self.field.dim)
        if slots is not None and len(seeds) > slots:
            raise SlotOverflowError(
                f"{len(seeds)} particles do not fit into slots={slots}; {len(seeds)} are needed",
                needed=len(seeds),
            )
        span = self.field.time_span
        schedule = make_schedule(time_span, n_timesteps, dt, span[0] if span else 0.0)
        warn_beyond(schedule, span)
        plan = records.plan(
            schedule,
            save_every=save_every,
            save_times=save_times,
            save_positions=save_positions,
            statistics=dict(statistics or {}),
            velocities=self.record_velocities,
            scalars=bool(self.scalars),
            reseeds=self.boundary.reseeds,
            count=len(seeds),
        )
        refuse_too_much(
            (self.field, self.scalars),
            plan,
            count=len(seeds),
            batch=min(self.batch_size or len(seeds), len(seeds)),
            devices=self._count,
            velocities=self.record_velocities,
            sink=sink,
        )
        release = release_steps(release_times, len(seeds), schedule)
        batch = min(self.batch_size or len(seeds), len(seeds))
        if batch < len(seeds) and (sink is not None or checkpoint is not None or statistics):
            raise TrackError(
                f"batch_size={batch} splits {len(seeds)} particles into runs of their own, which "
                "cannot share a sink, a checkpoint or statistics; leave batch_size out"
            )
        step = self._step(schedule, plan.every)
        step = streaming.open_at(step, schedule, float(self.field.origin))
        parts = []
        doubt = Doubt(self.field, self.diffusion, schedule)
        for at in range(0, len(seeds), batch):
            part = slice(at, at + batch)
            particles, step_or_spread = self._place(step, seeds[part], release[part], at, batch)
            self._warn_outside(particles)
            doubt.look(particles)
            if not self.compile:
                step_or_spread = jax.tree.map(
                    lambda x: jnp.asarray(x) if isinstance(x, float) else x, step_or_spread
                )
            with contextlib.nullcontext() if self.compile else jax.disable_jit():
                result = self._run(
                    step_or_spread,
                    particles,
                    schedule,
                    save=plan.save,
                    sink=sink,
                    checkpoint=checkpoint,
                    resume=resume,
                    progress=meter(self.progress if progress is None else progress),
                )
            doubt.look(result.state)
            parts.append(records.part_of(result, min(batch, len(seeds) - at)))
        doubt.say()
        return records.assemble(
            parts,
            plan,
            schedule,
            device=f"{self._count} x {devices()[0].device_kind}",
            field_bytes=field_bytes((step.field, step.scalars)),
            frame=self.field.frame,
            key=self.key_number,
            seed=drawn,
        )

    def _run(self, step: Any, particles: Particles, schedule: Schedule, **options: Any) -> Any:
        """The run, in windows where a field is streamed."""
        if not streaming.windows_of(step):
            return wl.run(step, particles, length=schedule.steps, **options)
        row = step.mesh if isinstance(step, Spread) else None
        origin = float(self.field.origin)
        return streaming.run(step, particles, schedule=schedule, origin=origin, mesh=row, **options)

    @property
    def _count(self) -> int:
        return len(devices()) if self.device_count is None else self.device_count

    def _step(self, schedule: Schedule, every: int) -> Step:
        kind = float_dtype()
        most = None
        if self.max_age is not None:
            most = jnp.int32(max(1, round(self.max_age / abs(schedule.dt))))
        return Step(
            field=self.field,
            boundary=self.boundary,
            integrator=self.integrator,
            diffusion=self.diffusion,
            scalars=self.scalars,
            key=self.key,
            start=jnp.asarray(schedule.start - float(self.field.origin), kind),
            dt=jnp.asarray(schedule.dt, kind),
            max_age=most,
            last=jnp.int32(schedule.steps) if self.scalars and schedule.steps % every else None,
            delete_when=self.delete_when,
            save_every=every,
        )

    def _place(
        self, step: Step, seeds: np.ndarray, release: np.ndarray, first: int, size: int
    ) -> tuple[Particles, Any]:
        """Particles on the devices, filled up to a number that the devices divide."""
        chosen = devices()[: self._count]
        if self._count > len(devices()) or self._count < 1:
            raise TrackError(f"device_count={self._count}: there are {len(devices())} devices")
        spread = len(chosen) > 1 and size >= len(chosen)
        total = -(-size // len(chosen)) * len(chosen) if spread else size
        extra = total - len(seeds)
        if self.delete_when is not None:
            step = dataclasses.replace(step, count=len(seeds))
        number = np.concatenate([np.arange(first, first + len(seeds)), np.full(extra, -1)])
        seeds = np.concatenate([seeds, np.repeat(seeds[-1:], extra, axis=0)])
        release = np.concatenate([release, np.full(extra, NEVER)]).astype(np.int32)
        x = as_float(seeds.T)
        status = np.where(release > 0, Status.WAITING, Status.ALIVE).astype(np.int8)
        particles = Particles(
            x=x,
            v=jnp.zeros_like(x),
            status=jnp.asarray(status),
            age=jnp.zeros(total, jnp.int32),
            number=jnp.asarray(number, jnp.int32),
            release=jnp.asarray(release),
            generation=jnp.zeros(total, jnp.int32) if self.boundary.reseeds else None,
            step_size=self.integrator.first_step(total, float(step.dt), x.dtype),
            hint=self.field.first_hint(total, values=not self.integrator.own_clocks),
            scalars={},
        )
        if not spread:
            with jax.default_device(chosen[0]):
                return begin(step, particles), step
        row = meshes.worlds_mesh(chosen)
        particles = begin(step, particles)

        def put(leaf):
            spec = PartitionSpec(*[None] * (leaf.ndim - 1), meshes.AXIS)
            return jax.device_put(leaf, NamedSharding(row, spec))

        return jax.tree.map(put, particles), Spread(self._everywhere(step, row), row)

    def _everywhere(self, step: Step, row: Any) -> Step:
        """The step with its arrays on every device; large ones are sent once."""
        where = lambda s: (s.field, s.boundary, s.integrator, s.diffusion, s.scalars, s.key)  # noqa: E731
        heavy = where(step)
        leaves = jax.tree.leaves(heavy)
        kept = self._placed
        if (
            kept is None
            or kept[0] != row
            or any(a is not b for a, b in zip(kept[1], leaves, strict=True))
        ):
            kept = self._placed = (row, leaves, meshes.replicate(heavy, row))
        light = meshes.replicate((step.start, step.dt, step.max_age, step.last), row)
        step = eqx.tree_at(where, step, kept[2], is_leaf=lambda x: x is None)
        return eqx.tree_at(
            lambda s: (s.start, s.dt, s.max_age, s.last), step, light, is_leaf=lambda x: x is None
        )

    def _warn_outside(self, particles: Particles) -> None:
        status = np.asarray(particles.status)
        lost = (status != Status.ALIVE) & (status != Status.WAITING)
        if lost.any():
            i = int(np.argmax(lost))
            place = [round(float(c), 6) for c in np.asarray(particles.x)[:, i]]
            warnings.warn(
                f"{int(lost.sum())} of {len(status)} seeds do not start; the first is seed {i} at "
                f"{place}: {Status(int(status[i])).message}",
                TraceWarning,
                stacklevel=3,
            )


def _rebased(diffusivity: Any, field: Field) -> Diffusion:
    if isinstance(diffusivity, Field):
        diffusivity = on_clock_of(diffusivity, field)
    return Diffusion(diffusivity, field.dim, field.frame)
