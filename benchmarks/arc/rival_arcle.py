"""ARCLE 0.2.6, timed in an environment of its own: NumPy, one environment, one process.

Its wrappers for points and boxes do not work with the gymnasium that is installed with it, so the
mask is made here. The environment is made without `gym.make`, so that no wrapper checks every
step, and one submission ends an episode, as it does on the other sides.
"""

# pyright: reportMissingImports=none
# because ARCLE is installed in the environment of this script alone.
from __future__ import annotations

import sys
from typing import Any

import numpy as np

SIDE, OPERATIONS, MAX_STEPS = 30, 35, 100


def setup(*, kind: str, length: int) -> Any:
    """One call is `length` steps with random actions, which are drawn before the clock runs."""
    from arcle.envs import O2ARCv2Env
    from arcle.loaders.loader import ARCLoader

    sys.setrecursionlimit(20_000)  # its flood fill calls itself once a cell
    env = O2ARCv2Env(data_loader=ARCLoader(train=True), max_grid_size=(SIDE, SIDE), max_trial=1)
    rng = np.random.default_rng(0)
    actions = [
        {"operation": int(rng.integers(OPERATIONS)), "selection": _selection(rng, kind)}
        for _ in range(4096)
    ]
    place = steps = 0
    observation, _ = env.reset()

    def run():
        nonlocal place, steps, observation
        for _ in range(length):
            observation, _, terminated, truncated, _ = env.step(actions[place])
            place = (place + 1) % len(actions)
            steps += 1
            if terminated or truncated or steps == MAX_STEPS:
                observation, _ = env.reset()
                steps = 0
        return observation

    return run


def _selection(rng: np.random.Generator, kind: str) -> np.ndarray:
    if kind == "mask":
        return rng.integers(0, 2, (SIDE, SIDE), dtype=np.int8)
    selection = np.zeros((SIDE, SIDE), np.int8)
    (r1, r2), (c1, c2) = np.sort(rng.integers(0, SIDE, (2, 2)))
    if kind == "point":
        r2, c2 = r1, c1
    selection[r1 : r2 + 1, c1 : c2 + 1] = 1
    return selection
