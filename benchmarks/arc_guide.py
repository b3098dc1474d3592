"""What a guide to ARC environments promises: steps, resets, batches, bytes.

A reset, compiled and operation by operation under `jax.disable_jit()`; `batch_step` over worlds,
called from Python; the bytes of states, histories and files. A step is not measured operation by
operation: its loops would be compiled anew at every call. `docs/promises.md` holds the figures
against what was promised.

    python benchmarks/arc_guide.py [--rounds 7] [--quick]
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import jaxarc
from jaxarc import data
from worldloom import bench

GROUP = "arc"
COMPILED, UNCOMPILED = "compiled", "operation by operation"


def slowly(fn: Callable[..., Any], *args: Any) -> Any:
    with jax.disable_jit():
        return fn(*args)


def over_worlds(script: bench.Script, rounds: int) -> None:
    """`batch_step` called from Python, for more and more worlds."""
    config, task = jaxarc.create_test_config(), jaxarc.create_mock_task()
    sizes = {f"{count:,} worlds": count for count in (1, 16, 64, 256, 1024)}
    variants = {}
    for name, count in sizes.items():
        keys = jax.random.split(jax.random.key(42), count)
        states, _ = jaxarc.batch_reset(keys, config, task)
        cells = jnp.full(count, 5, jnp.int32)
        action = jaxarc.PointAction(jnp.zeros(count, jnp.int32), cells, cells)
        variants[name] = lambda states=states, action=action: jaxarc.batch_step(
            states, action, config
        )
    found = bench.compare(
        variants, rounds=rounds, items=sizes, unit="steps", title="batch_step from Python"
    )
    script.growth(found, axis="worlds", sizes=sizes)


def bytes_of(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree) if hasattr(leaf, "nbytes"))


def files(script: bench.Script) -> None:
    """A state on disk with its task, raw, and without it."""
    tasks, config = data.load("AGI1-train"), jaxarc.create_test_config()
    task = tasks.get_task_by_index(0)
    state, _ = jaxarc.arc_reset(jax.random.key(0), config, task)
    raw = bytes_of((state, task))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.loom"
        jaxarc.save_state_efficiently(state, path)
        small = path.stat().st_size
    script.figure("state and task as raw arrays", raw / 1e3, "KB")
    script.figure("file of the same state", small / 1e3, "KB")
    script.figure("file smaller than raw arrays by", 100 * (1 - small / raw), "%")


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(7, 3))
    options = script.start()
    config, task, key = jaxarc.create_test_config(), jaxarc.create_mock_task(), jax.random.key(0)
    state, _ = jaxarc.arc_reset(key, config, task)
    action = jaxarc.PointAction(jnp.int32(0), jnp.int32(5), jnp.int32(5))
    reset = bench.compare(
        {
            UNCOMPILED: lambda: slowly(jaxarc.arc_reset, key, config, task),
            COMPILED: lambda: jaxarc.arc_reset(key, config, task),
        },
        rounds=options.rounds,
        seconds=0.05,
        title="one reset from Python",
    )
    script.case(reset, ours=COMPILED, naive=UNCOMPILED)
    step = bench.compare(
        {"step": lambda: jaxarc.arc_step(state, action, config)},
        rounds=options.rounds,
        seconds=0.05,
        title="one step from Python",
    )
    script.figure("one step from Python", 1e3 * step["step"].median, "ms", limit=1)
    over_worlds(script, options.rounds)
    with contextlib.redirect_stdout(io.StringIO()):
        usage = jaxarc.analyze_memory_usage_by_format(1000)
    for name, entry in usage.items():
        script.figure(f"history of 1,000 {name} actions", 1024 * entry["action_history_mb"], "KiB")
        script.figure(f"state with {name} actions, 1,000 steps", 1024 * entry["state_mb"], "KiB")
    most = usage["mask"]["action_history_mb"]
    for name in ("point", "bbox"):
        saved = 100 * (1 - usage[name]["action_history_mb"] / most)
        script.figure(f"history of {name} actions smaller than of masks by", saved, "%")
    files(script)
    script.finish()


if __name__ == "__main__":
    main()
