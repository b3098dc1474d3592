"""A batch that does not fit, computed piece by piece."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from worldloom.batch._adaptive import AdaptiveBatch
from worldloom.batch._bytes import format_bytes
from worldloom.batch._errors import BatchError, BatchMemoryError
from worldloom.batch._memory import available_memory
from worldloom.batch._plan import Plan, plan, program_bytes
from worldloom.batch._rows import rows_of


def chunked_map(
    fn: Callable[[Any], Any],
    xs: Any,
    *,
    batch: int | Plan | AdaptiveBatch | Literal["auto"] = "auto",
    output: Literal["host", "device"] = "host",
    progress: bool = False,
) -> Any:
    """`fn(xs)`, computed for a few rows at a time.

    `fn` takes a batch and treats its rows apart, as `jax.vmap(f)` does. It is compiled once:
    the last chunk begins early enough to be full, and computes some rows again. Results differ
    from those of one call at most by rounding.

    **Arguments:**

    - `fn`: a function of batches. Arrays bound to it (a `jax.tree_util.Partial`, an
      `eqx.Module`) are arguments of the compiled program. Pass the same object again and it is
      not compiled again.
    - `xs`: a tree of arrays with the same leading size: JAX, NumPy or memory-mapped.
    - `batch`: rows at a time: a number; a [`Plan`][worldloom.batch.Plan], of which the best size
      is taken; an [`AdaptiveBatch`][worldloom.batch.AdaptiveBatch], which gives way when memory
      runs out; `"auto"` makes a plan for the memory that is available.
    - `output`: results go to NumPy arrays on the host, or stay on the device.
    - `progress`: draw a progress bar.

    ```python
    import jax
    import jax.numpy as jnp
    import numpy as np
    from worldloom import batch

    squares = batch.chunked_map(jax.vmap(jnp.square), np.arange(10), batch=4)
    assert squares[-1] == 81
    ```
    """
    rows = rows_of(xs, "xs")
    sizes = _sizes(fn, xs, batch) if rows else 1
    collect = _Collector(rows, output)
    done = 0

    def chunk(size: int) -> Any:
        start = min(done, rows - size)
        return start, _call(fn, _take(xs, start, size))

    with _bar(rows, progress) as advance:
        # No rows are one chunk of none, which tells the shapes of the result.
        while collect.is_empty or done < rows:
            size, (start, result) = _attempt(sizes, chunk, rows, fn, xs)
            collect.put(result, start, size)
            advance(start + size - done)
            done = start + size
    return collect.result()


@eqx.filter_jit
def _call(fn: Callable[[Any], Any], xs: Any) -> Any:
    return fn(xs)


def _sizes(fn: Callable[[Any], Any], xs: Any, batch: Any) -> int | AdaptiveBatch:
    if isinstance(batch, AdaptiveBatch):
        return batch
    if batch == "auto":
        batch = plan(fn, xs)
    size = batch.best if isinstance(batch, Plan) else batch
    if size < 1:
        raise BatchError(f"batch must be at least 1, got {size}.")
    return size


def _attempt(
    sizes: int | AdaptiveBatch,
    chunk: Callable[[int], Any],
    rows: int,
    fn: Callable[[Any], Any],
    xs: Any,
) -> tuple[int, Any]:
    if not isinstance(sizes, AdaptiveBatch):
        size = min(sizes, rows)
        return size, chunk(size)
    try:
        return sizes.attempt(chunk, limit=rows)
    except BatchMemoryError as error:
        raise BatchMemoryError(
            f"a batch of 1 row needs {format_bytes(program_bytes(fn, (xs,), 1))} for arguments, "
            f"results and temporaries, and memory ran out with "
            f"{format_bytes(available_memory())} available."
        ) from error


def _take(xs: Any, start: int, size: int) -> Any:
    return jax.tree.map(
        lambda x: _slice(x, start, size) if isinstance(x, jax.Array) else x[start : start + size],
        xs,
    )


@jax.jit(static_argnums=2)
def _slice(x: jax.Array, start: Any, size: int) -> jax.Array:
    # With a traced start one program serves all chunks.
    return jax.lax.dynamic_slice_in_dim(x, start, size)


@jax.jit(donate_argnums=0)
def _write(whole: jax.Array, part: jax.Array, start: Any) -> jax.Array:
    return jax.lax.dynamic_update_slice_in_dim(whole, part, start, 0)


class _Collector:
    """Results of all rows, allocated when the first chunk tells their shapes."""

    def __init__(self, rows: int, output: str) -> None:
        if output not in ("host", "device"):
            raise BatchError(f"output must be 'host' or 'device', got {output!r}.")
        self._rows = rows
        self._on_host = output == "host"
        self._whole: list[Any] | None = None
        self._keys: list[Any] = []
        self._tree: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was put in yet."""
        return self._whole is None

    def put(self, result: Any, start: int, size: int) -> None:
        """Take the results of rows `start` to `start + size`."""
        found = rows_of(result, "the result of fn")
        if found != size:
            raise BatchError(
                f"fn returned {found} rows for {size}: it must return one row for each it gets. "
                "Is it a function of one item? Then give jax.vmap(fn)."
            )
        leaves, self._tree = jax.tree.flatten(result)
        if self._whole is None:
            self._keys = [_key_impl(leaf) for leaf in leaves]
        words = [
            leaf if impl is None else jax.random.key_data(leaf)
            for leaf, impl in zip(leaves, self._keys, strict=True)
        ]
        if self._whole is None:
            empty = np.empty if self._on_host else jnp.empty
            self._whole = [empty((self._rows, *leaf.shape[1:]), leaf.dtype) for leaf in words]
        for index, leaf in enumerate(words):
            if self._on_host:
                self._whole[index][start : start + size] = leaf
            else:
                self._whole[index] = _write(self._whole[index], leaf, start)

    def result(self) -> Any:
        """The whole tree. Typed keys are keys again."""
        assert self._whole is not None
        leaves = [
            leaf if impl is None else jax.random.wrap_key_data(leaf, impl=impl)
            for leaf, impl in zip(self._whole, self._keys, strict=True)
        ]
        return jax.tree.unflatten(self._tree, leaves)


def _key_impl(leaf: Any) -> Any:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_impl(leaf)
    return None


@contextlib.contextmanager
def _bar(rows: int, progress: bool) -> Iterator[Callable[[int], None]]:
    """How to tell a progress bar that rows are done."""
    if not progress:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("rows", total=rows)
        yield lambda done: bar.advance(task, done)
