"""All tasks in one set of device arrays, shared by every world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray, UInt8, UInt32

from jaxarc.bitgrid import PLANES, pack, pack_host
from jaxarc.data._index import in_range, whole_numbers
from jaxarc.data._parse import BadTaskError, RawTask
from jaxarc.data._task import JaxArcTask
from worldloom import check


class PackedPair(eqx.Module):
    """One pair as bit grids; a hidden output has the size 0 x 0, which no grid matches.

    Input and output lie together, so that a world gets both in one gather.
    """

    grids: UInt32[Array, "*batch 8 rows"]
    sizes: UInt8[Array, "*batch 4"]

    @property
    def input(self) -> UInt32[Array, "*batch 4 rows"]:
        """The bit grid of the input."""
        return self.grids[..., :PLANES, :]

    @property
    def input_size(self) -> UInt8[Array, "*batch 2"]:
        """Rows and columns of the input."""
        return self.sizes[..., :2]

    @property
    def output(self) -> UInt32[Array, "*batch 4 rows"]:
        """The bit grid of the output."""
        return self.grids[..., PLANES:, :]

    @property
    def output_size(self) -> UInt8[Array, "*batch 2"]:
        """Rows and columns of the output."""
        return self.sizes[..., 2:]


class TaskBuffer(eqx.Module):
    """Tasks packed as bits: 1 KB a pair at 30 x 30. Every method works inside `jit`.

    The pairs of a task lie together, demonstrations first. `take` makes a subset that shares
    the pairs, so a subset costs 12 bytes a task.

    ```python
    import jax
    from jaxarc import data

    tasks = data.load("AGI1-train").buffer()
    task = tasks.sample(jax.random.key(0))
    pair = tasks.demo(task, 0)
    ```
    """

    pairs: PackedPair
    first_pair: Int32[Array, " tasks"]
    num_demos: Int32[Array, " tasks"]
    num_tests: Int32[Array, " tasks"]
    height: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @classmethod
    def from_tasks(cls, tasks: Sequence[RawTask], *, height: int, width: int) -> TaskBuffer:
        """Pack tasks on the host, then move them to the device in one go."""
        if not tasks:
            raise BadTaskError("a task buffer needs at least one task, got none")
        counts = np.array([(len(task.demos), len(task.tests)) for task in tasks], np.int32)
        total = int(counts.sum())
        inputs, outputs = np.zeros((2, total, height, width), np.uint8)
        input_sizes, output_sizes = np.zeros((2, total, 2), np.uint8)
        row = 0
        for task in tasks:
            for pair in task.demos + task.tests:
                for grid, cells, sizes in (
                    (pair.input, inputs, input_sizes),
                    (pair.output, outputs, output_sizes),
                ):
                    if grid is None:
                        continue
                    if grid.shape[0] > height or grid.shape[1] > width:
                        raise BadTaskError(
                            f"task {task.id!r} has a grid of {grid.shape[0]} x {grid.shape[1]} "
                            f"cells; the canvas is {height} x {width}: make it larger, "
                            f"or drop such tasks with .filter(max_height=..., max_width=...)"
                        )
                    cells[row, : grid.shape[0], : grid.shape[1]] = grid
                    sizes[row] = grid.shape
                row += 1
        first = np.concatenate([[0], np.cumsum(counts.sum(axis=1))[:-1]]).astype(np.int32)
        grids = np.concatenate([pack_host(inputs), pack_host(outputs)], axis=1)
        sizes = np.concatenate([input_sizes, output_sizes], axis=1)
        pairs = PackedPair(*jax.device_put((grids, sizes)))
        first, demos, tests = jax.device_put((first, counts[:, 0], counts[:, 1]))
        return cls(pairs, first, demos, tests, height, width)

    @classmethod
    def from_task(cls, task: JaxArcTask) -> TaskBuffer:
        """A buffer of one padded task; `jit` may trace the task."""
        demos = task.input_grids_examples.shape[0]
        height, width = task.input_grids_examples.shape[1:]
        inputs = jnp.concatenate([task.input_grids_examples, task.test_input_grids])
        outputs = jnp.concatenate([task.output_grids_examples, task.true_test_output_grids])
        input_masks = jnp.concatenate([task.input_masks_examples, task.test_input_masks])
        output_masks = jnp.concatenate([task.output_masks_examples, task.true_test_output_masks])
        # Tests follow the demonstrations without a gap: padding pairs go to the end.
        tests = task.test_input_grids.shape[0]
        place = jnp.arange(demos + tests)
        shift = jnp.where(place < task.num_train_pairs, place, place - task.num_train_pairs + demos)
        order = jnp.clip(shift, 0, demos + tests - 1)
        masks = jnp.stack([input_masks, output_masks], axis=1)
        grids = pack(jnp.where(masks, jnp.stack([inputs, outputs], axis=1), 0))
        pairs = PackedPair(grids.reshape(len(masks), 2 * PLANES, -1), _sizes(masks))
        return cls(
            jax.tree.map(lambda leaf: leaf[order], pairs),
            jnp.zeros(1, jnp.int32),
            task.num_train_pairs[None],
            task.num_test_pairs[None],
            height,
            width,
        )

    @property
    def num_tasks(self) -> int:
        """How many tasks there are."""
        return self.first_pair.shape[0]

    def demo(
        self, task: Int32[Array, "*batch"] | int, number: Int32[Array, "*batch"] | int
    ) -> PackedPair:
        """Demonstration pair `number` of a task, or of a batch of tasks.

        A task or a pair that does not exist is an `UnknownTaskError`; inside `jit`, a failed
        check of `worldloom.check`.
        """
        return self._known(task, number, False)

    def test(
        self, task: Int32[Array, "*batch"] | int, number: Int32[Array, "*batch"] | int
    ) -> PackedPair:
        """Test pair `number` of a task, or of a batch of tasks; checked as in `demo`."""
        return self._known(task, number, True)

    def pair(
        self,
        task: Int32[Array, "*batch"],
        number: Int32[Array, "*batch"],
        is_test: Bool[Array, "*batch"],
    ) -> PackedPair:
        """Demonstration or test pair `number` of a task, or of a batch; checked as in `demo`."""
        return self._known(task, number, is_test)

    def _known(self, task: Any, number: Any, is_test: Any) -> PackedPair:
        task = in_range("task", whole_numbers("task", task), self.num_tasks, "tasks")
        counts = jnp.where(is_test, self.num_tests[task], self.num_demos[task])
        number = whole_numbers("number", number)
        number = in_range("number", number, counts, "pairs of the task")
        return pair_at(self, task, number, is_test)

    def sample(
        self,
        key: PRNGKeyArray | UInt32[Array, ...],
        shape: tuple[int, ...] = (),
        *,
        weights: Float[Array, " tasks"] | None = None,
    ) -> Int32[Array, "*shape"]:
        """Random task numbers, all equally likely or in proportion to `weights`.

        Weights are one a task, not negative, and not all 0.
        """
        if weights is None:
            return jax.random.randint(key, shape, 0, self.num_tasks, jnp.int32)
        weights = self._checked(weights)
        upto = jnp.cumsum(weights)
        threshold = jax.random.uniform(key, shape, weights.dtype) * upto[-1]
        found = jnp.searchsorted(upto, threshold, side="right").astype(jnp.int32)
        return jnp.minimum(found, self.num_tasks - 1)

    def _checked(self, weights: Float[Array, " tasks"]) -> Float[Array, " tasks"]:
        message = (
            f"weights: expected {self.num_tasks} finite numbers, one a task, none of them "
            "negative and one or more above 0"
        )
        if weights.shape != (self.num_tasks,):
            raise BadTaskError(f"{message}; got the shape {weights.shape}")
        good = jnp.all(jnp.isfinite(weights) & (weights >= 0)) & jnp.any(weights > 0)
        if isinstance(good, jax.core.Tracer):
            return check.require(good, weights, message)
        if not good:
            raise BadTaskError(f"{message}; got {weights!r:.80}")
        return weights

    def take(self, tasks: Int32[Array, " count"] | np.ndarray) -> TaskBuffer:
        """The tasks with these numbers, in this order; their pairs are shared, not copied.

        A number that does not exist is refused as in `demo`.
        """
        tasks = in_range("tasks", whole_numbers("tasks", tasks), self.num_tasks, "tasks")
        return TaskBuffer(
            self.pairs,
            self.first_pair[tasks],
            self.num_demos[tasks],
            self.num_tests[tasks],
            self.height,
            self.width,
        )


def pair_at(tasks: TaskBuffer, task: Any, number: Any, is_test: Any) -> PackedPair:
    """A pair by numbers that are known to be good: nothing is checked, as befits a step."""
    first = tasks.first_pair[task]
    if is_test is not False:
        first = first + jnp.where(is_test, tasks.num_demos[task], 0)
    return jax.tree.map(lambda leaf: leaf[first + number], tasks.pairs)


def _sizes(masks: Bool[Array, "pairs 2 height width"]) -> UInt8[Array, "pairs 4"]:
    height = jnp.sum(jnp.any(masks, axis=3), axis=2)
    width = jnp.sum(jnp.any(masks, axis=2), axis=2)
    return jnp.stack([height, width], axis=2).astype(jnp.uint8).reshape(-1, 4)
