"""What watching an ARC rollout costs: ratios to the same rollout without it.

All variants run in turn, and the median of the ratios to the plain rollout beside each counts; in
brackets, the 10th and 90th percentile. The last part is a callback of 50 ms in a step of 1 ms.

    python benchmarks/watch_overhead.py [--worlds 1000] [--steps 100] [--rounds 15]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxarc
from jaxarc.utils.visualization import adaptive_visualization_callback, watch_rollout

NAMES = ("off", "minimal", "debug_standard", "debug_full")


def measure(worlds: int, steps: int, rounds: int) -> None:
    env = jaxarc.make("AGI1-train")

    def policy(params, observation, key):
        return env.random_action(key, worlds=worlds)

    def plain():
        return env.rollout(policy, None, jax.random.key(0), steps, worlds=worlds)

    def watched(name):
        def run():
            with contextlib.redirect_stdout(io.StringIO()):  # drawn, and thrown away
                key = jax.random.key(0)
                return watch_rollout(env, policy, None, key, steps, worlds=worlds, settings=name)

        return run

    variants = {"rollout": plain, **{name: watched(name) for name in NAMES}}
    seconds = {name: [] for name in variants}
    for number in range(rounds + 1):
        for name, run in variants.items():
            started = time.perf_counter()
            jax.block_until_ready(run()[0])
            if number:  # the first round compiles
                seconds[name].append(time.perf_counter() - started)
    base = np.array(seconds["rollout"])
    print(f"{worlds:,} worlds x {steps:,} steps, {rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"  {'rollout':<16}{np.median(base) * 1e3:8.1f} ms")
    for name in NAMES:
        low, middle, high = np.percentile(np.array(seconds[name]) / base, [10, 50, 90])
        print(f"  {name:<16}{middle:8.3f} times the rollout  [{low:.3f}, {high:.3f}]")


def settle(budget_ms: float = 5.0, steps: int = 40) -> None:
    """A callback of 50 ms in a step of 1 ms, in chunks of `steps`."""
    calls = []

    def slow(x):
        calls.append(time.perf_counter())
        time.sleep(0.05)

    weights = jnp.asarray(np.random.default_rng(0).normal(size=(420, 420)) / 20, jnp.float32)

    @jax.jit
    def chunk(x, every, start):
        def step(carry, t):
            x, every = carry
            x = jnp.tanh(x @ weights)
            every = adaptive_visualization_callback(
                slow, x, callback_name="slow", max_avg_time_ms=budget_ms, step=t, every=every
            )
            return (x, every), None

        return jax.lax.scan(step, (x, every), start + jnp.arange(steps))[0]

    x, every = jnp.ones((420, 420)), jnp.int32(1)
    print(f"a callback of 50 ms with a budget of {budget_ms} ms a step, {steps} steps a chunk")
    for number in range(5):
        before = len(calls)
        x, every = jax.block_until_ready(chunk(x, every, jnp.int32(number * steps)))
        spent = 50 * (len(calls) - before) / steps
        print(f"  chunk {number + 1}: {spent:5.2f} ms a step, every {int(every)} steps from here")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    measure(given.worlds, given.steps, given.rounds)
    settle()
