"""One ARC world, compiled: what to check first, what it costs, what it gains.

python examples/advanced/jax_optimization_demo.py
"""

from __future__ import annotations

import equinox as eqx
import jax

import jaxarc
from jaxarc import PointAction


def main() -> None:
    config = jaxarc.create_memory_optimized_config(max_episode_steps=50, grid_size=15)
    task = jaxarc.create_mock_task()

    print("== Can it be compiled, and only once?")
    assert jaxarc.verify_config_hashability(config)
    assert jaxarc.debug_jit_compilation(config, task)

    print("\n== Compiled against uncompiled: the same reset, both warmed up")
    jaxarc.profile_jit_compilation(config, task, num_runs=20)

    print("\n== Single steps from Python")
    jaxarc.benchmark_performance(config, task, num_runs=200)

    print("\n== A function of your own around the step")

    @eqx.filter_jit
    def paint_a_row(state, row):
        reward = 0.0
        for column in range(5):
            state, _, gained, *_ = jaxarc.arc_step(state, PointAction(3, row, column), config)
            reward += gained
        return state, reward

    state, _ = jaxarc.arc_reset(jax.random.key(0), config, task)
    state, reward = paint_a_row(state, 2)
    print(f"row 2 begins {state.working_grid[2, :6].tolist()}, reward {float(reward):+.3f}")

    print("\n== A whole episode as one program")
    runner = jaxarc.create_optimized_episode_runner(config, task, max_steps=50)
    results = [runner(key, None) for key in jax.random.split(jax.random.key(1), 10)]
    mean = sum(float(result["episode_reward"]) for result in results) / len(results)
    print(f"10 episodes, {int(results[0]['episode_length'])} steps each, mean reward {mean:+.3f}")


if __name__ == "__main__":
    main()
