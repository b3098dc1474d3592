"""What a run needs in memory, against what there is."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from jaxtrace._config import float_dtype, memory_room, settings
from jaxtrace._errors import TraceError
from jaxtrace.tracking._records import Plan
from jaxtrace.tracking._streaming import windows_of
from worldloom._way import way
from worldloom.batch import format_bytes


def refuse_too_much(
    fields: tuple[Any, dict[str, Any]],
    plan: Plan,
    *,
    count: int,
    batch: int,
    devices: int,
    velocities: bool,
    sink: Any,
) -> None:
    """Refuse a run that has no room, before it takes any.

    **Arguments:**

    - `fields`: the velocity, and scalars.
    - `plan`: what is kept.
    - `count`, `batch`: particles, and how many of them run at once.
    - `devices`: how many devices hold a copy of the fields.
    - `velocities`: whether they are kept too.
    - `sink`: where records go; `None` for memory.
    """
    limit, room = settings().memory_limit, memory_room()
    each = fields[0].dim * float_dtype().itemsize
    # Without a limit of the user's, one device has its fields already.
    field = field_bytes(fields) * (devices - (limit is None))
    kept = 0 if sink is not None else plan.rows * count * each * (1 + velocities)
    # Places, velocities and stages of the integrator; status, age, number and release.
    moving = batch * (12 * each + 13)
    if field + kept + moving > room:
        allowed = "is available here" if limit is None else "memory_limit_gb allows"
        raise TraceError(
            f"the run needs {format_bytes(field)} for the field, {format_bytes(moving)} for "
            f"{batch:,} particles and {format_bytes(kept)} for {plan.rows:,} records: more than "
            f"{allowed} ({format_bytes(room)}). "
            + way(
                "Keep fewer steps with save_every, stream them with sink=ZarrSink(path), or follow "
                "fewer particles at once with batch_size",
                "Keep fewer steps with --save-every, or follow fewer particles",
            )
        )


def field_bytes(fields: Any) -> int:
    """Bytes of fields; a window counts three times: first, present, next."""
    bytes_of = lambda tree: sum(x.nbytes for x in jax.tree.leaves(tree) if eqx.is_array(x))  # noqa: E731
    return bytes_of(fields) + 2 * sum(map(bytes_of, windows_of(fields)))
