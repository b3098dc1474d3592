"""What the engine costs over bare JAX, each figure beside the limit that it promises.

    python benchmarks/engine_overhead.py [--rounds 15] [--quick]

Three questions: `run` against a bare `lax.scan` of the same step, `compiled` against `jax.jit` of
the same leaves, and a callback that is never due against none. (Memory predicted against measured
is `memory_prediction.py`.) Exits with 1 if a limit is broken on a quiet machine.
"""

from __future__ import annotations

import io
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
from rich.console import Console

import worldloom as wl
from worldloom import bench, watch

GROUP = "engine"
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


def cost(comparison: bench.Comparison, name: str) -> float:
    """How much slower than the baseline, at the best of all rounds."""
    return comparison[name].best / comparison[comparison.baseline].best


def main() -> int:
    script = bench.Script(__doc__, group=GROUP, rounds=(15, 5))
    options = script.start()
    loop = run_against_scan(options.rounds)
    script.case(loop, ours="run, progress bar")
    costs = {"run with a progress bar / lax.scan": (cost(loop, "run, progress bar"), 1.03)}
    for count in (1, 10, 40):
        dispatch = compiled_against_jit(options.rounds, count)
        script.case(dispatch, ours="compiled", naive="eqx.filter_jit")
        costs[f"compiled / jax.jit, {count} arrays"] = cost(dispatch, "compiled"), 1.3
    callback = callback_against_none(options.rounds)
    script.case(callback, ours="callback, never due")
    costs["callback that is skipped / none"] = cost(callback, "callback, never due"), 1.05
    for name, (value, limit) in costs.items():
        script.figure(name, value, "times the time", limit=limit)
    quiet = script.quiet
    script.finish()
    return int(quiet and any(value > limit for value, limit in costs.values()))


if __name__ == "__main__":
    sys.exit(main())
