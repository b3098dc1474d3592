"""Where the memory of ARC worlds goes, and how to keep them small, in memory and on disk.

python examples/advanced/memory_efficiency_demo.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import jax

import jaxarc
from jaxarc import data


def main() -> None:
    print("== The history of 1,000 actions, by action format")
    jaxarc.analyze_memory_usage_by_format()

    print("\n== Worlds and what they see")
    config = jaxarc.create_memory_optimized_config(max_episode_steps=50, grid_size=15)
    task = jaxarc.create_mock_task()
    jaxarc.profile_memory_usage(config, task, batch_sizes=(1, 16, 64))

    tasks = data.load("AGI1-train")
    with tempfile.TemporaryDirectory() as folder:
        print("\n== A state on disk, its task data left out")
        full = jaxarc.create_test_config()
        state, _ = jaxarc.arc_reset(jax.random.key(0), full, tasks.get_task_by_id("00d62c1b"))
        dummy, _ = jaxarc.arc_reset(jax.random.key(1), full, tasks.get_task_by_index(0))
        path = Path(folder) / "state.loom"
        jaxarc.save_state_efficiently(state, path)
        again = jaxarc.load_state_efficiently(path, tasks, dummy)
        assert (again.target_grid == state.target_grid).all()
        carried = tasks.get_task_by_id("00d62c1b")
        with_task = sum(leaf.nbytes for leaf in jax.tree.leaves((state, carried)))
        print(f"{path.stat().st_size:,} bytes; state and task together have {with_task:,}")

        print("\n== Tasks in mapped files: one is read, the others are not")
        jaxarc.MemoryMappedTaskLoader.write(Path(folder) / "tasks", tasks)
        loader = jaxarc.MemoryMappedTaskLoader(Path(folder) / "tasks")
        lazy = jaxarc.LazyTaskLoader(7, loader)
        print(f"{len(loader)} tasks; loaded before use: {lazy.loaded}")
        pairs = int(lazy.task_data.num_train_pairs)
        print(f"task {loader.ids[7]} has {pairs} demonstrations; loaded now: {lazy.loaded}")

    print("\n== Does stepping leak?")
    assert not jaxarc.detect_memory_leaks(config, task, num_iterations=200).leaking


if __name__ == "__main__":
    main()
