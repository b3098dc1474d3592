"""The state of a run: all particles, and the step that moves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from jaxtrace._errors import TrackError
from jaxtrace._status import Status
from jaxtrace.fields._field import Field, Hint
from jaxtrace.integrators import Diffusion, Integrator
from jaxtrace.integrators._diffusion import noise_of
from jaxtrace.tracking.boundary import Boundary, Draw
from worldloom import compiled
from worldloom import mesh as devices


class Particles(eqx.Module):
    """All particles at one time, the last axis of every array.

    This is what functions in `statistics` and `delete_when` see: exactly the particles that were
    seeded, on however many devices they are. In a run with `batch_size`, `delete_when` sees those
    of its batch.

    **Attributes:**

    - `x`, `v`: positions and velocities, `[dim, N]`.
    - `status`: a `Status` each, as int8.
    - `age`: steps since release.
    - `number`: the number of the particle.
    - `release`: the step at which it is released.
    - `generation`: how often its slot began anew; `None` where slots never do.
    - `scalars`: fields sampled along the way, `[components, N]` each.
    """

    x: Float[Array, "dim n"]
    v: Float[Array, "dim n"]
    status: Int[Array, " n"]
    age: Int[Array, " n"]
    number: Int[Array, " n"]
    release: Int[Array, " n"]
    generation: Int[Array, " n"] | None
    step_size: Float[Array, " n"] | None
    hint: Hint
    scalars: dict[str, Float[Array, "_ n"]]

    @property
    def alive(self) -> Array:
        """Which particles move."""
        return self.status == int(Status.ALIVE)

    def first(self, count: int) -> Particles:
        """The first `count`, without the slots that only fill up the devices."""
        if count == self.number.shape[0]:
            return self
        return jax.tree.map(lambda leaf: leaf[..., :count], self)


class Step(eqx.Module):
    """One step of all particles. Its arrays are arguments of the compiled program."""

    field: Field
    boundary: Boundary
    integrator: Integrator
    diffusion: Diffusion | None
    scalars: dict[str, Field]
    key: Array
    start: Float[Array, ""]
    dt: Float[Array, ""]
    max_age: Int[Array, ""] | None
    last: Int[Array, ""] | None
    """The number of the last step, which is kept, where `save_every` does not divide it."""
    delete_when: Callable | None
    save_every: int = eqx.field(static=True)
    count: int = eqx.field(static=True, default=0)
    """Where there is `delete_when`, how many slots are particles; others only fill up."""

    def __identity__(self) -> dict[str, Any]:
        """All but the last step: a run that is prolonged has a later one."""
        return {name: getattr(self, name) for name in self.__annotations__ if name != "last"}

    def time(self, n: Int[Array, ""]) -> Float[Array, ""]:
        """The time after `n` steps, on the field's clock."""
        return self.start + n.astype(self.dt.dtype) * self.dt

    def begin(self, particles: Particles) -> Particles:
        """Particles with what can be said about them before the first step."""
        t = self.time(jnp.int32(0))
        sample = self.field.evaluate(particles.x, t)
        used = particles.number >= 0
        status = jnp.where(used & (sample.status != 0), sample.status, particles.status)
        broken = used & (status == 0) & ~jnp.all(jnp.isfinite(sample.value), axis=0)
        status = jnp.where(broken, jnp.int8(Status.NAN_VELOCITY), status)
        scalars = {name: f.evaluate(particles.x, t).value for name, f in self.scalars.items()}
        # What a sample says nothing about stays as it was.
        hint = jax.tree.map(
            lambda new, old: old if new is None else new,
            sample.hint,
            particles.hint,
            is_leaf=lambda part: part is None,
        )
        return eqx.tree_at(
            lambda p: (p.v, p.status, p.hint, p.scalars),
            particles,
            (sample.value, status, hint, scalars),
            is_leaf=lambda x: x is None or isinstance(x, dict),
        )

    def __call__(self, particles: Particles, n: Int[Array, ""]) -> tuple[Particles, None]:
        """Step number `n`: from the time after `n` steps to the next."""
        return self.delete(self.move(particles, n)), None

    def delete(self, particles: Particles) -> Particles:
        """Particles after the user's rule has said which of them end."""
        if self.delete_when is None:
            return particles
        size = particles.number.shape[0]
        doomed = jnp.asarray(self.delete_when(particles.first(self.count or size)))
        if doomed.shape not in ((), (self.count or size,)):
            raise TrackError(
                f"delete_when gives shape {list(doomed.shape)}; expected true or false for each "
                f"of {self.count or size} particles"
            )
        if doomed.shape:
            doomed = jnp.pad(doomed.astype(bool), (0, size - doomed.shape[0]))
        doomed = doomed.astype(bool) & (particles.status == int(Status.ALIVE))
        status = jnp.where(doomed, jnp.int8(Status.DELETED), particles.status)
        return eqx.tree_at(lambda p: p.status, particles, status)

    def move(self, particles: Particles, n: Int[Array, ""]) -> Particles:
        """Step number `n`, but for what `delete_when` says."""
        t, x = self.time(n), particles.x
        due = (particles.status == int(Status.WAITING)) & (particles.release <= n)
        before = jnp.where(due, jnp.int8(Status.ALIVE), particles.status)
        alive = before == int(Status.ALIVE)
        move = self.integrator.advance(
            self.field, x, particles.v, t, self.dt, particles.hint, alive, particles.step_size
        )
        new = move.x
        if self.diffusion is not None:
            noise = noise_of(self.key, particles.number, n, x.shape[0], x.dtype)
            new = new + self.diffusion.kick(x, t, self.dt, noise)
        sound = jnp.all(jnp.isfinite(new), axis=0)
        new = jnp.where((alive & sound)[None], new, x)
        landed = self.boundary.apply(x, new, Draw(self.key, particles.number, n))
        moved = alive & sound & (move.status == 0)
        reseed = landed.reseed & moved
        new = jnp.where(moved[None], landed.x, x)
        hint = move.hint
        if self.boundary.reseeds:
            unknown = lambda h: jnp.where(reseed, -1, h) if h.dtype == jnp.int32 else h  # noqa: E731
            hint = jax.tree.map(unknown, hint)
        waiting = before == int(Status.WAITING)
        staying = (moved & (landed.status == 0)) | waiting
        sample = self.field.evaluate(new, self.time(n + 1), hint, staying)
        status = _first(
            before,
            jnp.where(alive, move.status, jnp.int8(0)),
            jnp.where(alive & ~sound, jnp.int8(Status.NAN_VELOCITY), jnp.int8(0)),
            jnp.where(moved, landed.status, jnp.int8(0)),
            jnp.where(staying & ~waiting, sample.status, jnp.int8(0)),
            jnp.where(
                staying & ~waiting & ~jnp.all(jnp.isfinite(sample.value), axis=0),
                jnp.int8(Status.NAN_VELOCITY),
                jnp.int8(0),
            ),
        )
        age = jnp.where(reseed, 0, particles.age + alive.astype(jnp.int32))
        if self.max_age is not None:
            old = (status == 0) & (age >= self.max_age)
            status = jnp.where(old, jnp.int8(Status.DELETED), status)
        generation = particles.generation
        if generation is not None:
            generation = generation + reseed.astype(jnp.int32)
        return Particles(
            x=new,
            v=jnp.where(staying[None], sample.value, particles.v),
            status=status,
            age=age,
            number=particles.number,
            release=particles.release,
            generation=generation,
            step_size=move.step_size,
            hint=sample.hint,
            scalars=self._sampled(particles.scalars, new, n + 1),
        )

    def _sampled(self, old: dict[str, Array], x: Array, n: Int[Array, ""]) -> dict[str, Array]:
        """Scalars at the steps that are kept; between them nobody looks."""
        if not self.scalars:
            return old

        def sample():
            t = self.time(n)
            return {name: field.evaluate(x, t).value for name, field in self.scalars.items()}

        kept = n % self.save_every == 0
        if self.last is not None:
            kept = kept | (n == self.last)
        return lax.cond(kept, sample, lambda: old)


class Spread(eqx.Module):
    """A step on many devices: each moves its own particles, and none waits for another."""

    step: Step
    mesh: Mesh = eqx.field(static=True)

    def __identity__(self) -> Step:
        """On how many devices it runs changes nothing of what it computes."""
        return self.step

    def __call__(self, particles: Particles, n: Int[Array, ""]) -> tuple[Particles, None]:
        """Step number `n`."""
        axes = jax.tree.map(lambda leaf: leaf.ndim - 1, particles)
        move = devices.each_device(_Move(self.step), self.mesh, in_axes=(axes, None), out_axes=axes)
        return self.step.delete(move(particles, n)), None


class _Move(eqx.Module):
    """`Step.move` as a function with arrays bound to it."""

    step: Step

    def __call__(self, particles: Particles, n: Int[Array, ""]) -> Particles:
        return self.step.move(particles, n)


@compiled
def begin(step: Step, particles: Particles) -> Particles:
    """Particles before the first step."""
    return step.begin(particles)


@compiled
def step_once(step: Step, particles: Particles, n: Any) -> Particles:
    """One step on its own."""
    return step(particles, n)[0]


def _first(*codes: Any) -> Array:
    """The first code that is not 0, particle by particle."""
    status = codes[0]
    for code in codes[1:]:
        status = jnp.where(status == 0, code, status)
    return status
