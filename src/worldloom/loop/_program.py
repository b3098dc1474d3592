"""The device side of a run: one compiled program that serves every chunk.

The number of steps is traced. First chunk, last chunk and a resumed half chunk are therefore the
same executable, and a resumed run is bit for bit the run that was killed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int

from worldloom._errors import WorldloomError
from worldloom.compile import compiled
from worldloom.compile._frame import Frame, take_apart
from worldloom.loop._save import Final, Save

OnFault: TypeAlias = Literal["stop", "drop", "keep"]


class StepError(WorldloomError, TypeError):
    """A step, a record or a check does not have the form that a loop needs."""


class Faults(NamedTuple):
    """What went wrong in each world first: 0 for nothing, else 1 + the index of the check."""

    code: Int[Array, "*worlds"]
    step: Int[Array, "*worlds"]


class Carry(NamedTuple):
    """What one chunk hands to the next."""

    state: list[Array]
    faults: Faults


@dataclasses.dataclass(frozen=True)
class Program:
    """Everything that decides which executable runs. Hashable; holds no arrays."""

    step: Frame
    state: Frame
    inputs: Frame
    saves: tuple[Save, ...]
    checks: tuple[tuple[str, Callable[[Any], Any]], ...]
    on_fault: str
    indexed: bool
    """Whether the step takes the step number, there being no inputs."""
    placement: tuple[Any, ...] | None
    """Shardings of state, faults and record buffers, leaf by leaf, where there are many devices."""

    def placed(self, state: list[Any], faults: Any, records: Any) -> Program:
        """The same program, keeping everything on the devices where it is."""
        leaves = [*state, faults, faults, *jtu.tree_leaves(records)]
        return dataclasses.replace(self, placement=tuple(leaves))

    @property
    def block(self) -> int:
        """Records are due only at multiples of this number of steps."""
        return math.gcd(*(save.period() for save in self.saves)) or 1


def advance(
    program: Program, step: list[Array], state: list[Array], x: Any
) -> tuple[list[Array], Any]:
    """One step on the arrays of the state; its form is checked while it is traced."""
    new, output = _call(program.step.fill(step), program.state.fill(state), x)
    arrays, frame = take_apart(new)
    if frame != program.state:
        raise StepError(
            "the step must return a state of the same structure as it was given; it was given\n"
            f"  {program.state.structure}\nand returned\n  {frame.structure}"
        )
    triples = zip(state, arrays, program.state.names("state"), strict=True)
    return [_same(old, new, name) for old, new, name in triples], output


@compiled(static=("program",))
def outline(program: Program, step: list[Array], state: list[Array], inputs: list[Array]) -> Any:
    """Records (as trees) and check values after one step; asked for their shapes."""
    zero = jnp.int32(0)
    state, output = advance(program, step, state, _input(program, inputs, zero, zero))
    tree = program.state.fill(state)
    records = [output if save.of is None else save.of(tree) for save in program.saves]
    checks = [jnp.asarray(check(tree)) for _, check in program.checks]
    return jtu.tree_map(recordable, records), checks


@compiled(static=("program", "which"))
def observe(program: Program, state: list[Array], which: tuple[int, ...]) -> list[list[Array]]:
    """The records of the saves numbered in `which`, of a state outside the loop."""
    tree = program.state.fill(state)
    kept = [program.saves[i].of for i in which]
    return [[recordable(x) for x in jtu.tree_leaves(of(tree))] for of in kept if of is not None]


@compiled(static=("program",), donate=("carry", "buffers"))
def chunk(
    program: Program,
    step: list[Array],
    carry: Carry,
    buffers: list[list[Array]],
    inputs: list[Array],
    offset: Int[Array, ""] | np.int32,
    bases: Int[Array | np.ndarray, " saves"],
    start: Int[Array, ""] | np.int32,
    stop: Int[Array, ""] | np.int32,
) -> tuple[Carry, list[list[Array]], Int[Array, ""]]:
    """Take `carry` from step `start` to step `stop`, filling record buffers on the way.

    **Arguments:**

    - `program`: what to run.
    - `step`: the arrays bound to the step.
    - `carry`: state and faults; donated.
    - `buffers`: for each record, arrays of `rows + 1` rows, of which the last takes what is not
        due; donated.
    - `inputs`: the steps' inputs, the first row being that of step `offset`.
    - `bases`: how many records of each kind existed at `start`.
    - `start`, `stop`: numbers of steps.

    **Returns:**

    Carry, filled buffers, and the number of steps done, smaller than `stop` after a fault that
    stops the run.
    """
    if program.placement is not None:
        carry, buffers = _place(program, carry, buffers)
    keeps_output = any(save.of is None for save in program.saves)
    output = None
    if keeps_output:
        x = _input(program, inputs, offset, start)
        shapes = jax.eval_shape(lambda: advance(program, step, carry.state, x)[1])
        output = jtu.tree_map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def one(loop):
        done, carry, _ = loop
        state, output = advance(program, step, carry.state, _input(program, inputs, offset, done))
        done = done + 1
        carry = _mark_faults(program, carry, state, done)
        return done, carry, output if keeps_output else None

    def running(done, carry, end):
        go = done < end
        return go & ~jnp.any(carry.faults.code > 0) if program.on_fault == "stop" else go

    def block(loop):
        done, carry, output, buffers = loop
        if program.block == 1:
            done, carry, output = one((done, carry, output))
        else:
            end = jnp.minimum(stop, (done // program.block + 1) * program.block)
            done, carry, output = lax.while_loop(
                lambda inner: running(inner[0], inner[1], end), one, (done, carry, output)
            )
        return done, carry, output, _record(program, carry.state, output, buffers, bases, done)

    loop = (start, carry, output, buffers)
    done, carry, _, buffers = lax.while_loop(
        lambda loop: running(loop[0], loop[1], stop), block, loop
    )
    if program.placement is not None:
        carry, buffers = _place(program, carry, buffers)
    return carry, buffers, jnp.asarray(done)


def recordable(leaf: Any) -> Array:
    """A leaf as it is recorded: keys as their words, 8- and 16-bit floats of ML as float32."""
    leaf = jnp.asarray(leaf)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    if jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.dtype not in (
        jnp.float16,
        jnp.float32,
        jnp.float64,
    ):
        return leaf.astype(jnp.float32)
    return leaf


def _call(step: Callable, state: Any, x: Any) -> tuple[Any, Any]:
    result = step(state, x)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise StepError(
            "the step must return a pair (state, output); it returned "
            f"{type(result).__name__}. Return (state, None) if there is no output."
        )
    return result


def _same(old: Array, new: Any, name: str) -> Array:
    """`new` as an array that can take the place of `old`, or an error that names the leaf."""
    new = jnp.asarray(new)
    if new.shape != old.shape or new.dtype != old.dtype:
        raise StepError(
            f"the step changed {name} from {old.dtype}{list(old.shape)} to "
            f"{new.dtype}{list(new.shape)}; a state keeps its shapes and dtypes"
        )
    return lax.convert_element_type(new, old.dtype) if jax.typeof(new).weak_type else new


def _input(program: Program, inputs: list[Array], offset: Any, t: Any) -> Any:
    if program.indexed:
        return t
    rows = [lax.dynamic_index_in_dim(x, t - offset, 0, keepdims=False) for x in inputs]
    return program.inputs.fill(rows)


def _mark_faults(program: Program, carry: Carry, state: list[Array], done: Int[Array, ""]) -> Carry:
    """The carry after a step that led to `state`, with new faults entered."""
    if not program.checks:
        return Carry(state, carry.faults)
    tree = program.state.fill(state)
    code, when = carry.faults
    for number, (_, check) in enumerate(program.checks, start=1):
        new = jnp.asarray(check(tree)) & (code == 0)
        code = jnp.where(new, jnp.int32(number), code)
        when = jnp.where(new, done, when)
    if program.on_fault == "drop":
        names = program.state.names("state")
        triples = zip(carry.state, state, names, strict=True)
        state = [_freeze(code > 0, old, new, name) for old, new, name in triples]
    return Carry(state, Faults(code, when))


def _freeze(dropped: Bool[Array, "*worlds"], old: Array, new: Array, name: str) -> Array:
    """`new`, but `old` in the worlds that are dropped."""
    if old.shape[: dropped.ndim] != dropped.shape:
        raise StepError(
            f"on_fault='drop' needs the worlds, {list(dropped.shape)}, as the leading axes of "
            f"every array of the state, but {name} has shape {list(old.shape)}"
        )
    shape = dropped.shape + (1,) * (old.ndim - dropped.ndim)
    return jnp.where(dropped.reshape(shape), old, new)


def _record(
    program: Program,
    state: list[Array],
    output: Any,
    buffers: list[list[Array]],
    bases: Int[Array | np.ndarray, " saves"],
    done: Int[Array, ""],
) -> list[list[Array]]:
    """Write each record that is due to its row, and what is not due to the spare row."""
    tree = program.state.fill(state)
    filled = []
    for i, (save, buffer) in enumerate(zip(program.saves, buffers, strict=True)):
        if isinstance(save, Final):
            filled.append(buffer)
            continue

        def values(save=save):
            return [
                recordable(x) for x in jtu.tree_leaves(output if save.of is None else save.of(tree))
            ]

        due = save.due(done)
        if save.of is not None and save.period() != program.block:
            # Worth a branch: it is computed now and then, among others that are due more often.
            row = lax.cond(due, values, lambda b=buffer: [jnp.zeros_like(x[0]) for x in b])
        else:
            row = values()
        index = save.row(done) - bases[i]
        if due is not True:
            index = jnp.where(due, index, buffer[0].shape[0] - 1 if buffer else 0)
        filled.append(
            [
                lax.dynamic_update_index_in_dim(x, value, index, 0)
                for x, value in zip(buffer, row, strict=True)
            ]
        )
    return filled


def _place(
    program: Program, carry: Carry, buffers: list[list[Array]]
) -> tuple[Carry, list[list[Array]]]:
    """Keep state and buffers where they are: no device may collect what belongs to another."""
    leaves, structure = jtu.tree_flatten((carry, buffers))
    assert program.placement is not None
    placed = [
        lax.with_sharding_constraint(x, where)
        for x, where in zip(leaves, program.placement, strict=True)
    ]
    return jtu.tree_unflatten(structure, placed)
