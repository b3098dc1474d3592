"""The same chemistry as one would write it first: a world at a time."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from worldloom.demo._world import Worlds, react


def numpy_react(
    u: np.ndarray, v: np.ndarray, feed: float, kill: float
) -> tuple[np.ndarray, np.ndarray]:
    """One step of one world in NumPy."""

    def laplacian(x: np.ndarray) -> np.ndarray:
        vertical = np.roll(x, 1, 0) + np.roll(x, -1, 0)
        return vertical + np.roll(x, 1, 1) + np.roll(x, -1, 1) - 4 * x

    reaction = u * v * v
    next_u = u + 0.16 * laplacian(u) - reaction + feed * (1 - u)
    next_v = v + 0.08 * laplacian(v) + reaction - (feed + kill) * v
    return next_u, next_v


def numpy_loop(worlds: Worlds, count: int) -> Callable[[], object]:
    """A function that takes the first `count` worlds one step further, one after the other."""
    us, vs = np.array(worlds.u[:count]), np.array(worlds.v[:count])
    feeds, kills = worlds.feed[:count].tolist(), worlds.kill[:count].tolist()

    def step_all() -> object:
        for i in range(count):
            us[i], vs[i] = numpy_react(us[i], vs[i], feeds[i], kills[i])
        return vs

    return step_all


def jit_loop(worlds: Worlds, count: int) -> Callable[[], object]:
    """The same with a compiled step: Python calls it once for each world."""
    step = jax.jit(react)
    singles = [jax.tree.map(lambda x, i=i: x[i], worlds) for i in range(count)]

    def step_all() -> object:
        singles[:] = [step(world) for world in singles]
        return singles

    return step_all
