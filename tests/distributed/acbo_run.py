"""Run by the tests as one process or two: a few steps of training a surrogate.

`python acbo_run.py OUT.npy`: process 0 writes the losses.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

from acbo.scm import Family
from acbo.surrogate import Curriculum, Lesson, SurrogateConfig, TrainingConfig, train_surrogate
from worldloom import mesh


def losses(devices: Any) -> np.ndarray:
    """The loss of each of four steps."""
    curriculum = Curriculum(
        lessons=(Lesson((2, 3), (8, 16), batch=4),), families=((Family(), 1.0),)
    )
    result = train_surrogate(
        jax.random.key(0),
        curriculum,
        surrogate=SurrogateConfig(hidden=8, blocks=2, heads=2, moments=4),
        config=TrainingConfig(steps=4, max_parent_size=2),
        devices=devices,
        progress=False,
    )
    return np.asarray(result.records.loss)


if __name__ == "__main__":
    with mesh.joined() as first:
        found = losses(mesh.worlds_mesh())
        if first:
            np.save(sys.argv[1], found)
