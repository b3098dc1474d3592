"""Reaction-diffusion worlds in one program, on as many devices as the process has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

import worldloom as wl
from worldloom import mesh
from worldloom.demo._world import advance_on, begin


def setup(*, side: int) -> Callable[[], Any]:
    """A function that takes `side * side` worlds some steps further."""
    devices = mesh.worlds_mesh()
    if side * side % devices.size:  # too few worlds for all: one device takes them
        devices = mesh.worlds_mesh(jax.devices()[:1])
    step = advance_on(devices)
    worlds = mesh.shard(begin(jax.random.key(0), side), devices)
    return lambda: wl.run(step, worlds, length=1).state
