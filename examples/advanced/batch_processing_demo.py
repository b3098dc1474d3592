"""Many ARC worlds at once: how the batch scales, tasks mixed in a batch, worlds over devices.

python examples/advanced/batch_processing_demo.py
"""

from __future__ import annotations

import jax

import jaxarc


def main() -> None:
    config = jaxarc.create_memory_optimized_config(max_episode_steps=50, grid_size=15)
    task = jaxarc.create_mock_task()

    print("== How many worlds at once?")
    best, results = jaxarc.find_optimal_batch_size(config, task, max_batch_size=16)
    alone = results[1]["throughput"]
    print(f"{best} worlds make {results[best]['throughput'] / alone:.0f} times the steps of one")

    print("\n== Workers over the devices")
    rewards = jaxarc.hierarchical_batch_processing(
        num_workers=2, envs_per_worker=32, episodes_per_worker=3, config=config, task=task
    )
    print(f"{len(rewards)} arrays of {rewards[0].shape[0]} rewards")

    print("\n== Different tasks in one batch, new episodes by themselves")
    env = jaxarc.make("AGI1-train", subset="up-to-10x10")
    worlds = 64

    def policy(params, observation, key):
        return env.random_action(key, worlds=worlds)

    state, rollout = env.rollout(policy, None, jax.random.key(0), 40, worlds=worlds)
    ended = int((rollout.terminated | rollout.truncated).sum())
    print(
        f"{worlds * 40:,} steps, {ended} episodes ended, {int(rollout.success.sum())} pairs "
        f"solved, {len(set(state.task_index.tolist()))} different tasks on the boards now"
    )


if __name__ == "__main__":
    main()
