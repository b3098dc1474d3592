"""What watching an ARC rollout costs: ratios to the same rollout without it.

All variants run in turn, and the median of the ratios to the plain rollout beside each counts. The
last part is a callback of 50 ms in a step of 1 ms.

    python benchmarks/watch_overhead.py [--worlds 1000] [--steps 100] [--rounds 15] [--quick]
"""

from __future__ import annotations

import contextlib
import io
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxarc
from jaxarc.utils.visualization import adaptive_visualization_callback, watch_rollout
from worldloom import bench

GROUP = "arc"
NAMES = ("off", "minimal", "debug_standard", "debug_full")


def measure(worlds: int, steps: int, rounds: int) -> bench.Comparison:
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
    return bench.compare(
        {name: lambda run=run: run()[0] for name, run in variants.items()},
        rounds=rounds,
        items=worlds * steps,
        unit="steps",
        title="a watched ARC rollout",
    )


def settle(budget_ms: float = 5.0, steps: int = 40, chunks: int = 5) -> list[float]:
    """Milliseconds a step of a callback of 50 ms in a step of 1 ms, by chunks of `steps`."""
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
    spent = []
    for number in range(chunks):
        before = len(calls)
        x, every = jax.block_until_ready(chunk(x, every, jnp.int32(number * steps)))
        spent.append(50 * (len(calls) - before) / steps)
    return spent


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(15, 3))
    script.parser.add_argument("--worlds", type=int, help="1000, quick 256")
    script.parser.add_argument("--steps", type=int, default=100)
    options = script.start()
    worlds = options.worlds or (256 if options.quick else 1000)
    found = measure(worlds, options.steps, options.rounds)
    script.case(found, ours="minimal")
    for name in NAMES:
        slower = 1 / found.ratio(name).value
        script.figure(f"a rollout watched with {name}", slower, "times the rollout")
    name = "a callback of 50 ms with a budget of 5 ms, after four chunks of 40 steps"
    script.figure(name, settle()[-1], "ms a step", limit=5)
    script.finish()


if __name__ == "__main__":
    main()
