"""How long particles stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace._errors import TrackError
from jaxtrace._status import Status
from jaxtrace.fields._analytic import check_bounds
from jaxtrace.tracking._trajectory import Trajectory


def residence_time(
    trajectory: Trajectory, region: Any | Callable[[np.ndarray], np.ndarray]
) -> Float[np.ndarray, " n"]:
    """The time that each particle spends alive in a region.

    Between two records a particle counts as inside for the half of the time next to each record
    that is inside.

    **Arguments:**

    - `trajectory`: tracks.
    - `region`: `[min, max]`, or a function of positions `[..., dim]` that is true inside.

    ```python
    import jax.numpy as jnp
    import numpy as np
    import jaxtrace as jt
    from jaxtrace.analysis import residence_time

    field = jt.AnalyticField(lambda x, t: jnp.array([1.0, 0.0]), dim=2)
    tracks = jt.create_tracker("rk4", field=field).track_particles([[0.0, 0.5]], (0, 4), 400)
    assert np.allclose(residence_time(tracks, [[1, 0], [3, 1]]), 2.0, atol=0.02)
    ```
    """
    if trajectory.T < 2:
        raise TrackError("residence_time() needs two records or more")
    positions = np.asarray(trajectory.positions)
    if callable(region):
        inside = np.asarray(region(positions), bool)
    else:
        low, high = check_bounds(region, trajectory.dim)
        inside = ((positions >= low) & (positions <= high)).all(axis=2)
    inside = inside & (trajectory.status == Status.ALIVE)
    spans = np.abs(np.diff(trajectory.times))
    halves = 0.5 * (inside[:-1].astype(np.float64) + inside[1:])
    return (halves * spans[:, None]).sum(axis=0)
