"""The public JaxARC 1.0.3, timed in an environment of its own.

Written after its own throughput benchmark: environments under `vmap`, steps under `scan`, a reset
inside `cond` when the last time step ended, its action wrappers for points and boxes. `alone` is
one environment without `vmap`, where its branches stay branches.
"""

# pyright: reportMissingImports=none, reportAttributeAccessIssue=none, reportCallIssue=none
# because `jaxarc` is the public package here, not the one of this repository.
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from actions import SIDE, draw

DEMOS, TESTS = 10, 3


def setup(
    *,
    tasks: str,
    kind: str,
    batch: int,
    length: int,
    dispatch: bool,
    alone: bool,
    devices: int,
    report: str,
    compiling: bool = False,
) -> Any:
    """One call is `length` steps of every environment, in one scan or one call a step.

    With `compiling`, one call traces and compiles the program, from nothing.

    `report` is a file that gets what only this process can know: compile seconds and bytes.
    """
    if devices > 1:
        jax.config.update("jax_num_cpu_devices", devices)
    env, params = _environment(tasks, kind)
    assert batch == 1 or not alone
    local = batch // devices

    def told(state, shown):
        """What a step hands over. It is carried, so that every step writes its observation."""
        return state, (shown.observation, shown.reward, shown.last())

    def fresh(key):
        return told(*env.reset(key, env_params=params))

    def act(state, ended, key, action):
        """Reset one environment if it has to be, then step it."""
        state = jax.lax.cond(ended, lambda: fresh(key)[0], lambda: state)
        return told(*env.step(state, action, env_params=params))

    begin, step_all = (fresh, act) if alone else (jax.vmap(fresh), jax.vmap(act))

    def keys(key):
        return key if alone else jax.random.split(key, local)

    def step(carry, key):
        state, (_, _, ended) = carry
        for_reset, for_action = jax.random.split(key)
        actions = draw(for_action, kind, None if alone else local)
        return step_all(state, ended, keys(for_reset), actions)

    def rollout(carry, key):
        each = jax.random.split(key, length)
        return jax.lax.scan(lambda carry, key: (step(carry, key), None), carry, each)[0]

    first = lambda key: begin(keys(key))  # noqa: E731
    program = step if dispatch else rollout
    spread = lambda key: key  # noqa: E731
    if devices > 1:
        first, program = jax.pmap(first), jax.pmap(program)
        spread = lambda key: jax.random.split(key, devices)  # noqa: E731
    else:
        first, program = jax.jit(first), jax.jit(program)
    key = jax.random.PRNGKey(0)
    carry = jax.block_until_ready(first(spread(key)))
    if compiling:

        def compile_anew():
            jax.clear_caches()
            program.lower(carry, spread(key)).compile()

        return compile_anew
    wall, cpu = time.perf_counter(), time.process_time()
    compiled = program.lower(carry, spread(key)).compile()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = compiled.memory_analysis()
    assert memory is not None
    temporaries = memory.temp_size_in_bytes / local
    figures = {"compiling": wall, "compiling_busy": cpu, "temporaries": temporaries}
    Path(report).write_text(json.dumps(figures), encoding="utf-8")

    # Keys are made beforehand: making one costs as much as a step of one environment.
    ready = [jax.block_until_ready(spread(jax.random.PRNGKey(1 + i))) for i in range(256)]
    count = 0

    def run():
        nonlocal carry, count
        for _ in range(length if dispatch else 1):
            carry = compiled(carry, ready[count % len(ready)])
            count += 1
        return carry

    return run


def _environment(folder: str, kind: str) -> tuple[Any, Any]:
    """The environment on all tasks of a folder in the official form, without the internet."""
    os.environ["LOGURU_LEVEL"] = "ERROR"
    import equinox as eqx

    from jaxarc.configs import GridInitializationConfig, JaxArcConfig
    from jaxarc.envs import BboxActionWrapper, Environment, PointActionWrapper
    from jaxarc.parsers import ArcAgiParser
    from jaxarc.utils.core import get_config

    overrides = ["dataset=arc_agi_1", "environment.max_episode_steps=100"]
    config = JaxArcConfig.from_hydra(get_config(overrides=overrides))
    dataset = eqx.tree_at(lambda d: d.dataset_path, config.dataset, folder)
    start = GridInitializationConfig(
        demo_weight=1.0, permutation_weight=0.0, empty_weight=0.0, random_weight=0.0
    )
    config = eqx.tree_at(lambda c: (c.dataset, c.grid_initialization), config, (dataset, start))
    parser = ArcAgiParser(dataset)
    env = Environment(config=config, buffer=_buffer(parser, _load(folder)))
    wrap = {"point": PointActionWrapper, "bbox": BboxActionWrapper, "mask": lambda env: env}[kind]
    return wrap(env), env.params


def _load(folder: str) -> dict[str, dict]:
    files = sorted(Path(folder, "data", "training").glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def _buffer(parser: Any, tasks: dict[str, dict]) -> Any:
    """What its `stack_task_list` makes of its parser's tasks, which takes it minutes for 400.

    The two are compared on the first tasks.
    """
    from jaxarc.utils.buffer import stack_task_list

    names = list(tasks)[:2]
    theirs = stack_task_list([parser.get_task_by_id(name) for name in names])
    short = _arrays({name: tasks[name] for name in names})
    for field, array in short.items():
        expected = getattr(theirs, field)
        assert array.dtype == expected.dtype, field
        assert field == "task_index" or np.array_equal(array, expected), field
    paths, structure = jax.tree_util.tree_flatten_with_path(theirs)
    arrays = _arrays(tasks)
    assert len(paths) == len(arrays)
    leaves = [jnp.asarray(arrays[path[-1].name]) for path, _ in paths]
    return jax.tree.unflatten(structure, leaves)


def _arrays(tasks: dict[str, dict]) -> dict[str, np.ndarray]:
    """The fields of its task, with a leading axis for the number of the task."""
    count = len(tasks)
    pairs = {
        ("train", "input"): (DEMOS, "input_grids_examples", "input_masks_examples"),
        ("train", "output"): (DEMOS, "output_grids_examples", "output_masks_examples"),
        ("test", "input"): (TESTS, "test_input_grids", "test_input_masks"),
        ("test", "output"): (TESTS, "true_test_output_grids", "true_test_output_masks"),
    }
    arrays = {}
    for (part, side), (most, grids, masks) in pairs.items():
        cells = np.full((count, most, SIDE, SIDE), -1, np.int32)
        for number, task in enumerate(tasks.values()):
            for place, pair in enumerate(task[part]):
                grid = np.asarray(pair[side])
                cells[number, place, : grid.shape[0], : grid.shape[1]] = grid
        arrays[grids], arrays[masks] = cells, cells >= 0
    for part, field in (("train", "num_train_pairs"), ("test", "num_test_pairs")):
        arrays[field] = np.asarray([len(task[part]) for task in tasks.values()], np.int32)
    arrays["task_index"] = np.arange(count, dtype=np.int32)
    return arrays
