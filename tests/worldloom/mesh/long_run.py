"""Run by the tests as one process or two: a run with checkpoints that one may die in.

`python long_run.py FOLDER [KILL_AT]`: process 1 kills itself when so many steps are done.
"""

from __future__ import annotations

import os
import signal
import sys

import jax
import worlds

import worldloom as wl
from worldloom import mesh

LENGTH, WORLDS = 120, 8


class KillAt(wl.NoProgress):
    """Dies when so many steps are done."""

    def __init__(self, steps: int):
        self.steps = steps

    def update(self, done: int) -> None:
        if done >= self.steps:
            print("dying at", done, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


def go(folder: str, devices: jax.sharding.Mesh, kill_at: int = 10**9):
    """The run, or the rest of it."""
    world = worlds.vortex_world(WORLDS)
    result = wl.run(
        world.step,
        mesh.shard(world.state, devices),
        length=LENGTH,
        save={"radius": wl.Every(3), "where": wl.Every(8, of=lambda s: s.position)},
        checkpoint=wl.Checkpoint(folder, chunks=2),
        resume=True,
        chunk_steps=10,
        progress=KillAt(kill_at) if jax.process_index() == 1 else wl.NoProgress(),
    )
    return mesh.gather(result.state)


if __name__ == "__main__":
    mesh.start()
    go(sys.argv[1], mesh.worlds_mesh(), *map(int, sys.argv[2:]))
    print("finished", flush=True)
