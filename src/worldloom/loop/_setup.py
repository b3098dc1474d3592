"""Everything that is settled before the first step: placement, program, records, buffers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_args

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from worldloom import _processes
from worldloom.compile import compiled
from worldloom.compile._frame import take_apart
from worldloom.loop._identity import (
    Facts,
    arrays_fact,
    facts_of,
    input_facts,
    outlined,
    plain,
    settled,
)
from worldloom.loop._inputs import Inputs
from worldloom.loop._program import Carry, Faults, OnFault, Program, StepError, chunk, outline
from worldloom.loop._records import flatten_saves, plan_records

# Bytes of records on the device at once, of which there are two sets, and of a window of inputs.
# Few enough that a buffer is used again while it is in the cache.
BUFFER_BYTES = 16 * 2**20


class Setup:
    """A run that is ready to begin, and what it is, if it is given a `config` to be known by.

    **Attributes:**

    - `program`: what is compiled.
    - `step`: the arrays bound to the step.
    - `carry`: the first state, copied, and no faults.
    - `inputs`: inputs in windows.
    - `records`: the columns that records fill.
    - `length`: number of steps.
    - `replicated`: how to place what every device needs; `None` with one device.
    """

    def __init__(
        self,
        step: Callable,
        state: Any,
        inputs: Any,
        *,
        length: int,
        save: Any,
        checks: Mapping[str, Callable],
        on_fault: str,
        refresh: Callable[[int], tuple[Callable, int]] | None,
        config: Mapping[str, Any] | None = None,
    ):
        if not 0 <= length < 2**31:
            raise ValueError(f"length={length}: expected a number of steps from 0 to 2**31 - 1")
        if on_fault not in get_args(OnFault):
            raise ValueError(f"on_fault={on_fault!r}: expected one of {get_args(OnFault)}")
        if any(isinstance(leaf, Tracer) for leaf in jtu.tree_leaves(state)):
            raise StepError(
                "run() drives the device from the host and cannot itself be traced by jit, grad or "
                "vmap; inside those use worldloom.unroll"
            )
        _refuse_arity(step)
        self._refresh = refresh
        self.length = length
        self._given = inputs
        saves, names, tree = flatten_saves(save, length)
        if config is not None or _processes.count() > 1:
            self._facts = facts_of(
                step=step,
                state=state,
                saves=saves,
                names=names,
                checks=checks,
                on_fault=on_fault,
            )
            told = {"length": length, **plain(config or {})}
            facts = self._facts | input_facts(inputs, length)
            _processes.require_same(told | outlined(facts))
        self.step, step_frame = take_apart(step)
        arrays, state_frame = take_apart(state)
        self.inputs = Inputs(inputs, length, BUFFER_BYTES)
        mesh = _mesh_of(arrays)
        self.replicated = None if mesh is None else NamedSharding(mesh, PartitionSpec())
        arrays = _enter(arrays, state_frame.names("state"), self.replicated)
        self.program = Program(
            step=step_frame,
            state=state_frame,
            inputs=self.inputs.frame,
            saves=saves,
            checks=tuple(checks.items()),
            on_fault=on_fault,
            indexed=not self.inputs.present,
            placement=None,
        )
        window, _ = self.inputs.window(0, min(1, length), self.replicated)
        asked = (self.program, self.step, arrays, window)
        shapes, flags = outline.eval_shape(*asked)
        worlds = _worlds(checks, flags)
        shardings = fault_sharding = None
        if mesh is not None:
            split = _split_sizes(arrays)
            place = lambda leaf: _like_the_state(leaf.shape, split, mesh)  # noqa: E731
            shardings = [[place(leaf) for leaf in jtu.tree_leaves(tree)] for tree in shapes]
            fault_sharding = place(flags[0]) if flags else self.replicated
        self.records = plan_records(saves, names, tree, shapes, shardings, length)
        self._capacity = self._row_capacity()
        self._buffer_shardings = shardings and [
            [_behind_rows(leaf, mesh) for leaf in leaves] for leaves in shardings
        ]
        if mesh is not None:
            self.program = self.program.placed(
                [x.sharding for x in arrays], fault_sharding, self._buffer_shardings
            )
        self.carry = Carry(arrays, _no_faults(worlds, fault_sharding))

    def buffers(self) -> list[list[Array]]:
        """A set of empty buffers for records."""
        structure, shapes, shardings = [], [], []
        for i, (columns, capacity) in enumerate(
            zip(self.records.columns, self._capacity, strict=True)
        ):
            structure.append(len(columns))
            for j, column in enumerate(columns):
                shapes.append(((capacity + 1, *column.shape), column.dtype))
                shardings.append(self._buffer_shardings and self._buffer_shardings[i][j])
        blank = iter(_zeros(shapes, shardings))
        return [[next(blank) for _ in range(count)] for count in structure]

    def furthest(self, done: int, length: int) -> int:
        """The step that a chunk beginning at `done` may go to without overflowing anything."""
        stop = min(length, done + self.inputs.limit if self.inputs.present else length)
        for save, rows, capacity in zip(
            self.records.saves, self.records.rows(done), self._capacity, strict=True
        ):
            stop = min(stop, save.reach(rows + capacity))
        block = self.program.block
        return stop if stop == length else max(stop // block * block, min(done + block, length))

    def refresh(self, done: int, length: int) -> int:
        """Take the arrays that step `done` needs; returns the step until which they will do."""
        if self._refresh is None:
            return length
        step, until = self._refresh(done)
        self.step, frame = take_apart(step)
        if frame != self.program.step:
            raise StepError(
                f"refresh({done}) returned a step of another kind; only its arrays may change"
            )
        if not done < until:
            raise StepError(f"refresh({done}) returned a step that is good until {until} only")
        return until

    @property
    def streams(self) -> bool:
        """Whether the arrays of the step change as the run goes."""
        return self._refresh is not None

    def window(self) -> list[str]:
        """The arrays of the step as they are now, in words."""
        return arrays_fact(self.step)

    def identity(self, rows: int) -> Facts:
        """What two runs must have in common for one to go on with the other.

        Of the inputs the first `rows` count: a run that is prolonged has more.
        """
        return settled(self._facts | input_facts(self._given, rows))

    def trace(self, buffers: list[list[Array]]) -> None:
        """Trace the loop, so that a step which does not fit in fails before anything is written."""
        window, offset = self.inputs.window(0, min(1, self.length), self.replicated)
        chunk.eval_shape(
            self.program,
            self.step,
            self.carry,
            buffers,
            window,
            np.int32(offset),
            np.asarray(self.records.rows(0), np.int32),
            np.int32(0),
            np.int32(0),
        )

    def pack(self, carry: Carry) -> dict[str, Any]:
        """A carry as it is saved: arrays by name."""
        names = self.program.state.names("state")
        return {
            "state": dict(zip(names, carry.state, strict=True)),
            "faults": carry.faults._asdict(),
        }

    def unpack(self, tree: dict[str, Any]) -> Carry:
        """The carry that `pack` made this of."""
        names = self.program.state.names("state")
        return Carry([tree["state"][name] for name in names], Faults(**tree["faults"]))

    def _row_capacity(self) -> list[int]:
        """Rows in each save's buffers: powers of two, so that lengths share programs.

        Each save gets its share of the bytes that the whole run records: all buffers fill alike.
        """
        columns_of, capacity = self.records.columns, []
        rows = [columns[0].rows if columns else 1 for columns in columns_of]
        sizes = [sum(column.row_bytes for column in columns) for columns in columns_of]
        total = sum(count * size for count, size in zip(rows, sizes, strict=True))
        for count in rows:
            fits = max(1, count * BUFFER_BYTES // max(1, total))
            capacity.append(min(1 << max(0, count - 1).bit_length(), 1 << (fits.bit_length() - 1)))
        return capacity


def _refuse_arity(step: Callable) -> None:
    """A step that cannot be called with a state and an input is named before JAX sees it."""
    if not callable(step):
        raise StepError(f"the step is {type(step).__name__}; expected a function step(state, x)")
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise StepError(
            f"the step takes {signature}; it is called as step(state, x) and returns a pair "
            "(state, output)"
        ) from error


@compiled
def _copy(arrays: list[Array]) -> list[Array]:
    """Copies that may be donated, without weak types, so that a loop can carry them."""
    return [
        jnp.copy(x)
        if jnp.issubdtype(x.dtype, jax.dtypes.extended)
        else lax.convert_element_type(jnp.copy(x), x.dtype)
        for x in arrays
    ]


def _enter(arrays: list[Any], names: list[str], replicated: Any) -> list[Array]:
    """Host arrays become device arrays here, at the door."""
    entered = []
    for array, name in zip(arrays, names, strict=True):
        try:
            array = jnp.asarray(array)
        except TypeError as error:
            raise StepError(f"{name} cannot be an array of JAX: {error}") from error
        if replicated is not None and len(array.sharding.device_set) == 1:
            array = jax.device_put(array, replicated)
        entered.append(array)
    return _copy(entered)


def _mesh_of(arrays: list[Any]) -> Mesh | None:
    """The mesh that the state is spread over, if it is spread at all."""
    for array in arrays:
        if isinstance(array, jax.Array) and len(array.sharding.device_set) > 1:
            if isinstance(array.sharding, NamedSharding):
                return array.sharding.mesh  # pyright: ignore[reportReturnType]
            raise StepError(
                "the state is spread over devices without a mesh; place it with "
                "worldloom.mesh.shard or a jax.sharding.NamedSharding"
            )
    return None


def _split_sizes(arrays: list[Array]) -> dict[int, Any]:
    """The sizes along which the state is split, and the axes of the mesh that split them."""
    return {
        size: axes
        for array in arrays
        if isinstance(array.sharding, NamedSharding)
        for size, axes in zip(array.shape, array.sharding.spec, strict=False)
        if axes is not None
    }


def _like_the_state(shape: tuple[int, ...], split: dict[int, Any], mesh: Mesh) -> NamedSharding:
    """Where a record lives: split along the first axis as long as one that the state is split by.

    Any place is right, and this one is near: nothing moves to get there. XLA would know for sure,
    but only after compiling the step once for the question alone.
    """
    for axis, size in enumerate(shape):
        if size in split:
            return NamedSharding(mesh, PartitionSpec(*[None] * axis, split[size]))
    return NamedSharding(mesh, PartitionSpec())


def _worlds(checks: Mapping[str, Callable], flags: list[Any]) -> tuple[int, ...]:
    """The shape that all checks share: one value, or one for each world."""
    for message, flag in zip(checks, flags, strict=True):
        if flag.dtype != jnp.bool_:
            raise StepError(f"check {message!r} returns {flag.dtype}; expected bool")
        if flag.shape != flags[0].shape:
            raise StepError(
                f"check {message!r} has shape {list(flag.shape)}, but the first check has "
                f"{list(flags[0].shape)}; all must be single values or one for each world"
            )
    return flags[0].shape if flags else ()


def _no_faults(worlds: tuple[int, ...], sharding: Any) -> Faults:
    return Faults(*_zeros([(worlds, np.dtype(np.int32))] * 2, [sharding] * 2))


def _zeros(shapes: list[tuple[tuple[int, ...], np.dtype]], shardings: list[Any]) -> list[Array]:
    if any(shardings):
        pairs = zip(shapes, shardings, strict=True)
        return [jnp.zeros(shape, dtype, device=where) for (shape, dtype), where in pairs]
    return _blank(tuple(shapes))


@compiled(static=("shapes",))
def _blank(shapes: tuple[tuple[tuple[int, ...], np.dtype], ...]) -> list[Array]:
    """All at once: a call for each would be felt in short runs."""
    return [jnp.zeros(shape, dtype) for shape, dtype in shapes]


def _behind_rows(sharding: Any, mesh: Any) -> NamedSharding:
    """The sharding of many rows, given that of one."""
    return NamedSharding(mesh, PartitionSpec(None, *sharding.spec))
