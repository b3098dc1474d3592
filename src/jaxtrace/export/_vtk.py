"""`write_vtk`: tracks for ParaView."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from jaxtrace.export._columns import BLOCK_BYTES, columns, known, native, part, take
from jaxtrace.export._place import check_place, ending
from jaxtrace.export._vtp import Array, PolyData, whole
from jaxtrace.tracking import Trajectory
from worldloom.store._files import atomic_write, replacing, replacing_folder


def write_vtk(trajectory: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write tracks that ParaView opens, as points that move or as lines.

    - `tracks.pvd`: one file a time in a folder `tracks`, and the list of them with their times.
        Each has the particles that are in the flow then.
    - `tracks.vtp`: one line a particle, along its whole way. A slot that began anew has a line for
        each time that it did.

    Points carry `id`, `status`, `age`, `speed`, and the velocities and scalars that were recorded;
    those of lines also `time`. Files appear when they are whole.

    ```python
    import jax.numpy as jnp
    import jaxtrace as jt
    from jaxtrace.export import write_vtk

    field = jt.AnalyticField(lambda x, t: jnp.stack([-x[1], x[0]]), dim=2)
    tracks = jt.create_tracker(field=field).track_particles([[1.0, 0.0]], (0.0, 1.0), 10)
    write_vtk(tracks, "points.pvd")
    write_vtk(tracks, "lines.vtp")
    ```
    """
    path = Path(path)
    kind = ending(path, (".pvd", ".vtp"))
    check_place(path)
    if kind == ".pvd":
        _write_series(trajectory, path)
    else:
        with replacing(path) as hidden:
            # Each block reads all records of some particles; on disk they lie the other way.
            _lines(trajectory, limit=8 * BLOCK_BYTES).write(hidden)
    return path


def _write_series(trajectory: Trajectory, path: Path) -> None:
    folder = path.with_suffix("")
    shown = known(trajectory)
    digits = max(4, len(str(trajectory.T - 1)))
    names = [f"{folder.name}_{i:0{digits}d}.vtp" for i in range(trajectory.T)]
    with replacing_folder(folder) as hidden:
        for i, name in enumerate(names):
            _points(trajectory, i, np.flatnonzero(shown[i])).write(hidden / name)
    entries = "\n".join(
        f'    <DataSet timestep="{time:.17g}" part="0" file={quoteattr(f"{folder.name}/{name}")}/>'
        for time, name in zip(trajectory.times, names, strict=True)
    )
    with atomic_write(path) as file:
        file.write(
            '<?xml version="1.0"?>\n'
            '<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">\n'
            f"  <Collection>\n{entries}\n  </Collection>\n</VTKFile>\n".encode()
        )


def _points(trajectory: Trajectory, row: int, shown: np.ndarray) -> PolyData:
    rows, all_particles = slice(row, row + 1), slice(None)
    count = len(shown)
    data = [whole("id", shown.astype(np.int64))]
    for column in columns(trajectory):
        values = take(trajectory, column.name, rows, all_particles)[0][shown]
        data.append(whole(column.name, _vectors(values).astype(column.dtype)))
    points = part(trajectory.positions, rows, all_particles)[0][shown]
    return PolyData(
        points=whole("Points", _vectors(points)),
        kind="Verts",
        connectivity=whole("connectivity", np.arange(count, dtype=np.int64)),
        offsets=whole("offsets", np.arange(1, count + 1, dtype=np.int64)),
        point_data=tuple(data),
        field_data=(whole("TimeValue", trajectory.times[rows].astype(np.float64)),),
    )


def _lines(trajectory: Trajectory, *, limit: int) -> PolyData:
    shown, particle, cells = _runs(trajectory)
    count = int(shown.sum())
    kept = columns(trajectory)
    width = max(12 * trajectory.dim, *(c.components * c.dtype.itemsize for c in kept))
    across = max(1, limit // (width * trajectory.T))

    def gathered(name: str) -> Iterator[np.ndarray]:
        for first in range(0, trajectory.N, across):
            some = slice(first, min(first + across, trajectory.N))
            values = take(trajectory, name, slice(None), some)
            yield _vectors(np.swapaxes(values, 0, 1)[shown[:, some].T])

    def times() -> Iterator[np.ndarray]:
        for i in range(trajectory.N):
            yield trajectory.times[shown[:, i]]

    def column(name: str, dtype: np.dtype, components: int) -> Array:
        return Array(name, dtype, 3 if components in (2, 3) else components, count, gathered(name))

    data = [Array("time", np.dtype(np.float64), 1, count, times())]
    data += [column(c.name, c.dtype, c.components) for c in kept]
    points = column("positions", native(trajectory.positions), trajectory.dim)
    return PolyData(
        points=points,
        kind="Lines",
        connectivity=Array("connectivity", np.dtype(np.int64), 1, count, _counting(count)),
        offsets=whole("offsets", cells),
        point_data=tuple(data),
        cell_data=(whole("id", particle),),
    )


def _counting(count: int) -> Iterator[np.ndarray]:
    for first in range(0, count, 2**20):
        yield np.arange(first, min(first + 2**20, count), dtype=np.int64)


def _runs(trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which records are on a line, `[T, N]`; the particle of each line, and where its points end.

    A line is a row of records of one particle without a gap, of one generation, and of two records
    or more.
    """
    shown = known(trajectory)
    joined = shown[1:] & shown[:-1]
    if trajectory.generations is not None:
        joined &= np.diff(np.asarray(trajectory.generations), axis=0) == 0
    none = np.zeros((1, trajectory.N), bool)
    from_before, to_next = np.concatenate([none, joined]), np.concatenate([joined, none])
    on_line = from_before | to_next
    # Both in the same order, particle by particle.
    particle, first = np.nonzero((on_line & ~from_before).T)
    _, last = np.nonzero((on_line & ~to_next).T)
    return on_line, particle.astype(np.int64), np.cumsum(last - first + 1, dtype=np.int64)


def _vectors(values: np.ndarray) -> np.ndarray:
    """Vectors of two components with a third, which VTK wants; anything else as it is."""
    if values.ndim < 2 or values.shape[-1] != 2:
        return values
    return np.concatenate([values, np.zeros_like(values[..., :1])], axis=-1)
