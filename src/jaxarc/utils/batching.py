"""How many worlds at once: by speed, by memory, over devices."""

from __future__ import annotations

import time
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key

from jaxarc.data import JaxArcTask, TaskBuffer
from jaxarc.envs import ArcState, JaxArcConfig, arc_reset, batch_reset, batch_step
from jaxarc.utils._workload import guide_action, program_bytes
from worldloom import Every, batch, bench, fresh_seed, mesh, run, unroll

__all__ = ["DynamicBatchProcessor", "find_optimal_batch_size", "hierarchical_batch_processing"]

GB = 1024**3


def play_episode(
    keys: Key[Array, " worlds"],
    config: JaxArcConfig,
    task: JaxArcTask | TaskBuffer,
    steps: int,
) -> Float32[Array, " worlds"]:
    """Begin an episode in each world and take `steps` steps; the sum of its rewards."""
    states, _ = batch_reset(keys, config, task)

    def step(carry, t):
        states, total = carry
        action = guide_action(config, t, keys.shape)
        states, _, reward, *_ = batch_step(states, action, config)
        return (states, total + reward), None

    start = (states, jnp.zeros(keys.shape, jnp.float32))
    (_, total), _ = unroll(step, start, length=steps, remat=False)
    return total


def find_optimal_batch_size(
    config: JaxArcConfig,
    task: JaxArcTask | TaskBuffer,
    max_batch_size: int = 1024,
    target_memory_gb: float = 8,
) -> tuple[int, dict[int, dict[str, float]]]:
    """The number of worlds with the most steps a second among those that fit into memory.

    Tries 1, 4, 16, ... worlds. What a batch needs is asked of XLA before it runs; the batches
    that fit are timed in turn. Raises `worldloom.batch.BatchMemoryError` where not even one
    world fits.

    **Returns:** the batch size, and for each one tried: `throughput` in steps a second,
    `per_env_time` in seconds, `memory_used_gb`, and `efficiency`, the throughput of one world.
    """
    if max_batch_size < 1:
        raise ValueError(f"max_batch_size must be 1 or more, got {max_batch_size}")
    sizes = sorted({4**k for k in range(16) if 4**k < max_batch_size} | {max_batch_size})
    step = jax.jit(lambda states, actions: batch_step(states, actions, config))
    variants: dict[str, Any] = {}
    memory: dict[int, float] = {}
    one, _ = arc_reset(jax.random.key(42), config, task)
    for size in sizes:
        states = _copies(one, size)
        actions = guide_action(config, 0, (size,))
        program = step.lower(states, actions).compile()
        memory[size] = program_bytes(program) / GB
        if memory[size] > target_memory_gb:
            needs = batch.format_bytes(memory[size] * GB)
            print(f"Batch {size}: needs {needs}, more than {target_memory_gb} GB")
            break
        variants[str(size)] = lambda p=program, s=states, a=actions: p(s, a)
    if not variants:
        raise batch.BatchMemoryError(
            f"one world needs {memory[sizes[0]]:.6f} GB; target_memory_gb is {target_memory_gb}"
        )
    times = bench.compare(
        variants,
        rounds=5,
        seconds=0.02,
        items={name: int(name) for name in variants},
        unit="steps",
    )
    results: dict[int, dict[str, float]] = {}
    for name in variants:
        size, seconds = int(name), times[name].best
        results[size] = {
            "throughput": size / seconds,
            "per_env_time": seconds / size,
            "memory_used_gb": memory[size],
            "efficiency": 1 / seconds,
        }
        needs = batch.format_bytes(memory[size] * GB)
        print(f"Batch {size:4d}: {size / seconds:9,.0f} steps/s, {needs}")
    best = max(results, key=lambda size: results[size]["throughput"])
    print(f"Optimal batch size: {best}")
    return best, results


@partial(jax.jit, static_argnums=1)
def _copies(state: ArcState, count: int) -> ArcState:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), state)


def hierarchical_batch_processing(
    num_workers: int = 4,
    envs_per_worker: int = 64,
    episodes_per_worker: int = 10,
    config: JaxArcConfig | None = None,
    task: JaxArcTask | TaskBuffer | None = None,
    *,
    steps: int = 50,
    seed: int | None = None,
) -> list[Float32[Array, " envs"]]:
    """Episodes of many workers, each with worlds of its own, all at once.

    The workers are parts of one batch, spread over the devices of JAX. Each episode has keys of
    its own. Without a `seed` a fresh one is drawn; the line that is printed says which.

    **Returns:** the rewards of each worker's episodes, worker after worker: a list of
    `num_workers * episodes_per_worker` arrays of `envs_per_worker`.
    """
    if config is None or task is None:
        raise ValueError("hierarchical_batch_processing needs a config and a task")
    if min(num_workers, envs_per_worker, episodes_per_worker) < 1:
        raise ValueError(
            f"num_workers, envs_per_worker and episodes_per_worker must be 1 or more, got "
            f"{num_workers}, {envs_per_worker} and {episodes_per_worker}"
        )
    worlds = num_workers * envs_per_worker
    devices = jax.devices()
    while worlds % len(devices):
        devices = devices[:-1]
    spread = mesh.worlds_mesh(devices)
    seed = fresh_seed() if seed is None else seed
    keys = mesh.shard(jax.random.split(jax.random.key(seed), worlds), spread)
    step = jax.tree_util.Partial(_episode_on(spread, config, steps), task=task)
    result = run(step, keys, length=episodes_per_worker, save=Every())
    rewards = jnp.asarray(result.records).reshape(-1, num_workers, envs_per_worker)
    print(
        f"{num_workers * episodes_per_worker} episodes of {envs_per_worker} worlds on "
        f"{len(devices)} devices, {rewards.size * steps:,} steps; reward "
        f"{float(rewards.mean()):.3f} +- {float(rewards.std()):.3f}, seed {seed}"
    )
    return [
        rewards[episode, worker]
        for worker in range(num_workers)
        for episode in range(episodes_per_worker)
    ]


@cache
def _episode_on(spread: jax.sharding.Mesh, config: JaxArcConfig, steps: int) -> Any:
    """One episode of every world as a step of a run; the keys are the state."""

    def play(keys, t, task):
        own = jax.vmap(lambda key: jax.random.fold_in(key, t))(keys)
        return play_episode(own, config, task, steps)

    on_devices = mesh.each_device(play, spread, in_axes=(0, None, None))

    def episode(keys, t, *, task):
        return keys, on_devices(keys, t, task)

    return episode


class DynamicBatchProcessor:
    """Plays episodes in batches that grow as long as they fit into memory.

    Each batch size is compiled once, and XLA says what it needs before it runs: a size that
    needs more than `memory_limit_gb` is not run. A size that fails all the same is halved.

    **Arguments:**

    - `initial_batch_size`: worlds of the first batch, rounded down to a power of two.
    - `memory_limit_gb`: what a batch may need.
    - `max_batch_size`: the size never to exceed.
    - `patience`: batches of a size before the next larger one, which must be compiled, is tried.
    - `seed`: decides the episodes. Without one a fresh seed is drawn; `.seed` says which.
    """

    def __init__(
        self,
        config: JaxArcConfig,
        task: JaxArcTask | TaskBuffer,
        initial_batch_size: int = 64,
        memory_limit_gb: float = 4,
        *,
        max_batch_size: int = 512,
        patience: int = 8,
        seed: int | None = None,
    ):
        self.config = config
        self.task = task
        self.memory_limit_gb = memory_limit_gb
        self.seed = fresh_seed() if seed is None else seed
        self.performance_history: list[dict[str, float]] = []
        self._sizes = batch.AdaptiveBatch(
            initial_batch_size, largest=max(max_batch_size, initial_batch_size), patience=patience
        )
        self._play = jax.jit(lambda keys, task: play_episode(keys, config, task, 20))
        self._programs: dict[int, tuple[Any, float]] = {}

    @property
    def current_batch_size(self) -> int:
        """Worlds of the next batch."""
        return self._sizes.size

    def process_batch(self, num_episodes: int = 10) -> list[Float32[Array, " worlds"]]:
        """Play so many batches of episodes of 20 steps; the rewards of each batch.

        `performance_history` gets a row a batch: `episode`, `batch_size`, `throughput` in worlds
        a second, and `memory_gb`.
        """
        results = []
        for episode in range(num_episodes):
            size, (rewards, seconds) = self._sizes.attempt(
                lambda size, e=episode: self._run(size, e)
            )
            self.performance_history.append(
                {
                    "episode": episode,
                    "batch_size": size,
                    "throughput": size / seconds,
                    "memory_gb": self._programs[size][1],
                }
            )
            results.append(rewards)
        if self.performance_history:
            last = self.performance_history[-1]
            print(
                f"Batch size {last['batch_size']}: {last['throughput']:,.0f} worlds/s, "
                f"{batch.format_bytes(last['memory_gb'] * GB)}, seed {self.seed}"
            )
        return results

    def _run(self, size: int, episode: int) -> tuple[Array, float]:
        own = jax.random.fold_in(jax.random.key(self.seed), episode)
        keys = jax.random.split(own, size)
        if size not in self._programs:
            program = self._play.lower(keys, self.task).compile()
            self._programs[size] = program, program_bytes(program) / GB
        program, needs = self._programs[size]
        if needs > self.memory_limit_gb:
            raise MemoryError(
                f"{size} worlds need {needs:.6f} GB; memory_limit_gb is {self.memory_limit_gb}"
            )
        start = time.perf_counter()
        rewards = jax.block_until_ready(program(keys, self.task))
        return rewards, time.perf_counter() - start
