"""Many ARC worlds at once: how the batch scales, worlds over devices, tasks mixed in a batch.

python examples/advanced/batch_processing_demo.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

import jaxarc
from jaxarc import PointAction, data

WORLDS = 64


def main() -> None:
    config = jaxarc.create_memory_optimized_config(max_episode_steps=50, grid_size=15)
    task = jaxarc.create_mock_task()

    print("== How many worlds at once? (Up to 16 here; each size is a program to compile.)")
    best, results = jaxarc.find_optimal_batch_size(config, task, max_batch_size=16)
    alone = results[1]["throughput"]
    print(f"{best} worlds make {results[best]['throughput'] / alone:.0f} times the steps of one")

    print("\n== Workers over the devices")
    rewards = jaxarc.hierarchical_batch_processing(
        num_workers=2, envs_per_worker=32, episodes_per_worker=3, config=config, task=task
    )
    print(f"{len(rewards)} arrays of {rewards[0].shape[0]} rewards")

    print("\n== Different tasks in one batch")
    tasks = data.load("AGI1-train").subset("up-to-10x10").buffer(height=15, width=15)
    keys = jax.random.split(jax.random.key(0), WORLDS)
    states, _ = jaxarc.batch_reset(keys, config, tasks)
    ids = len(set(states.task_index.tolist()))
    for row in range(5):
        full = lambda value: jnp.full(WORLDS, value, jnp.int32)  # noqa: E731
        actions = PointAction(full(3), full(row), full(0))
        states, *_ = jaxarc.batch_step(states, actions, config)
    print(f"{WORLDS} worlds play {ids} of {tasks.num_tasks} tasks; similarity to their targets:")
    print(f"from {float(states.similarity.min()):.2f} to {float(states.similarity.max()):.2f}")


if __name__ == "__main__":
    main()
