"""Run by the tests as one process or two: training that one process may die in.

`python arc_run.py FOLDER [KILL_AT]`: process 1 kills itself when so many updates are done.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
from stopping import StopAt

import worldloom as wl
from jaxarc import training
from worldloom import mesh

# The same twice: for this program, and for `worldloom arc train`.
OPTIONS = {"worlds": 16, "steps": 6, "updates": 8, "epochs": 1, "minibatches": 2}
OPTIONS |= {"width": 8, "layers": 1}
WORDS = [word for k, v in OPTIONS.items() for word in (f"--{k}", str(v))]
WORDS += ["--episode-steps", "4", "--operations", "1", "2", "3", "4", "--seed", "5"]


def go(folder: str, devices: Any, progress: Any = False) -> wl.RunResult:
    """The run, or the rest of it."""
    env = training.environment_for(training.tiny_tasks(), operations=(1, 2, 3, 4), episode_steps=4)
    return training.train(
        env,
        jax.random.key(5),
        config=training.PPOConfig(**OPTIONS),
        devices=devices,
        checkpoint=wl.Checkpoint(folder, chunks=1),
        resume=True,
        chunk_steps=1,
        progress=progress,
    )


if __name__ == "__main__":
    with mesh.joined():
        dies = jax.process_index() == 1 and len(sys.argv) > 2
        stop = StopAt(int(sys.argv[2]), die=True) if dies else False
        go(sys.argv[1], mesh.worlds_mesh(), stop)
