"""Many worlds inside a loop: on every device, worlds last, with a few lanes to spare.

A program that only gathers and scatters runs on one core a device, so a processor is used whole
only where JAX sees a device a core, and every device has worlds of its own.
"""

from __future__ import annotations

import warnings
from functools import partial

import jax
from jax.sharding import Mesh
from jaxtyping import Array, Key

from jaxarc.bitgrid import lanes_for, to_lanes
from jaxarc.data import TaskBuffer
from jaxarc.envs._config import JaxArcConfig
from jaxarc.envs._episode import begin
from jaxarc.envs._observation import ArcObservation, observe
from jaxarc.envs._state import ArcState, World
from jaxarc.envs.functional import LaneStep, lane_step, worlds_of
from jaxarc.envs.structured_actions import Action
from worldloom import mesh

FEWEST = 64  # worlds that are worth a device


def devices_for(worlds: int) -> Mesh:
    """As many devices of this process as share the worlds evenly, each with enough to do."""
    here = jax.local_devices()
    most = min(len(here), max(1, worlds // FEWEST))
    count = next(count for count in range(most, 0, -1) if worlds % count == 0)
    if here[0].platform == "cpu" and len(here) == 1 and worlds >= 2 * FEWEST:
        cores = mesh.usable_cores()
        if cores > 1:
            warnings.warn(
                f"JAX was started with one CPU device, so the rollout uses one of {cores} cores: "
                f"import jaxarc before the first computation, or call "
                f"worldloom.mesh.use_cpu_devices({cores}) there.",
                stacklevel=3,
            )
    return mesh.worlds_mesh(here[:count])


def begin_spread(
    keys: Key[Array, " worlds"], config: JaxArcConfig, tasks: TaskBuffer, devices: Mesh
) -> tuple[World, ArcObservation]:
    """Fresh episodes, in lanes; and what each world sees, worlds first."""

    def start(keys, tasks):
        worlds = keys.shape[0]
        lanes = begin(to_lanes(keys, lanes_for(worlds)), config, tasks)
        return lanes, observe(worlds_of(lanes, worlds), config, tasks)

    lanes, _ = jax.eval_shape(start, keys, tasks)
    spread = mesh.each_device(start, devices, in_axes=(0, None), out_axes=(_last(lanes), 0))
    return spread(keys, tasks)


def step_spread(
    lanes: World, actions: Action, config: JaxArcConfig, tasks: TaskBuffer, devices: Mesh
) -> LaneStep:
    """`lane_step` on every device."""
    step = partial(lane_step, config=config)
    spread = mesh.each_device(
        lambda lanes, actions, tasks: step(lanes, actions, tasks=tasks),
        devices,
        in_axes=(_last(lanes), 0, None),
        out_axes=(_last(lanes), 0, 0, 0, 0),
    )
    return spread(lanes, actions, tasks)


def end_spread(lanes: World, worlds: int, devices: Mesh) -> ArcState:
    """The states of a loop that has ended, worlds first."""
    here = worlds // devices.size
    states = lambda lanes: worlds_of(lanes, here).packed()  # noqa: E731
    spread = mesh.each_device(states, devices, in_axes=(_last(lanes),), out_axes=0)
    return spread(lanes)


def _last(lanes: World) -> World:
    """The last axis of every leaf."""
    return jax.tree.map(lambda leaf: leaf.ndim - 1, lanes)
