"""Run by the tests as two processes, of which number 1 was told something else.

`python disagree.py caught|length FOLDER`
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np

import worldloom as wl
from worldloom import mesh


def step(x, t):
    return x + 1, None


def scaled(rate):
    def step(x, t):
        return x * rate, None

    return step


with mesh.joined(timeout=60) as first:
    me = jax.process_index()
    if sys.argv[1] == "length":
        wl.run(step, mesh.shard(jnp.zeros(4), mesh.worlds_mesh()), length=200 + 40 * me)
    start = mesh.shard(jnp.zeros(4), mesh.worlds_mesh())
    told = {
        "length": ({"length": 20 + me}, step, start),
        "inputs": ({"inputs": np.arange(20.0) + me, "length": 20}, step, start),
        "save": ({"length": 20, "save": wl.Every(1 + me, of=jnp.mean)}, step, start),
        "step.rate": ({"length": 20}, scaled(0.5 + me), start),
        "state": ({"length": 20}, step, jnp.zeros(4) + me),
        "on_fault": ({"length": 20, "on_fault": ("stop", "keep")[me]}, step, start),
    }
    folder = sys.argv[2]
    for name, value in (("seed", me), ("learning_rate", 0.1 * me), ("names", ["a", "b"][:me])):
        saved = wl.Checkpoint(f"{folder}/run", config={name: value, "same": 1})
        told[name] = ({"length": 20, "checkpoint": saved}, step, start)
    for name, (options, function, state) in told.items():
        try:
            wl.run(function, state, **options)
            print("ran", name, flush=True)
        except mesh.DisagreementError as error:
            print("refused", name, "|", error, flush=True)
    result = wl.run(step, start, length=20)
    print("after", float(mesh.gather(result.state).sum()), flush=True)
