"""Run by the tests as one process or two: training of a surrogate that one process may die in.

`python acbo_run.py FOLDER [KILL_AT]`: process 1 kills itself when so many steps are done.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
from stopping import StopAt

import worldloom as wl
from acbo.scm import Family
from acbo.surrogate import Curriculum, Lesson, SurrogateConfig, TrainingConfig, train_surrogate
from worldloom import mesh

STEPS = 6


def go(folder: str, devices: Any, progress: Any = False) -> wl.RunResult:
    """The run, or the rest of it."""
    curriculum = Curriculum(
        lessons=(Lesson((2, 3), (8, 16), batch=4),), families=((Family(), 1.0),)
    )
    return train_surrogate(
        jax.random.key(0),
        curriculum,
        surrogate=SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4),
        config=TrainingConfig(steps=STEPS, max_parent_size=2),
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
