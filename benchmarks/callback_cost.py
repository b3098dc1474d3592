"""What watching and checking cost: ratios to the same program without them.

A program is a scan of a step that takes about 10 us, over one world and over a batch under `vmap`.
Variants run in turn. On a busy machine trust CPU time. The last table has one step a program,
started from Python each time: what it costs to have a callback in a program at all.

    python benchmarks/callback_cost.py [--rounds 40] [--steps 2000] [--quick]
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from worldloom import bench, check, watch

GROUP = "engine"
OURS = "callback, never due"

WEIGHTS = jnp.asarray(np.random.default_rng(0).normal(size=(128, 128)) / 11, jnp.float32)


def think(x, layers):
    """The work of one step of one world."""
    for _ in range(layers):
        x = jnp.tanh(x @ WEIGHTS)
    return x


def nothing(*_):
    """The cheapest callback there is."""


def variants(layers: int) -> dict[str, Callable]:
    """Steps `(x, t) -> x` that differ in what watches or checks them."""
    idle = watch.Rate(budget_ms=1e-6)  # after a few calls it is hardly ever due

    def plain(x, t):
        return think(x, layers)

    def watched(**options):
        def step(x, t):
            x = think(x, layers)
            given = {key: t if value == "t" else value for key, value in options.items()}
            watch.callback(nothing, x, batched=True, **given)
            return x

        return step

    def jax_own(x, t):
        x = think(x, layers)
        jax.lax.cond(t % 64 == 0, lambda: jax.debug.callback(nothing, x), lambda: None)
        return x

    def required(x, t):
        x = think(x, layers)
        return check.require(jnp.all(jnp.isfinite(x)), x, "not finite")

    def error_if(x, t):
        x = think(x, layers)
        return eqx.error_if(x, ~jnp.all(jnp.isfinite(x)), "not finite")

    return {
        "nothing": plain,
        "callback, never due": watched(step="t", every=2**30),
        "callback, every 64": watched(step="t", every=64),
        "callback, every 1": watched(),
        "callback, rate, turned away on the host": watched(rate=idle),
        "jax.debug.callback in cond, every 64": jax_own,
        "check.require": required,
        "eqx.error_if": error_if,
    }


def program(step: Callable, worlds: int | None, steps: int) -> Callable[[], jax.Array]:
    """The compiled scan, as something to time."""
    if worlds is None:
        start = jnp.ones(128)
    else:
        start = jnp.ones((worlds, 128))
        step = jax.vmap(step, in_axes=(0, None))

    @jax.jit
    def scan(x):
        return jax.lax.scan(lambda x, t: (step(x, t), None), x, jnp.arange(1, steps + 1))[0]

    def run():
        end = jax.block_until_ready(scan(start))
        jax.effects_barrier()
        return end

    return run


def measure(worlds: int | None, layers: int, steps: int, rounds: int) -> bench.Comparison:
    """All variants of one kind of program."""
    # Under vmap, JAX unrolls its own callback: one a world.
    runs = {
        name: program(step, worlds, steps)
        for name, step in variants(layers).items()
        if worlds is None or not name.startswith("jax.")
    }
    what = "one world" if worlds is None else f"{worlds} worlds under vmap"
    many = f"{steps:,} steps a program" if steps > 1 else "one step a program"
    title = f"watched and checked: {what}, {many}"
    return bench.compare(runs, rounds=rounds, seconds=0.02, items=steps, unit="steps", title=title)


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(40, 5))
    script.parser.add_argument("--steps", type=int, help="in one program; 2000, quick 500")
    options = script.start()
    steps = options.steps or (500 if options.quick else 2000)
    kinds = [(None, 4, steps), (8, 2, steps), (None, 4, 1)]
    for worlds, layers, length in kinds[:2] if options.quick else kinds:
        found = measure(worlds, layers, length, options.rounds)
        script.case(found, ours=OURS)
    script.finish()


if __name__ == "__main__":
    main()
