"""One task as a padded pytree."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt8

from jaxarc.data._parse import BadTaskError, Pair, RawTask


class JaxArcTask(eqx.Module):
    """One ARC task, every grid padded to one size.

    `masks` are true where a grid has a cell. Only the first `num_train_pairs` and
    `num_test_pairs` grids mean anything. A hidden test output has an empty mask.
    """

    input_grids_examples: UInt8[Array, "train height width"]
    input_masks_examples: Bool[Array, "train height width"]
    output_grids_examples: UInt8[Array, "train height width"]
    output_masks_examples: Bool[Array, "train height width"]
    num_train_pairs: Int32[Array, ""]
    test_input_grids: UInt8[Array, "test height width"]
    test_input_masks: Bool[Array, "test height width"]
    true_test_output_grids: UInt8[Array, "test height width"]
    true_test_output_masks: Bool[Array, "test height width"]
    num_test_pairs: Int32[Array, ""]
    task_index: Int32[Array, ""]

    def __init__(
        self,
        input_grids_examples,
        input_masks_examples,
        output_grids_examples,
        output_masks_examples,
        num_train_pairs,
        test_input_grids,
        test_input_masks,
        true_test_output_grids,
        true_test_output_masks,
        num_test_pairs,
        task_index,
    ):
        cells = lambda grids: jnp.asarray(grids).astype(jnp.uint8)  # noqa: E731
        mask = lambda masks: jnp.asarray(masks).astype(bool)  # noqa: E731
        number = lambda value: jnp.asarray(value).astype(jnp.int32)  # noqa: E731
        self.input_grids_examples = cells(input_grids_examples)
        self.input_masks_examples = mask(input_masks_examples)
        self.output_grids_examples = cells(output_grids_examples)
        self.output_masks_examples = mask(output_masks_examples)
        self.num_train_pairs = number(num_train_pairs)
        self.test_input_grids = cells(test_input_grids)
        self.test_input_masks = mask(test_input_masks)
        self.true_test_output_grids = cells(true_test_output_grids)
        self.true_test_output_masks = mask(true_test_output_masks)
        self.num_test_pairs = number(num_test_pairs)
        self.task_index = number(task_index)
        demos, tests = len(self.input_grids_examples), len(self.test_input_grids)
        _check_count("num_train_pairs", self.num_train_pairs, 1, demos)
        _check_count("num_test_pairs", self.num_test_pairs, 0, tests)


def _check_count(name: str, count: Array, least: int, most: int) -> None:
    """Refuse a number of pairs that the arrays do not hold, where it can be looked at."""
    if not isinstance(count, jax.core.Tracer) and not least <= int(count) <= most:
        raise BadTaskError(f"{name}={int(count)}: expected {least} to {most}, the pairs given")


def pad_task(
    task: RawTask,
    *,
    index: int = 0,
    height: int,
    width: int,
    max_train_pairs: int | None = None,
    max_test_pairs: int | None = None,
) -> JaxArcTask:
    """A task padded to `height` x `width` cells and to a number of pairs, by default its own."""
    demos = max_train_pairs or len(task.demos)
    tests = max_test_pairs or len(task.tests)
    demo_inputs = _pad([pair.input for pair in task.demos], demos, height, width)
    demo_outputs = _pad([pair.output for pair in task.demos], demos, height, width)
    test_inputs = _pad([pair.input for pair in task.tests], tests, height, width)
    test_outputs = _pad([pair.output for pair in task.tests], tests, height, width)
    return JaxArcTask(
        *demo_inputs,
        *demo_outputs,
        len(task.demos),
        *test_inputs,
        *test_outputs,
        len(task.tests),
        index,
    )


def _pad(grids: Sequence[np.ndarray | None], count: int, height: int, width: int):
    cells = np.zeros((count, height, width), np.uint8)
    mask = np.zeros((count, height, width), bool)
    for number, grid in enumerate(grids):
        if grid is not None:
            cells[number, : grid.shape[0], : grid.shape[1]] = grid
            mask[number, : grid.shape[0], : grid.shape[1]] = True
    return cells, mask


def create_mock_task() -> JaxArcTask:
    """A small made-up task to play with: mirror the grid left-right. Two demos, one test.

    It is always the same task.
    """
    rng = np.random.default_rng(0)
    grids = [rng.integers(0, 10, size).astype(np.uint8) for size in ((10, 10), (12, 8), (9, 11))]
    *demos, test = [Pair(grid, grid[:, ::-1].copy()) for grid in grids]
    return pad_task(RawTask("mock", tuple(demos), (test,)), height=30, width=30)
