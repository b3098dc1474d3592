"""Where particles begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace._config import float_dtype
from jaxtrace._errors import SeedError
from jaxtrace.fields._analytic import check_bounds


def uniform_grid_seeds(
    resolution: Sequence[int], bounds: Any, *, include_boundaries: bool = True
) -> Float[np.ndarray, "n dim"]:
    """Seeds on a regular grid, the last coordinate running fastest.

    **Arguments:**

    - `resolution`: seeds along each axis, 2 or 3 numbers.
    - `bounds`: `[min, max]`.
    - `include_boundaries`: the grid reaches from wall to wall; otherwise it keeps half a spacing
        away from them.

    ```python
    import jaxtrace as jt

    seeds = jt.uniform_grid_seeds(resolution=(30, 25, 10), bounds=[[0, 0, 0], [1, 1, 1]])
    assert seeds.shape == (7500, 3)
    ```
    """
    corners = check_bounds(bounds, len(resolution))
    if any(int(n) != n or n < 1 for n in resolution):
        raise SeedError(f"resolution={tuple(resolution)}: expected whole numbers from 1 up")
    axes = []
    for low, high, n in zip(*corners, resolution, strict=True):
        inner = np.linspace(low, high, 2 * int(n) + 1)[1::2]
        whole = np.linspace(low, high, int(n))
        axes.append(whole if include_boundaries and n > 1 else inner)
    grid = np.meshgrid(*axes, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, len(axes)).astype(float_dtype())


def random_seeds(n: int, bounds: Any, *, seed: int = 0) -> Float[np.ndarray, "n dim"]:
    """`n` seeds spread uniformly at random over a box; the same for the same `seed`.

    ```python
    import jaxtrace as jt

    assert jt.random_seeds(100, bounds=[[0, 0], [2, 1]]).max(axis=0)[0] > 1
    ```
    """
    corners = check_bounds(bounds)
    if n < 1:
        raise SeedError(f"n={n}: expected 1 or more")
    u = np.random.default_rng(seed).random((n, corners.shape[1]))
    return (corners[0] + u * (corners[1] - corners[0])).astype(float_dtype())


def repeated_release(
    positions: Any, times: Any
) -> tuple[Float[np.ndarray, "n dim"], Float[np.ndarray, " n"]]:
    """The same seeds released again and again: seeds and release times of all particles.

    **Arguments:**

    - `positions`: `[P, dim]`.
    - `times`: `[R]`, when all of them are released.

    ```python
    import numpy as np
    import jaxtrace as jt

    seeds, times = jt.repeated_release([[0.1, 0.2], [0.3, 0.4]], times=np.arange(3.0))
    assert seeds.shape == (6, 2) and times.tolist() == [0, 0, 1, 1, 2, 2]
    ```
    """
    positions, times = np.asarray(positions), np.atleast_1d(np.asarray(times, np.float64))
    check_seeds(positions, None)
    if times.ndim != 1 or len(times) == 0 or not np.isfinite(times).all():
        raise SeedError("times must be a row of finite numbers")
    seeds = np.tile(positions, (len(times), 1)).astype(float_dtype())
    return seeds, np.repeat(times, len(positions))


def check_seeds(positions: np.ndarray, dim: int | None) -> None:
    """Refuse seeds that are missing, of another dimension, or not finite."""
    if positions.ndim != 2 or positions.shape[1] not in ((2, 3) if dim is None else (dim,)):
        expected = "[N, 2] or [N, 3]" if dim is None else f"[N, {dim}]"
        raise SeedError(f"initial_positions has shape {list(positions.shape)}; expected {expected}")
    if len(positions) == 0:
        raise SeedError("initial_positions is empty: there is nothing to track")
    if not np.issubdtype(positions.dtype, np.number):
        raise SeedError(f"initial_positions has type {positions.dtype}; expected numbers")
    bad = ~np.isfinite(positions).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise SeedError(
            f"{int(bad.sum())} of {len(positions)} seeds are not finite; the first is seed {i}: "
            f"{positions[i].tolist()}"
        )
