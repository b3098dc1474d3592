"""Is it compiled, once, and what does that save?"""

from __future__ import annotations

import copy
import time
from typing import Any

import jax

from jaxarc.data import JaxArcTask, TaskBuffer
from jaxarc.envs import JaxArcConfig, arc_reset, arc_step
from jaxarc.utils._workload import guide_action
from worldloom import bench, count_compiles
from worldloom.compile import unhashable_part

__all__ = [
    "debug_jit_compilation",
    "profile_jit_compilation",
    "verify_config_hashability",
    "warm_up_functions",
]


def verify_config_hashability(config: Any) -> bool:
    """Say whether a configuration can be static in `jit`; if not, which part of it cannot.

    It must have a hash, and a copy of it must be equal to it: one that is compared by identity
    compiles anew for every copy.

    ```python
    from jaxarc import create_test_config, verify_config_hashability

    assert verify_config_hashability(create_test_config())
    assert not verify_config_hashability({"max_episode_steps": 100})
    ```
    """
    fault = _fault_of(config)
    print(f"Configuration is not hashable: {fault}" if fault else "Configuration is hashable")
    return fault is None


def _fault_of(config: Any) -> str | None:
    where = unhashable_part(config, "config")
    if where is None and copy.deepcopy(config) != config:
        where = "it is compared by identity, so a copy of it would compile anew"
    return where


def warm_up_functions(config: JaxArcConfig, task: JaxArcTask | TaskBuffer) -> dict[str, float]:
    """Compile `arc_reset` and `arc_step` now; the seconds of each first call.

    Afterwards neither compiles for this configuration and tasks of this shape.
    """
    tasks = _for_step(config, task)
    start = time.perf_counter()
    state, _ = jax.block_until_ready(arc_reset(jax.random.key(42), config, task))
    middle = time.perf_counter()
    jax.block_until_ready(arc_step(state, guide_action(config, 0), config, tasks=tasks))
    seconds = {"reset": middle - start, "step": time.perf_counter() - middle}
    print(f"Functions warmed up: reset {seconds['reset']:.2f} s, step {seconds['step']:.2f} s")
    return seconds


def _for_step(config: JaxArcConfig, task: JaxArcTask | TaskBuffer) -> TaskBuffer | None:
    """The buffer that a step needs where it may go to another pair; without it otherwise."""
    setting, seen = config.environment, config.observation
    if setting.episode_mode == "train" and not setting.pair_controls and not seen.demos:
        return None
    return task if isinstance(task, TaskBuffer) else TaskBuffer.from_task(task)


def debug_jit_compilation(config: Any, task: JaxArcTask | TaskBuffer) -> bool:
    """Go through what keeps an environment from compiling once; print and return whether it does.

    Looks at the configuration, compiles reset and step, and calls both again with other values:
    a second compilation is a fault too.
    """
    if not verify_config_hashability(config):
        return False
    try:
        tasks = _for_step(config, task)
        state, _ = arc_reset(jax.random.key(42), config, task)
        after, *_ = arc_step(state, guide_action(config, 0), config, tasks=tasks)
        key, action = jax.random.key(43), guide_action(config, 1)
        jax.block_until_ready(after)
        with count_compiles() as compiles:
            arc_reset(key, config, task)
            jax.block_until_ready(arc_step(after, action, config, tasks=tasks))
    except Exception as error:  # whatever it is, it is what the caller wants to know
        print(f"JIT compilation failed: {type(error).__name__}: {error}")
        return False
    if again := compiles.compiled + compiles.loaded:
        print(f"Compiled again for other values: {', '.join(again)}")
        return False
    print("JIT compilation successful: once for reset, once for step")
    return True


def profile_jit_compilation(
    config: JaxArcConfig, task: JaxArcTask | TaskBuffer, num_runs: int = 100
) -> dict[str, float]:
    """What compiling `arc_reset` costs, and what it gains.

    `speedup` is the uncompiled function over the compiled one: the same work, both warmed up and
    waited for. Compilation time is not part of it.

    **Arguments:**

    - `num_runs`: about how many calls of the compiled function are timed.

    **Returns:** seconds of `compilation_time` (tracing included; less where the program was found
    on disk), `execution_time` and `uncompiled_time`, and `speedup`.
    """
    key = jax.random.key(42)
    # A new function each time, or JAX would find the program that it has.
    fresh = jax.jit(lambda key, task: arc_reset(key, config, task))
    start = time.perf_counter()
    program = fresh.lower(key, task).compile()
    compilation = time.perf_counter() - start
    jax.block_until_ready(program(key, task))
    start = time.perf_counter()
    jax.block_until_ready(program(key, task))
    once = time.perf_counter() - start

    def uncompiled() -> Any:
        with jax.disable_jit():
            return arc_reset(key, config, task)

    found = bench.compare(
        {"uncompiled": uncompiled, "compiled": lambda: program(key, task)},
        rounds=2,
        seconds=max(num_runs * once / 2, 1e-6),
    )
    profile = {
        "compilation_time": compilation,
        "execution_time": found["compiled"].best,
        "uncompiled_time": found["uncompiled"].best,
        "speedup": found.ratio("compiled").value,
    }
    print(f"Compilation time: {1e3 * compilation:.1f} ms")
    print(f"Execution time: {1e3 * profile['execution_time']:.3f} ms")
    print(f"Uncompiled: {1e3 * profile['uncompiled_time']:.1f} ms")
    print(f"Speed-up of compiled over uncompiled: {profile['speedup']:.0f}x")
    return profile
