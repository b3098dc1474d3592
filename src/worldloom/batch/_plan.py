"""Batch sizes from what XLA says a compiled program needs. Nothing is allocated."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax

from worldloom.batch._bytes import format_bytes, parse_bytes
from worldloom.batch._errors import BatchError, BatchMemoryError
from worldloom.batch._memory import available_memory, cache_bytes
from worldloom.batch._rows import abstract, axes_of, concrete, is_array
from worldloom.batch._search import find_largest

# Kept free: the program itself, threads, and buffers that XLA does not count (packed operands
# of matrix products, some 12 MiB).
_RESERVED_SHARE = 0.05
_RESERVED_BYTES = 32 * 2**20

# Where throughput peaks on CPU: the working set fills an eighth of the last cache, give or take.
_CACHE_SHARE = 1 / 8
_STEP = 4
_ROUNDS = 5


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a function needs for a batch, and which batch sizes to use."""

    memory: int
    """Bytes that may be used, as given or found."""
    largest: int
    """The largest batch found to fit, with 5 % and 32 MiB kept free."""
    best: int
    """The batch with the highest throughput: a guess from the size of the processor's cache,
    or the fastest of `timings` if those were measured."""
    points: tuple[tuple[int, int], ...]
    """Batch sizes that were compiled and the bytes XLA needs for each, smallest first."""
    timings: tuple[tuple[int, float], ...] = ()
    """Batch sizes that were timed and seconds an item for each, if asked for."""
    compiled_bytes: Callable[[int], int] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )
    """Compiles the function for a batch and says what XLA needs, as `plan` sets it."""

    @property
    def compiles(self) -> int:
        """How many programs were compiled to make this plan."""
        return len(self.points)

    @property
    def bytes_per_item(self) -> float:
        """Bytes that each further item needs, on average up to the largest batch."""
        (low, low_bytes), (high, high_bytes) = self.points[0], self.points[-1]
        return (high_bytes - low_bytes) / (high - low)

    @property
    def fixed_bytes(self) -> float:
        """Bytes that are needed whatever the batch."""
        size, size_bytes = self.points[0]
        return max(size_bytes - size * self.bytes_per_item, 0.0)

    def bytes(self, batch: int) -> int:
        """Bytes of arguments, results and temporaries for a batch.

        What XLA says: it compiles the function for a batch that was not asked before. Memory
        has jumps where XLA chooses another way to compute, which no line through other batches
        foresees. A plan that was not made by `plan` has only the lines through its `points`.
        """
        return self.compiled_bytes(batch) if self.compiled_bytes else self._along_lines(batch)

    def _along_lines(self, batch: int) -> int:
        """Bytes for a batch along straight lines through `points`. Compiles nothing."""
        pairs = list(pairwise(self.points))
        (low, low_bytes), (high, high_bytes) = next(
            (pair for pair in pairs if batch <= pair[1][0]), pairs[-1]
        )
        slope = (high_bytes - low_bytes) / (high - low)
        return max(round(low_bytes + (batch - low) * slope), 0)

    def __str__(self) -> str:
        return (
            f"up to {self.largest:,} items in {format_bytes(self.memory)}: "
            f"{format_bytes(self.bytes_per_item)} each and {format_bytes(self.fixed_bytes)} for "
            f"all; best {self.best:,} ({'measured' if self.timings else 'guessed'})"
        )


def plan(
    fn: Callable[..., Any],
    *args: Any,
    in_axes: Any = 0,
    memory: int | float | str | None = None,
    donate_argnums: int | Sequence[int] = (),
    measure: bool = False,
) -> Plan:
    """Find out which batch sizes of `fn(*args)` fit into memory, and which is fastest.

    Compiles `fn` for two small batches and for the size that a straight line through them
    suggests, then corrects that until the prediction is within 1 % of the memory: three
    compilations in most cases. Nothing is run and nothing is allocated unless `measure` is set.

    **Arguments:**

    - `fn`: a function of batches. Arrays bound to it (a `jax.tree_util.Partial`, an
      `eqx.Module`) count as memory that all items share.
    - `args`: example arguments with any batch size: arrays, or `jax.ShapeDtypeStruct`s. Leaves
      that are not arrays are static, as configuration should be.
    - `in_axes`: where the batch is, as for `jax.vmap`.
    - `memory`: bytes, or text such as `"2 GiB"`. What is available now, if not given.
    - `donate_argnums`: as for `jax.jit`: arguments whose memory the results may use again.
    - `measure`: also time three batch sizes around the guess, and let `best` be the fastest.
      This runs `fn`, so `args` must be arrays; their rows are repeated to fill the batch.

    ```python
    import jax
    import jax.numpy as jnp
    from worldloom import batch

    item = jax.ShapeDtypeStruct((1, 30, 30), jnp.float32)
    found = batch.plan(lambda x: jnp.sin(x).sum((1, 2)), item, memory="1 GiB")
    assert found.bytes(found.largest) <= 2**30
    ```
    """
    axes = axes_of(args, in_axes)
    budget = available_memory() if memory is None else parse_bytes(memory)
    usable = int(budget * (1 - _RESERVED_SHARE)) - _RESERVED_BYTES
    program = _Program(fn, args, axes, donate_argnums)
    if usable <= 0:
        raise BatchError(
            f"memory={format_bytes(budget)} is not enough: 5 % and "
            f"{format_bytes(_RESERVED_BYTES)} are kept free."
        )
    compiled_bytes = functools.cache(program.bytes)
    largest, points = find_largest(compiled_bytes, usable)
    if largest == 0:
        raise BatchMemoryError(
            f"a batch of 1 needs {format_bytes(points[0][1])}, but only {format_bytes(usable)} of "
            f"memory={format_bytes(budget)} may be used (5 % and "
            f"{format_bytes(_RESERVED_BYTES)} are kept free)."
        )
    found = Plan(
        memory=budget, largest=largest, best=largest, points=points, compiled_bytes=compiled_bytes
    )
    found = dataclasses.replace(found, best=_guess(found))
    if not measure:
        return found
    sizes = {max(found.best // _STEP, 1), found.best, min(found.best * _STEP, largest)}
    timings = tuple(program.time(sorted(sizes)))
    return dataclasses.replace(
        found, best=min(timings, key=lambda timing: timing[1])[0], timings=timings
    )


def program_bytes(fn: Callable[..., Any], args: tuple[Any, ...], size: int) -> int:
    """Bytes of arguments, results and temporaries of `fn(*args)` for a batch of `size`."""
    return _Program(fn, args, axes_of(args, 0), ()).bytes(size)


def _guess(found: Plan) -> int:
    """The largest power of two whose working set is a share of the cache; of an accelerator,
    that fits."""
    best = 1
    room = cache_bytes() * _CACHE_SHARE if jax.default_backend() == "cpu" else found.memory
    while 2 * best <= found.largest and found._along_lines(2 * best) <= room:
        best *= 2
    return best


class _Program:
    """A function of batches that can be compiled, and run, for any batch size."""

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        axes: Any,
        donate_argnums: int | Sequence[int],
    ) -> None:
        self._args, self._axes = args, axes
        self._bound, static_fn = eqx.partition(fn, is_array)
        self._arrays, static_args = eqx.partition(args, is_array)
        donated = (donate_argnums,) if isinstance(donate_argnums, int) else donate_argnums

        def call(bound: Any, *arrays: Any) -> Any:
            return eqx.combine(bound, static_fn)(*eqx.combine(arrays, static_args))

        # An argument that is not used is in memory all the same.
        self._call = jax.jit(
            call, donate_argnums=tuple(number + 1 for number in donated), keep_unused=True
        )

    def _compiled(self, size: int) -> Any:
        shapes = eqx.filter(abstract(self._args, self._axes, size), is_array)
        return self._call.lower(self._bound, *shapes).compile()

    def bytes(self, size: int) -> int:
        """Bytes of arguments, results and temporaries for a batch of `size`."""
        needs = self._compiled(size).memory_analysis()
        return (
            needs.argument_size_in_bytes
            + needs.output_size_in_bytes
            + needs.temp_size_in_bytes
            - needs.alias_size_in_bytes
        )

    def time(self, sizes: list[int]) -> list[tuple[int, float]]:
        """Best seconds an item for each size, measured in turn."""
        best = dict.fromkeys(sizes, float("inf"))
        programs = {size: self._compiled(size) for size in sizes}
        for round_number in range(_ROUNDS + 1):
            for size in sizes:
                # Fresh arguments each time: some may be donated.
                arrays = eqx.filter(concrete(self._args, self._axes, size), is_array)
                jax.block_until_ready(arrays)
                start = time.perf_counter()
                jax.block_until_ready(programs[size](self._bound, *arrays))
                seconds = (time.perf_counter() - start) / size
                if round_number > 0:
                    best[size] = min(best[size], seconds)
        return list(best.items())
