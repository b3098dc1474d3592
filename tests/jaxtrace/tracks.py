"""Tracks with everything in them: late releases, ends, scalars, new beginnings."""

from __future__ import annotations

import numpy as np

import jaxtrace as jt


def orbit(*, n=6, t=9, dim=2, velocities=False, scalars=False, generations=False) -> jt.Trajectory:
    """Particles on circles. Number 1 waits until record 2; number 2 has left from record 5 on."""
    rng = np.random.default_rng(3)
    times = np.linspace(10.0, 12.0, t)
    radius = np.linspace(1.0, 2.0, n)
    angle = times[:, None] * np.linspace(0.5, 1.0, n)
    positions = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.1 * angle], -1)[
        ..., :dim
    ]
    status = np.zeros((t, n), np.int8)
    status[:2, 1] = jt.Status.WAITING
    positions[:2, 1] = positions[2, 1]
    status[5:, 2] = jt.Status.EXITED
    positions[5:, 2] = positions[5, 2]
    ages = np.cumsum(status == 0, axis=0) * (times[1] - times[0])
    generation = np.zeros((t, n), np.int32)
    generation[4:, 3] = 1
    return jt.Trajectory(
        positions=positions.astype(np.float32),
        times=times,
        status=status,
        ages=ages,
        velocities=rng.normal(size=(t, n, dim)).astype(np.float32) if velocities else None,
        scalars=(
            {
                "temperature": rng.normal(size=(t, n)).astype(np.float32),
                "stress": rng.normal(size=(t, n, 4)).astype(np.float32),
            }
            if scalars
            else {}
        ),
        generations=generation if generations else None,
    )
