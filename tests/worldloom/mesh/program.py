"""Run by the tests as one process or many: the three worlds on whatever devices there are.

`python program.py OUT.npz`: process 0 writes the final states.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import worlds

from worldloom import mesh

WORLDS = 8


def play(world: worlds.World, devices: jax.sharding.Mesh):
    """All steps in one program, split by JAX; and again with one copy of the step a device."""
    inputs = jnp.arange(world.length) if world.inputs is None else world.inputs
    axis = None if world.inputs is None else 0
    step_each = mesh.each_device(world.step, devices, in_axes=(0, axis))
    finals = []
    for step in (world.step, step_each):
        state = mesh.shard(world.state, devices)
        finals.append(jax.jit(lambda s, x, f=step: jax.lax.scan(f, s, x))(state, inputs))
    return finals


def regress(devices: jax.sharding.Mesh):
    """Forty steps of data-parallel gradient descent: the gradient crosses devices."""
    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 3.0, 0.5], np.float32)

    def step(weights, data):
        x, y = data
        gradient = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(weights)
        return weights - 0.1 * jax.lax.pmean(gradient, mesh.AXIS)

    descend = mesh.each_device(step, devices, in_axes=(None, 0), out_axes=None)
    weights = mesh.replicate(jnp.zeros(4), devices)
    data = mesh.shard((x, y), devices)
    return jax.jit(lambda w, d: jax.lax.fori_loop(0, 40, lambda _, w: descend(w, d), w))(
        weights, data
    )


def main(out: str) -> None:
    mesh.start()
    mesh.start()  # A second call does nothing.
    devices = mesh.worlds_mesh()
    result: dict[str, Any] = {"devices": jax.device_count(), "processes": jax.process_count()}
    for world in (worlds.grid_world(WORLDS), worlds.vortex_world(WORLDS)):
        for way, final in zip(("split", "each"), play(world, devices), strict=True):
            for path, leaf in jax.tree_util.tree_leaves_with_path(mesh.gather(final)):
                if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                    leaf = jax.random.key_data(leaf)
                result[f"{world.name}/{way}{jax.tree_util.keystr(path)}"] = leaf
    result["weights"] = mesh.gather(regress(devices))
    if jax.process_index() == 0:
        np.savez(out, **result)
    print(f"done with {jax.local_device_count()} local devices")


if __name__ == "__main__":
    main(sys.argv[1])
