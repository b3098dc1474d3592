"""Six habits that keep JAX fast and right, each shown on ARC worlds.

python examples/advanced/jax_best_practices_demo.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

import jaxarc
from jaxarc import PointAction
from worldloom import check, no_compiles

WORLDS = 16


def main() -> None:
    config = jaxarc.create_memory_optimized_config(max_episode_steps=10, grid_size=15)
    task = jaxarc.create_mock_task()

    print("1. One key a world: split it, never reuse it.")
    states, _ = jaxarc.batch_reset(jax.random.split(jax.random.key(42), WORLDS), config, task)
    print(f"   pairs on the boards: {sorted(set(states.pair_index.tolist()))}")

    print("2. Warm up, then demand that nothing compiles.")
    actions = PointAction(jnp.zeros(WORLDS, int), jnp.arange(WORLDS) % 9, jnp.full(WORLDS, 5))
    others = PointAction(jnp.full(WORLDS, 4), jnp.full(WORLDS, 2), jnp.arange(WORLDS) % 9)
    states, *_ = jaxarc.batch_step(states, actions, config)
    with no_compiles():
        states, *_ = jaxarc.batch_step(states, others, config)
    print("   other values, same program")

    print("3. Wait for the work before reading the clock.")
    monitor = jaxarc.PerformanceMonitor()
    for _ in range(5):
        states, *_ = monitor.monitor_batch_step(states, actions, config)
    print(f"   {monitor.get_statistics()['throughput_max']:,.0f} worlds/s from Python")

    print("4. Loop inside the program.")

    def step(states, t):
        states, _, reward, *_ = jaxarc.batch_step(states, actions, config)
        return states, reward

    last, rewards = jax.jit(lambda states: jax.lax.scan(step, states, jnp.arange(20)))(states)
    print(f"   20 steps in one call, mean reward {float(rewards.mean()):+.4f}")

    print("5. Tell truncated from terminated: bootstrap the value only of the first.")
    print(f"   all worlds done: {bool(last.done.all())}")
    _, _, _, done, info = jaxarc.batch_step(last, actions, config)
    print(f"   a done world stays so; ended by this step: {bool(info.truncated.any())}")

    print("6. Check actions inside the program; only the bad world suffers.")
    bad = PointAction(jnp.array([0, 99]), jnp.array([3, 3]), jnp.array([3, 3]))
    validate = jax.jit(lambda action: jaxarc.JAXErrorHandler.validate_action(action, config))
    try:
        with check.reraise():
            jax.block_until_ready(validate(bad))
    except check.CheckError as error:
        print(f"   {str(error).strip().splitlines()[0]}")
    with check.using("off"):
        jax.block_until_ready(validate(bad))
    assert done.all()


if __name__ == "__main__":
    main()
