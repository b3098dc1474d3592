"""States on disk, without the task data that any parser can give back."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import Any

import jax
import numpy as np

from jaxarc.bitgrid import pack_host
from jaxarc.data import JaxArcTask, Parser
from jaxarc.envs import ArcState
from worldloom import store
from worldloom._errors import WorldloomError

__all__ = ["StateFileError", "load_state_efficiently", "save_state_efficiently"]

# The pair on the board: what a task's number, a pair's number and its kind give back.
_TASK_FIELDS = ("pair", "input_height", "input_width", "target_height", "target_width")


class StateFileError(WorldloomError, ValueError):
    """A saved state does not belong to the tasks that are to complete it."""


def save_state_efficiently(state: ArcState, path: str | os.PathLike[str]) -> None:
    """Save a state, or a batch of states, with the task data left out.

    What is left out is named by `task_index`, `pair_index` and `on_test_pair`, and its checksum
    is kept, so that loading with other tasks is an error. The file is compressed and complete or
    not there; see `worldloom.store.save`.

    ```python
    import jax
    from jaxarc import arc_reset, create_test_config, data
    from jaxarc import load_state_efficiently, save_state_efficiently

    tasks = data.load("AGI1-train")
    config = create_test_config()
    state, _ = arc_reset(jax.random.key(0), config, tasks.get_task_by_id("007bbfb7"))
    save_state_efficiently(state, "state.loom")
    dummy, _ = arc_reset(jax.random.key(1), config, tasks.get_task_by_index(1))
    again = load_state_efficiently("state.loom", tasks, dummy)
    assert (again.working_grid == state.working_grid).all()
    ```
    """
    store.save(path, _own_fields(state), meta={"task_data": _checksum(state)})


def load_state_efficiently(
    path: str | os.PathLike[str], parser: Parser, dummy_state: ArcState
) -> ArcState:
    """Load a state, or a batch of states, and complete it with its task data.

    **Arguments:**

    - `parser`: the tasks that the state was played on, numbered as they were then.
    - `dummy_state`: any state of the same configuration and the same number of worlds. It says
        what the file must hold; its values are not used.
    """
    fields = store.load(path, like=_own_fields(dummy_state))
    state = dataclasses.replace(dummy_state, **fields)
    state = state.replace(**_pairs_on_board(parser, state))
    if _checksum(state) != store.read_meta(path).get("task_data"):
        numbers = sorted(set(np.ravel(state.task_index).tolist()))
        raise StateFileError(
            f"{os.fspath(path)!r} was saved with other task data than the parser has for "
            f"{'task' if len(numbers) == 1 else 'tasks'} {', '.join(map(str, numbers[:5]))}"
            f"{', ...' if len(numbers) > 5 else ''}: give the data set, the version and the "
            f"canvas that it was played on"
        )
    return state


def _own_fields(state: ArcState) -> dict[str, Any]:
    return {
        field.name: getattr(state, field.name)
        for field in dataclasses.fields(state)
        if field.name not in _TASK_FIELDS and not field.metadata.get("static", False)
    }


def _checksum(state: ArcState) -> str:
    digest = hashlib.sha256()
    for name in _TASK_FIELDS:
        digest.update(np.ascontiguousarray(jax.device_get(getattr(state, name))).tobytes())
    return digest.hexdigest()


def _pairs_on_board(parser: Parser, state: ArcState) -> dict[str, np.ndarray]:
    """Input and target of each world's pair, in the layout of the state."""
    worlds, canvas = state.task_index.shape, state.canvas
    named = jax.device_get((state.task_index, state.pair_index, state.on_test_pair))
    places = [np.ravel(numbers).tolist() for numbers in named]
    grids: dict[str, list[np.ndarray]] = {"input": [], "target": []}
    sizes: dict[str, list[tuple[int, int]]] = {"input": [], "target": []}
    tasks: dict[int, JaxArcTask] = {}
    for number, pair, is_test in zip(*places, strict=True):
        if number not in tasks:
            tasks[number] = jax.device_get(parser.get_task_by_index(number))
        for side, (cells, mask) in _sides(tasks[number], is_test).items():
            if not 0 <= pair < len(cells):
                raise StateFileError(
                    f"the state plays pair {pair} of task {number}, of which the parser has "
                    f"{len(cells)}: give the data set and the version that it was played on"
                )
            on_canvas = np.zeros(canvas, np.uint8)
            kept = (cells[pair] * mask[pair])[: canvas[0], : canvas[1]]
            on_canvas[: kept.shape[0], : kept.shape[1]] = kept
            grids[side].append(on_canvas)
            sizes[side].append((int(mask[pair].any(1).sum()), int(mask[pair].any(0).sum())))
    packed = [pack_host(np.stack(grids[side])) for side in ("input", "target")]
    pair = np.concatenate(packed, axis=1)
    found = {"pair": pair.reshape(*worlds, *pair.shape[1:])}
    for side in ("input", "target"):
        height, width = np.array(sizes[side], np.int32).T
        found[f"{side}_height"] = height.reshape(worlds)
        found[f"{side}_width"] = width.reshape(worlds)
    return found


def _sides(task: Any, is_test: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    if is_test:
        return {
            "input": (task.test_input_grids, task.test_input_masks),
            "target": (task.true_test_output_grids, task.true_test_output_masks),
        }
    return {
        "input": (task.input_grids_examples, task.input_masks_examples),
        "target": (task.output_grids_examples, task.output_masks_examples),
    }
