"""The same puzzle in another guise: symmetries, colours, order of the demonstrations."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, PRNGKeyArray, UInt8, UInt32

from jaxarc.bitgrid import (
    Box,
    map_columns,
    map_rows,
    pack,
    recolour,
    rectangle,
    transpose,
    unpack,
)
from jaxarc.data._buffer import PackedPair
from jaxarc.data._task import JaxArcTask


class Augmentation(eqx.Module):
    """One guise for one task; apply the same one to each of its grids.

    A grid is transposed, then mirrored top-bottom, then left-right, as the three flags say:
    together the eight symmetries of the square. Colour `k` becomes `colours[k]`. Demonstration
    `j` is the old demonstration `order[j]`. Use `jax.vmap` for many tasks.

    The canvas must be square where grids are transposed.

    ```python
    import jax
    from jaxarc import data

    tasks = data.load("AGI1-train").buffer()
    guise = data.Augmentation.sample(jax.random.key(0), tasks.num_demos[7], max_demos=10)
    pair = guise.pair(tasks.demo(7, 0))
    back = guise.inverse().pair(pair)
    ```
    """

    transposed: Bool[Array, ""]
    flip_rows: Bool[Array, ""]
    flip_columns: Bool[Array, ""]
    colours: UInt8[Array, " 10"]
    order: UInt8[Array, " max_demos"]

    @classmethod
    def identity(cls, max_demos: int) -> Augmentation:
        """The guise that changes nothing."""
        no = jnp.array(False)
        return cls(
            no, no, no, jnp.arange(10, dtype=jnp.uint8), jnp.arange(max_demos, dtype=jnp.uint8)
        )

    @classmethod
    def sample(
        cls,
        key: PRNGKeyArray | UInt32[Array, ...],
        num_demos: Int32[Array, ""],
        *,
        max_demos: int,
        symmetry: bool = True,
        colours: bool = True,
        keep_black: bool = True,
        order: bool = True,
    ) -> Augmentation:
        """A random guise. Each part may be switched off; `keep_black` leaves colour 0 alone."""
        plain = cls.identity(max_demos)
        of_symmetry, of_colours, of_order = jax.random.split(key, 3)
        flags = jax.random.bernoulli(of_symmetry, shape=(3,))
        kept = int(keep_black)
        table = jax.random.permutation(of_colours, plain.colours[kept:])
        # Padding pairs sort behind every real one, in their own order.
        number = jnp.arange(max_demos)
        rank = jnp.where(number < num_demos, jax.random.uniform(of_order, (max_demos,)), 2.0)
        turn, flip, mirror = flags if symmetry else jnp.zeros(3, bool)
        return cls(
            turn,
            flip,
            mirror,
            jnp.concatenate([plain.colours[:kept], table]) if colours else plain.colours,
            jnp.argsort(rank, stable=True).astype(jnp.uint8) if order else plain.order,
        )

    def inverse(self) -> Augmentation:
        """The guise that undoes this one."""
        swap = self.transposed
        return Augmentation(
            self.transposed,
            jnp.where(swap, self.flip_columns, self.flip_rows),
            jnp.where(swap, self.flip_rows, self.flip_columns),
            jnp.argsort(self.colours).astype(jnp.uint8),
            jnp.argsort(self.order).astype(jnp.uint8),
        )

    def grid(
        self, grid: UInt32[Array, "4 rows"], size: UInt8[Array, " 2"]
    ) -> tuple[UInt32[Array, "4 rows"], UInt8[Array, " 2"]]:
        """One grid and its size in the new guise."""
        grid = jnp.where(self.transposed, transpose(grid), grid)
        size = jnp.where(self.transposed, size[::-1], size)
        height, width = size.astype(jnp.int32)
        grid = map_rows(grid, jnp.where(self.flip_rows, height - 1, 0), self.flip_rows)
        grid = map_columns(grid, jnp.where(self.flip_columns, width - 1, 0), self.flip_columns)
        zero = jnp.int32(0)
        area = rectangle(grid.shape[1], Box(zero, height, zero, width))
        return recolour(grid, self.colours) & area[None], size

    def pair(self, pair: PackedPair) -> PackedPair:
        """One pair in the new guise."""
        sides = (pair.input, pair.input_size), (pair.output, pair.output_size)
        grids, sizes = zip(*[self.grid(*side) for side in sides], strict=True)
        return PackedPair(jnp.concatenate(grids, axis=-2), jnp.concatenate(sizes, axis=-1))

    def task(self, task: JaxArcTask) -> JaxArcTask:
        """A whole padded task in the new guise, its demonstrations in the new order."""
        height, width = task.input_grids_examples.shape[1:]
        if height != width:
            raise ValueError(f"the canvas must be square to turn a task, got {height} x {width}")
        if task.input_grids_examples.shape[0] != self.order.shape[0]:
            raise ValueError(
                f"the guise orders {self.order.shape[0]} demonstrations, the task is padded to "
                f"{task.input_grids_examples.shape[0]}: sample it with that max_demos"
            )

        @jax.vmap
        def turn(cells, mask):
            sides = jnp.stack([jnp.sum(jnp.any(mask, axis=1)), jnp.sum(jnp.any(mask, axis=0))])
            grid, size = self.grid(pack(cells), sides.astype(jnp.uint8))
            inside = jnp.arange(height)[:, None] < size[0].astype(jnp.int32)
            inside = inside & (jnp.arange(width)[None] < size[1].astype(jnp.int32))
            return unpack(grid, height, width), inside

        order = self.order
        return JaxArcTask(
            *turn(task.input_grids_examples[order], task.input_masks_examples[order]),
            *turn(task.output_grids_examples[order], task.output_masks_examples[order]),
            task.num_train_pairs,
            *turn(task.test_input_grids, task.test_input_masks),
            *turn(task.true_test_output_grids, task.true_test_output_masks),
            task.num_test_pairs,
            task.task_index,
        )
