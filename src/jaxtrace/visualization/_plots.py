"""Figures of tracks and of values on a grid, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxtrace.export._columns import known, take
from jaxtrace.tracking import Trajectory
from jaxtrace.visualization._viewer import ViewerError
from worldloom._extras import import_extra


def plot_trajectory(
    trajectory: Trajectory,
    *,
    colour_by: str | None = "speed",
    max_particles: int = 500,
    axes: Sequence[str] = ("x", "y", "z"),
    ax: Any = None,
) -> Any:
    """Draw tracks as lines in two or three dimensions and return the matplotlib `Figure`.

    Lines end where particles end. A dot is where each was last.

    **Arguments:**

    - `colour_by`: what colours the lines: `"speed"`, `"age"`, the name of a scalar, or `None`.
    - `max_particles`: of more, so many are drawn, evenly.
    - `axes`: names of the coordinates.
    - `ax`: draw on these axes instead of a new figure's.

    ```python
    import jax.numpy as jnp
    import jaxtrace as jt
    from jaxtrace.visualization import plot_trajectory

    field = jt.AnalyticField(lambda x, t: jnp.stack([-x[1], x[0]]), dim=2)
    tracks = jt.create_tracker(field=field).track_particles([[1.0, 0.0]], (0.0, 3.0), 30)
    plot_trajectory(tracks).savefig("tracks.png")
    ```
    """
    if not (trajectory.T and trajectory.N):
        raise ViewerError("there is nothing to draw: the trajectory is empty")
    names = [*(["speed"] if _has_speed(trajectory) else []), "age"]
    names += [name for name, value in trajectory.scalars.items() if value.ndim == 2]
    if colour_by is not None and colour_by not in names:
        raise ViewerError(f"colour_by={colour_by!r}: expected None or one of {names}")
    if max_particles < 1:
        raise ViewerError(f"max_particles={max_particles}: expected 1 or more")
    tracks = trajectory.subsample(particles=min(max_particles, trajectory.N))
    lines, values, ends = _lines(tracks, colour_by)
    ax = _axes(tracks.dim) if ax is None else ax
    flat = tracks.dim == 2
    kind = (
        import_extra("matplotlib.collections", extra="plot", purpose="drawing").LineCollection
        if flat
        else import_extra(
            "mpl_toolkits.mplot3d.art3d", extra="plot", purpose="drawing"
        ).Line3DCollection
    )
    drawn = kind(lines, cmap="viridis", linewidths=0.8 if len(lines) > 2000 else 1.2, alpha=0.9)
    if values is not None:
        drawn.set_array(values)
    ax.add_collection(drawn)
    ax.scatter(*ends.T, s=6, c="#22304a", linewidths=0, zorder=3)
    if values is not None and len(values):
        ax.figure.colorbar(drawn, ax=ax, label=colour_by, shrink=0.8, pad=0.02 if flat else 0.1)
    low, high = tracks.bounds()
    pad = 0.02 * max(float((high - low).max()), 1e-12)
    for name, label, a, b in zip("xyz", axes, low - pad, high + pad, strict=False):
        getattr(ax, f"set_{name}lim")(float(a), float(b))
        getattr(ax, f"set_{name}label")(label)
    if flat:
        ax.set_aspect("equal")
    else:
        ax.set_box_aspect(np.maximum(high - low, 0.05 * (high - low).max()))
    return ax.figure


def plot_field(
    values: Any,
    x: Any,
    y: Any,
    *,
    label: str = "",
    axes: Sequence[str] = ("x", "y"),
    ax: Any = None,
) -> Any:
    """Draw numbers on a grid, such as FTLE or density, and return the matplotlib `Figure`.

    **Arguments:**

    - `values`: `[len(x), len(y)]`, or one row of `len(x) * len(y)` with `y` running fastest, as
        `uniform_grid_seeds` has it. What is not finite is left blank.
    - `x`, `y`: the coordinates along each axis, increasing.
    - `label`: what stands at the colours.
    - `axes`: names of the coordinates.
    - `ax`: draw on these axes instead of a new figure's.

    ```python
    import numpy as np
    from jaxtrace.visualization import plot_field

    x, y = np.linspace(0, 2, 40), np.linspace(0, 1, 20)
    plot_field(np.sin(x)[:, None] * y, x, y, label="FTLE").savefig("ftle.png")
    ```
    """
    x, y, values = (np.asarray(a, np.float64) for a in (x, y, values))
    if values.size != len(x) * len(y):
        raise ViewerError(
            f"values has shape {list(values.shape)}; expected [{len(x)}, {len(y)}], the numbers of "
            "coordinates in x and y"
        )
    ax = _axes(2) if ax is None else ax
    table = np.ma.masked_invalid(values.reshape(len(x), len(y)).T)
    drawn = ax.pcolormesh(x, y, table, shading="nearest", cmap="magma", rasterized=True)
    if table.count():
        # A few extremes, such as those along a wall, do not take the colours from the rest.
        drawn.set_clim(*np.percentile(table.compressed(), [0.5, 99.0]))
    ax.figure.colorbar(drawn, ax=ax, label=label, shrink=0.8, pad=0.02, extend="both")
    ax.set(xlabel=axes[0], ylabel=axes[1], aspect="equal")
    return ax.figure


def _axes(dim: int) -> Any:
    figures = import_extra("matplotlib.figure", extra="plot", purpose="drawing a figure")
    if dim == 3:
        import_extra("mpl_toolkits.mplot3d", extra="plot", purpose="drawing in three dimensions")
    figure = figures.Figure(figsize=(8, 5.5), layout="constrained")
    return figure.add_subplot(projection="3d" if dim == 3 else None)


def _has_speed(trajectory: Trajectory) -> bool:
    return trajectory.velocities is not None or trajectory.T > 1


def _lines(
    tracks: Trajectory, colour_by: str | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """All pieces from record to record, a value for each, and where each particle was last."""
    shown = known(tracks)
    positions = np.asarray(tracks.positions[:])
    joined = shown[1:] & shown[:-1]
    if tracks.generations is not None:
        joined &= np.diff(tracks.generations, axis=0) == 0
    pieces = np.stack([positions[:-1][joined], positions[1:][joined]], axis=1)
    values = None
    if colour_by is not None:
        table = take(tracks, colour_by, slice(None), slice(None))
        values = 0.5 * (table[:-1][joined] + table[1:][joined])
    seen = shown.any(axis=0)
    last = tracks.T - 1 - np.argmax(shown[::-1], axis=0)
    return pieces, values, positions[last, np.arange(tracks.N)][seen]
