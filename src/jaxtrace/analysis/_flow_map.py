"""The flow map, its Jacobian, and what stretches."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

import worldloom as wl
from jaxtrace._config import as_float
from jaxtrace._errors import TrackError
from jaxtrace._status import Status
from jaxtrace.fields._field import Field
from jaxtrace.seeding._seeds import check_seeds
from jaxtrace.tracking._particles import Particles, Step
from jaxtrace.tracking._schedule import Schedule, make_schedule
from jaxtrace.tracking._tracker import Tracker, create_tracker


class FlowMap(NamedTuple):
    """Where particles end, how that depends on where they begin, and what became of them."""

    positions: Float[Array, "n dim"]
    jacobian: Float[Array, "n dim dim"]
    """`jacobian[:, i, j]` is the change of coordinate `i` at the end with `j` at the beginning."""
    status: Int[Array, " n"]


def flow_map(
    tracker: Tracker, positions: Float[Array, "n dim"], time_span: Any, n_timesteps: int
) -> Float[Array, "n dim"]:
    """Where particles at `positions` end: a pure function, to be differentiated or compiled.

    `jax.grad`, `jax.jvp` and `jax.vmap` go through it, with respect to positions and, by way of
    `jaxtrace.analysis.with_field`, to the field's values or the parameters of its function.

    ```python
    import jax
    import jax.numpy as jnp
    import jaxtrace as jt
    from jaxtrace.analysis import flow_map

    field = jt.AnalyticField(lambda x, t: jnp.stack([x[0], -x[1]]), dim=2)
    tracker = jt.create_tracker("rk4", field=field)
    where = lambda x: flow_map(tracker, x, (0.0, 1.0), 20)[0, 0]
    slope = jax.grad(where)(jnp.array([[0.5, 0.5]]))
    assert jnp.allclose(slope, jnp.array([[jnp.e, 0.0]]), atol=1e-4)
    ```
    """
    schedule = make_schedule(time_span, n_timesteps, None, 0.0)
    return _carry(tracker, schedule, positions.T)[0].T


def with_field(tracker: Tracker, field: Field) -> Tracker:
    """The same tracker in another field, which may be traced."""
    return dataclasses.replace(tracker, field=field, _placed=None)


def flow_map_jacobian(
    tracker: Tracker, positions: Any, time_span: Any, n_timesteps: int
) -> FlowMap:
    """Exact derivatives of the flow map, by forward differentiation along each axis.

    ```python
    import jax.numpy as jnp
    import jaxtrace as jt
    from jaxtrace.analysis import flow_map_jacobian

    field = jt.AnalyticField(lambda x, t: jnp.stack([x[0], -x[1]]), dim=2)
    tracker = jt.create_tracker("rk4", field=field)
    result = flow_map_jacobian(tracker, [[0.5, 0.5]], (0.0, 1.0), 20)
    assert jnp.allclose(result.jacobian[0], jnp.diag(jnp.exp(jnp.array([1.0, -1.0]))), atol=1e-4)
    ```
    """
    seeds = np.asarray(positions)
    check_seeds(seeds, tracker.field.dim)
    schedule = make_schedule(time_span, n_timesteps, None, 0.0)
    step = tracker._step(schedule, 1)
    x = as_float(seeds.T)
    first = _first(tracker, step, x)
    end, status, columns = _jacobian(step, first, length=schedule.steps)
    return FlowMap(end.T, jnp.stack(columns, axis=-1).transpose(1, 0, 2), status)


def ftle(
    field: Field,
    positions: Any,
    time_span: Any,
    n_timesteps: int,
    *,
    integrator_name: str = "rk4",
    boundary_condition: Any = None,
) -> Float[Array, " n"]:
    """The finite-time Lyapunov exponent at `positions`, from exact Jacobians.

    It is the rate at which neighbours part: `log(largest singular value) / |time|`, in metres on
    longitude and latitude. A span that
    ends before it begins gives the backward exponent, which is large on attracting lines. Where a
    particle is not in the flow until the end it is NaN: an exponent over a part of the span, or of
    a particle that stands still, would look like a quiet place.

    ```python
    import jax.numpy as jnp
    import jaxtrace as jt
    from jaxtrace.analysis import ftle

    saddle = jt.AnalyticField(lambda x, t: jnp.stack([2.0 * x[0], -2.0 * x[1]]), dim=2)
    assert jnp.allclose(ftle(saddle, [[0.1, 0.2]], (0.0, 1.0), 50), 2.0, atol=1e-3)
    ```
    """
    tracker = create_tracker(integrator_name, field=field, boundary_condition=boundary_condition)
    result = flow_map_jacobian(tracker, positions, time_span, n_timesteps)
    start, end = (float(t) for t in time_span)
    jacobian = result.jacobian
    if not field.frame.flat:
        before = field.frame.metres(as_float(np.asarray(positions).T)).T
        after = field.frame.metres(result.positions.T).T
        jacobian = jacobian * after[:, :, None] / before[:, None, :]
    stretch = jnp.linalg.norm(jacobian, ord=2, axis=(1, 2))
    alive = result.status == int(Status.ALIVE)
    return jnp.where(alive, jnp.log(stretch) / abs(end - start), jnp.nan)


def _first(tracker: Tracker, step: Step, x: Float[Array, "dim n"]) -> Particles:
    if tracker.boundary.reseeds:
        raise TrackError("an inlet that seeds slots anew has no flow map; use another boundary")
    n = x.shape[1]
    return Particles(
        x=x,
        v=jnp.zeros_like(x),
        status=jnp.zeros(n, jnp.int8),
        age=jnp.zeros(n, jnp.int32),
        number=jnp.arange(n, dtype=jnp.int32),
        release=jnp.zeros(n, jnp.int32),
        generation=None,
        step_size=tracker.integrator.first_step(n, 1.0, x.dtype),
        hint=tracker.field.first_hint(n, values=False),
        scalars={},
    )


def _carry(
    tracker: Tracker, schedule: Schedule, x: Float[Array, "dim n"]
) -> tuple[Float[Array, "dim n"], Int[Array, " n"]]:
    step = tracker._step(schedule, 1)
    particles = step.begin(_first(tracker, step, x))
    last, _ = wl.unroll(step, particles, length=schedule.steps)
    return last.x, last.status


@wl.compiled(static=("length",))
def _jacobian(step: Step, first: Particles, length: int) -> tuple[Array, Array, list[Array]]:
    def end(x):
        particles = step.begin(eqx.tree_at(lambda p: p.x, first, x))
        last, _ = wl.unroll(step, particles, length=length, remat=False)
        return last.x, last.status

    found = []
    for j in range(first.x.shape[0]):
        along = jnp.zeros_like(first.x).at[j].set(1.0)
        found.append(jax.jvp(end, (first.x,), (along,), has_aux=True))
    x, _, status = found[0]
    return x, status, [column for _, column, _ in found]
