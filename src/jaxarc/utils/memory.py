"""How much memory worlds take, whether it grows, and a pool of states."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import jax

from jaxarc.data import JaxArcTask, TaskBuffer, create_mock_task
from jaxarc.envs import (
    ArcState,
    ConfigError,
    EnvironmentConfig,
    JaxArcConfig,
    UnifiedActionConfig,
    arc_reset,
    arc_step,
    batch_reset,
    create_test_config,
)
from jaxarc.utils._workload import guide_action
from worldloom import fresh_seed, watch

__all__ = [
    "MemorySamples",
    "StateMemoryPool",
    "analyze_memory_usage_by_format",
    "detect_memory_leaks",
    "get_fields_per_action",
    "profile_memory_usage",
]

MB = 1024 * 1024
_FIELDS = {"point": 6, "bbox": 8, "mask": 904}


def get_fields_per_action(format_name: str) -> int:
    """What a history record says: operation, selection, timestamp, pair, valid.

    A mask selects among 900 cells. The record keeps them as bits, in some 128 bytes.
    """
    if format_name not in _FIELDS:
        raise ConfigError(f"no action format {format_name!r}; there are: {', '.join(_FIELDS)}")
    return _FIELDS[format_name]


def analyze_memory_usage_by_format(max_episode_steps: int = 1000) -> dict[str, dict[str, float]]:
    """Bytes of the action history of one world for each action format.

    **Returns:** for `"point"`, `"bbox"` and `"mask"`: `action_history_mb`, `state_mb` (history
    included) and `fields_per_action`.
    """
    usage: dict[str, dict[str, float]] = {}
    for name in _FIELDS:
        config = JaxArcConfig(
            environment=EnvironmentConfig(max_episode_steps=max_episode_steps),
            action=UnifiedActionConfig(selection_format=name),
        )
        shapes = jax.eval_shape(
            lambda key, config=config: arc_reset(key, config, create_mock_task())[0],
            jax.random.key(0),
        )
        history = shapes.action_history
        usage[name] = {
            "action_history_mb": _bytes(history) / MB,
            "state_mb": _bytes(shapes) / MB,
            "fields_per_action": get_fields_per_action(name),
        }
        print(f"{name.capitalize()} format: {usage[name]['action_history_mb']:.3f} MB")
    most = usage["mask"]["action_history_mb"]
    for name in ("point", "bbox"):
        saved = 100 * (1 - usage[name]["action_history_mb"] / most)
        print(f"{name.capitalize()} vs mask: {saved:.1f} % less")
    return usage


def _bytes(tree: object) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def profile_memory_usage(
    config: JaxArcConfig,
    task: JaxArcTask | TaskBuffer,
    batch_sizes: Sequence[int] = (1, 16, 64, 256),
) -> dict[int, dict[str, float]]:
    """Memory that worlds and what they see take on the device, for some batch sizes.

    Counted from the arrays that JAX holds, which other work of the process does not blur.

    **Returns:** for each batch size `total_memory_mb`, `per_env_memory_mb`, and what JAX held
    before and after, `memory_before` and `memory_after`, all in MB.
    """
    profile: dict[int, dict[str, float]] = {}
    for size in batch_sizes:
        keys = jax.block_until_ready(jax.random.split(jax.random.key(42), size))
        before = watch.device_bytes() / MB
        made = jax.block_until_ready(batch_reset(keys, config, task))
        after = watch.device_bytes() / MB
        del made
        profile[size] = {
            "total_memory_mb": after - before,
            "per_env_memory_mb": (after - before) / size,
            "memory_before": before,
            "memory_after": after,
        }
        print(f"Batch {size:3d}: {after - before:.2f} MB, {(after - before) / size:.4f} MB a world")
    return profile


class MemorySamples(list[tuple[int, float]]):
    """What `detect_memory_leaks` saw: `(iteration, MB of the process)`; `report` is the verdict."""

    def __init__(self, report: watch.LeakReport, steps: int):
        super().__init__((i * steps, host / MB) for i, host in enumerate(report.host))
        self.report = report

    @property
    def leaking(self) -> bool:
        """Whether memory grows steadily."""
        return self.report.leaking


def detect_memory_leaks(
    config: JaxArcConfig, task: JaxArcTask | TaskBuffer, num_iterations: int = 1000
) -> MemorySamples:
    """Step and reset a world again and again, and say whether that takes more and more memory.

    It is a leak where arrays of JAX stay alive, or where the process grows steadily by 100 MB or
    more over the iterations; see `worldloom.watch.find_leak`.
    """
    steps = max(num_iterations // 40, 1)
    measured = max(num_iterations // steps, 8)
    key = jax.random.key(42)

    def some_steps() -> object:
        state, _ = arc_reset(key, config, task)
        for i in range(steps):
            state, *_ = arc_step(state, guide_action(config, i), config)
        return state

    report = watch.find_leak(
        some_steps, iterations=measured, warmup=3, threshold_bytes=100e6, horizon=measured
    )
    samples = MemorySamples(report, steps)
    print(f"Memory of the process: {samples[0][1]:.1f} MB, at the end {samples[-1][1]:.1f} MB")
    print(f"Verdict: {report}")
    return samples


class StateMemoryPool:
    """Fresh states to take and to give back.

    Arrays of JAX never change, so a state that was given back is as fresh as when it was made,
    and the pool saves the call that makes it. A state that has been stepped is another object,
    which the pool does not take.

    **Arguments:**

    - `pool_size`: how many states it keeps at most.
    - `config`: that of the states; `create_test_config()` by default.
    - `task`: the task they play; `create_mock_task()` by default.
    - `seed`: decides the states. Without one a fresh seed is drawn; `pool.seed` says which.

    ```python
    from jaxarc import StateMemoryPool

    pool = StateMemoryPool(pool_size=50)
    state = pool.get_state()
    assert pool.return_state(state)
    assert pool.get_state() is state
    ```
    """

    def __init__(
        self,
        pool_size: int = 100,
        config: JaxArcConfig | None = None,
        task: JaxArcTask | TaskBuffer | None = None,
        *,
        seed: int | None = None,
    ):
        if pool_size < 0:
            raise ValueError(f"pool_size must be 0 or more, got {pool_size}")
        self.pool_size = pool_size
        self.config = config or create_test_config()
        self.available_states: list[ArcState] = []
        # Weakly: a state that nobody holds any more will never be given back.
        self.in_use_states: weakref.WeakValueDictionary[int, ArcState] = (
            weakref.WeakValueDictionary()
        )
        self._task = task or create_mock_task()
        self.seed = fresh_seed() if seed is None else seed
        self._made = 0

    def get_state(self) -> ArcState:
        """A state from the pool, or a new one where it is empty."""
        state = self.available_states.pop() if self.available_states else self._create_new_state()
        self.in_use_states[id(state)] = state
        return state

    def return_state(self, state: ArcState) -> bool:
        """Give a state back; whether the pool keeps it."""
        if self.in_use_states.get(id(state)) is not state:
            return False
        del self.in_use_states[id(state)]
        if len(self.available_states) >= self.pool_size:
            return False
        self.available_states.append(state)
        return True

    def _create_new_state(self) -> ArcState:
        key = jax.random.fold_in(jax.random.key(self.seed), self._made)
        self._made += 1
        state, _ = arc_reset(key, self.config, self._task)
        return state
