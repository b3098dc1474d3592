"""Predicted against measured memory, for three kinds of program. Linux only.

    python benchmarks/memory_prediction.py [--memory "1 GiB"] [--quick] [--json]

`batch.plan` says which batch fills the memory. A process of its own runs that batch once and
measures by how much its resident memory grew at the peak. The two agree within 5 %.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from worldloom import batch, bench

GROUP = "engine"
LIMIT = 0.05


def edit(cells, action):
    """A grid step: paint one cell of each grid, count the coloured ones."""

    def one(cells, action):
        row, col, colour = action
        cells = cells.at[row, col].set(colour.astype(jnp.uint8))
        return cells, jnp.sum(cells > 0, dtype=jnp.int32)

    return jax.vmap(one)(cells, action)


def trace(positions):
    """A trajectory: two hundred steps in a vortex, every one kept."""

    def step(x, t):
        x = x + 0.01 * jnp.sin(t) * jnp.stack([-x[:, 1], x[:, 0]], axis=1)
        return x, x

    return jax.lax.scan(step, positions, jnp.arange(200.0))[1]


def train(weights, x, y):
    """A training step: gradient descent on a network with two hidden layers."""

    def loss(weights):
        hidden = jnp.tanh(x @ weights[0])
        hidden = jnp.tanh(hidden @ weights[1])
        return jnp.mean((hidden @ weights[2] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient), value


def program(name: str, size: int) -> tuple[Any, tuple[Any, ...], Any]:
    """The function, its abstract arguments for a batch of `size`, and their batch axes."""
    shape = jax.ShapeDtypeStruct
    if name == "grid step":
        return edit, (shape((size, 30, 30), jnp.uint8), shape((size, 3), jnp.int32)), 0
    if name == "trajectory":
        return trace, (shape((size, 2), jnp.float32),), 0
    layers = [shape(dims, jnp.float32) for dims in ((64, 256), (256, 256), (256, 8))]
    x, y = shape((size, 64), jnp.float32), shape((size, 8), jnp.float32)
    return train, (layers, x, y), (None, 0, 0)


def status(field: str) -> int:
    """Bytes of a field of this process's status: VmRSS now, VmHWM at the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def grown_by(name: str, size: int) -> int:
    """Bytes by which this process grows at the peak when it runs a batch of `size`."""
    fn, shapes, _ = program(name, size)
    compiled = jax.jit(fn).lower(*shapes).compile()
    ones = jax.jit(lambda: jax.tree.map(lambda s: jnp.ones(s.shape, s.dtype), shapes))
    make_args = ones.lower().compile()
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # Forget the peak so far.
    jax.block_until_ready(compiled(*make_args()))
    return status("VmHWM") - before


def main() -> int:
    script = bench.Script(__doc__, group=GROUP)
    add = script.parser.add_argument
    add("--memory", help="memory to fill; 1 GiB, quick 350 MiB")
    add("--json", action="store_true", help="print one JSON object instead")
    add("--run", help=argparse.SUPPRESS)
    options = script.start()
    if options.run:
        sizes = json.loads(options.run)
        print(json.dumps({name: grown_by(name, size) for name, size in sizes.items()}))
        return 0
    plans = {}
    memory = options.memory or ("350 MiB" if options.quick else "1 GiB")
    for name in ("grid step", "trajectory", "training step"):
        fn, shapes, axes = program(name, 8)
        plans[name] = batch.plan(fn, *shapes, in_axes=axes, memory=memory)
    sizes = json.dumps({name: plan.largest for name, plan in plans.items()})
    command = [sys.executable, __file__, "--run", sizes]
    grown = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    result = {
        name: {
            "batch": plan.largest,
            "predicted": plan.bytes(plan.largest),
            "measured": grown[name],
            "ratio": grown[name] / plan.bytes(plan.largest),
            "compiles": plan.compiles,
        }
        for name, plan in plans.items()
    }
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        for name, entry in result.items():
            size = batch.format_bytes(entry["predicted"])
            off = 100 * abs(entry["ratio"] - 1)
            title = f"{name}, {entry['batch']:,} at once, {size}: predicted off by"
            script.figure(title, off, "%", limit=100 * LIMIT)
    script.finish()
    if options.json:
        print(json.dumps(result))
    return int(max(abs(entry["ratio"] - 1) for entry in result.values()) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
