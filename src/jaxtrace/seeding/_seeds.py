"""Where particles begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

import worldloom as wl
from jaxtrace._config import float_dtype, memory_room
from jaxtrace._errors import SeedError
from jaxtrace.fields._analytic import check_bounds
from worldloom.batch import format_bytes


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
    refuse_seeds(math.prod(int(n) for n in resolution), len(axes))
    grid = np.meshgrid(*axes, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, len(axes)).astype(float_dtype())


class RandomSeeds(np.ndarray):
    """Positions that were drawn, an array like any other. `seed` draws the same again."""

    seed: int | None = None


def random_seeds(n: int, bounds: Any, *, seed: int | None = None) -> Float[np.ndarray, "n dim"]:
    """`n` seeds spread uniformly at random over a box.

    Without `seed` they are others each time. What they were drawn with is `.seed` of the result,
    in the report of the run that follows them, and in the files that it writes.

    ```python
    import jaxtrace as jt

    assert jt.random_seeds(100, bounds=[[0, 0], [2, 1]]).max(axis=0)[0] > 1
    ```
    """
    corners = check_bounds(bounds)
    if isinstance(n, bool) or int(n) != n or n < 1:
        raise SeedError(f"n={n}: expected a whole number from 1 up")
    if seed is not None and (isinstance(seed, bool) or int(seed) != seed or seed < 0):
        raise SeedError(f"seed={seed}: expected a whole number from 0 up")
    refuse_seeds(n, corners.shape[1])
    seed = wl.fresh_seed() if seed is None else int(seed)
    u = np.random.default_rng(seed).random((int(n), corners.shape[1]))
    positions = corners[0] + u * (corners[1] - corners[0])
    return _drawn(positions.astype(float_dtype()), seed)


def _drawn(positions: np.ndarray, seed: int | None) -> RandomSeeds:
    seeds = positions.view(RandomSeeds)
    seeds.seed = seed
    return seeds


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
    drawn = seed_of(positions)
    positions, times = np.asarray(positions), np.atleast_1d(np.asarray(times, np.float64))
    check_seeds(positions, None)
    if times.ndim != 1 or len(times) == 0 or not np.isfinite(times).all():
        raise SeedError("times must be a row of finite numbers")
    refuse_seeds(len(times) * len(positions), positions.shape[1])
    seeds = np.tile(positions, (len(times), 1)).astype(float_dtype())
    if drawn is not None:
        seeds = _drawn(seeds, drawn)
    return seeds, np.repeat(times, len(positions))


def seed_of(positions: Any) -> int | None:
    """What positions were drawn with, if `random_seeds` did."""
    return getattr(positions, "seed", None) if isinstance(positions, RandomSeeds) else None


def check_seeds(positions: np.ndarray, dim: int | None) -> None:
    """Refuse seeds that are missing, of another dimension, or not finite."""
    if positions.ndim != 2 or positions.shape[1] not in ((2, 3) if dim is None else (dim,)):
        expected = "[N, 2] or [N, 3]" if dim is None else f"[N, {dim}]"
        raise SeedError(f"initial_positions has shape {list(positions.shape)}; expected {expected}")
    if len(positions) == 0:
        raise SeedError("initial_positions is empty: there is nothing to track")
    if positions.dtype.kind not in "iuf":
        raise SeedError(f"initial_positions has type {positions.dtype}; expected real numbers")
    refuse_seeds(*positions.shape)
    bad = ~(np.abs(positions) <= np.finfo(float_dtype()).max).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise SeedError(
            f"{int(bad.sum())} of {len(positions)} seeds are not finite; the first is seed {i}: "
            f"{positions[i].tolist()}"
        )


def refuse_seeds(n: int, dim: int) -> None:
    """Refuse more seeds than there is memory for."""
    need, room = n * dim * (float_dtype().itemsize + 8), memory_room()
    if need > room:
        raise SeedError(
            f"{n:,} seeds need {format_bytes(need)}, and there are {format_bytes(room)}; take "
            "fewer, or follow them in several runs"
        )
