"""A run that says how far it is, to be told to end by a signal; on one process or several."""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp

import worldloom as wl
from worldloom import mesh

LENGTH, CHUNK = 1000, 10


class Say(wl.NoProgress):
    """Prints how many steps are done, and leaves time for signals."""

    def update(self, done: int) -> None:
        """One chunk is done."""
        if jax.process_index() == 0:
            print("at", done, flush=True)
        time.sleep(0.02)


def step(x, t):
    """A few bits that depend on all steps."""
    x = x * 1.0001 + (t % 7).astype(x.dtype)
    return x, x.sum()


def go(folder: str, kind: str = "own", **options) -> wl.RunResult:
    """The run; it saves itself only when it ends."""
    if kind == "zarr":
        options["sink"] = wl.ZarrSink(f"{folder}/zarr", rows_per_chunk=7)
    return wl.run(
        step,
        jnp.arange(4.0),
        length=LENGTH,
        save=wl.Every(5),
        chunk_steps=CHUNK,
        checkpoint=wl.Checkpoint(folder, seconds=1e9),
        resume=True,
        **options,
    )


if __name__ == "__main__":
    mesh.start()
    go(sys.argv[2], sys.argv[1], progress=Say())
    print("done", flush=True)
