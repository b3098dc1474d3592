"""The step in C: built with the system compiler and timed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import workload


def build(folder: Path) -> ctypes.CDLL:
    """The compiled library, in a folder."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("the ceiling needs a C compiler named cc; leave others out with --alone")
    library = folder / "trace.so"
    source = Path(__file__).with_name("trace.c")
    flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", str(library), str(source), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    whole, real, address = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    loaded.track.argtypes = [address, whole, whole, real, address, whole, whole, real, whole]
    loaded.track.restype = None
    return loaded


def program(library: ctypes.CDLL, data: np.ndarray, steps: int, threads: int) -> Callable:
    """A function that carries all particles through so many steps and keeps every one."""
    seeds = workload.seeds()
    kept = np.empty((steps + 1, *seeds.shape), np.float32)

    def run() -> np.ndarray:
        kept[0] = seeds
        library.track(
            data.ctypes.data,
            data.shape[1],
            len(data),
            workload.END,
            kept.ctypes.data,
            len(seeds),
            steps,
            workload.STEP,
            threads,
        )
        return kept

    return run
