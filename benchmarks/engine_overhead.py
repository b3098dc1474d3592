"""What the engine costs over bare JAX, each figure beside the limit that it promises.

    python benchmarks/engine_overhead.py [--rounds 15] [--json FILE]

Four questions: `run` against a bare `lax.scan` of the same step, `compiled` against `jax.jit` of
the same leaves, a callback that is never due against none, and memory predicted against measured.
Exits with 1 if a limit is broken. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from rich.console import Console

import worldloom as wl
from worldloom import bench, watch

LENGTH = 10_000
WEIGHTS = jax.random.normal(jax.random.key(0), (16, 16)) / 8


def step(x, t):
    """About ten microseconds of work; the output is one number."""
    for _ in range(6):
        x = jnp.tanh(x @ WEIGHTS)
    return x, x[0, 0]


def watched_step(x, t):
    """The same with a callback that is never due."""
    x, y = step(x, t)
    watch.callback(lambda x: None, x, step=t + 1, every=2**30)
    return x, y


def run_against_scan(rounds: int) -> bench.Comparison:
    start = jnp.ones((64, 16))
    ts = jnp.arange(LENGTH, dtype=jnp.int32)
    scan = jax.jit(lambda x: jax.lax.scan(step, x, ts))
    screen = Console(file=io.StringIO(), force_terminal=True)

    def run(progress):
        result = wl.run(step, start, length=LENGTH, save=wl.Every(), progress=progress)
        return result.state, result.records

    return bench.compare(
        {
            "lax.scan": lambda: scan(start),
            "run": lambda: run(False),
            "run, progress bar": lambda: run(True),
            "run, bar drawn at once": lambda: run(wl.ProgressBar(delay=0.0, console=screen)),
        },
        rounds=rounds,
        seconds=0.4,
        items=LENGTH,
        unit="steps",
        title="run against a bare scan: a step of ten microseconds, 10,000 of them",
    )


class Leaves(eqx.Module):
    """A module with so many arrays."""

    leaves: list[jax.Array]


def compiled_against_jit(rounds: int, count: int) -> bench.Comparison:
    module = Leaves([jnp.zeros(4) for _ in range(count)])

    def increment(module):
        return jax.tree.map(lambda x: x + 1, module)

    jitted, compiled, filtered = (
        jax.jit(increment),
        wl.compiled(increment),
        eqx.filter_jit(increment),
    )
    return bench.compare(
        {
            "jax.jit": lambda: jitted(module),
            "compiled": lambda: compiled(module),
            "eqx.filter_jit": lambda: filtered(module),
        },
        rounds=rounds,
        seconds=0.05,
        title=f"one call with a module of {count} arrays",
    )


def callback_against_none(rounds: int) -> bench.Comparison:
    start = jnp.ones((64, 16))
    ts = jnp.arange(2000, dtype=jnp.int32)
    plain = jax.jit(lambda x: jax.lax.scan(step, x, ts))
    watched = jax.jit(lambda x: jax.lax.scan(watched_step, x, ts))
    return bench.compare(
        {"no callback": lambda: plain(start), "callback, never due": lambda: watched(start)},
        rounds=rounds,
        seconds=0.1,
        items=2000,
        unit="steps",
        title="a callback that is skipped",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, help="also write the comparisons to this file")
    options = parser.parse_args()
    loop = run_against_scan(options.rounds)
    dispatch = {count: compiled_against_jit(options.rounds, count) for count in (1, 10, 40)}
    callback = callback_against_none(options.rounds)
    for comparison in (loop, *dispatch.values(), callback):
        print(comparison)
    if options.json:
        loop.to_json(options.json)

    def cost(comparison, name):
        """How much slower than the baseline, at the best of all rounds."""
        return comparison[name].best / comparison[comparison.baseline].best

    costs = {
        "run with a progress bar / lax.scan": (cost(loop, "run, progress bar"), 1.03),
        **{
            f"compiled / jax.jit, {n} arrays": (cost(c, "compiled"), 1.3)
            for n, c in dispatch.items()
        },
        "callback that is skipped / none": (cost(callback, "callback, never due"), 1.05),
    }
    for name, (value, limit) in costs.items():
        print(f"{name:40} {value:6.3f}  limit {limit}  {'ok' if value <= limit else 'BROKEN'}")
    memory = Path(__file__).with_name("memory_prediction.py")
    broken = subprocess.run([sys.executable, str(memory)], check=False).returncode
    return int(broken or any(value > limit for value, limit in costs.values()))


if __name__ == "__main__":
    sys.exit(main())
