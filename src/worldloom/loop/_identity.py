"""What makes a run the run it is: its step, what is bound to it, its start, inputs and records.

The identity is kept with a checkpoint and compared before a run goes on, and compared between the
processes of a run before they begin. It is a flat mapping from names to plain values. Arrays are
entered by a digest of their bytes, functions by their name and by what they take from elsewhere.

What may differ is written down here and nowhere else: `length` may grow, and with it the inputs and
the steps at which records are due; how the run is cut into chunks, shown, saved and spread over
devices and processes is not part of it. A step that holds more than decides what it computes says
in a method `__identity__` what stands for it: another value, or a dictionary of its parts.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import hashlib
import math
import os
import sys
import types
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from worldloom import _processes
from worldloom.compile._frame import is_traced
from worldloom.loop._save import At, Final, Save

Facts: TypeAlias = dict[str, Any]
"""Names and plain values."""

_BLOCK = 4 * 2**20
_PLAIN = (bool, int, float, complex, str, bytes)
# Where things are and what is imported: no part of what is computed.
_PLACES = (
    jax.sharding.Mesh,
    jax.sharding.Sharding,
    jax.sharding.PartitionSpec,
    jax.Device,
    types.ModuleType,
)


def facts_of(
    *,
    step: Any,
    state: Any,
    saves: tuple[Save, ...],
    names: list[str],
    checks: Mapping[str, Any],
    on_fault: str,
) -> Facts:
    """The identity of a run but for its inputs. Arrays spread over processes are not read yet."""
    facts: Facts = {"on_fault": on_fault}
    _Walk(facts).visit(step, "step")
    _Walk(facts).visit(state, "state")
    for save, name in zip(saves, names, strict=True):
        facts[f"save{name}"] = _rhythm(save)
        _Walk(facts).visit(save.of, f"save{name}.of")
    for message, check in checks.items():
        _Walk(facts).visit(check, f"checks[{message!r}]")
    return facts


def input_facts(inputs: Any, rows: int) -> Facts:
    """What the first `rows` steps are given."""
    facts: Facts = {}
    _Walk(facts, rows).visit(inputs, "inputs")
    return facts


def settled(facts: Facts) -> Facts:
    """The same with the arrays that are spread over processes, which together read them."""
    return {name: fact() if isinstance(fact, _Spread) else fact for name, fact in facts.items()}


def outlined(facts: Facts) -> Facts:
    """The same with no more than the shapes of such arrays: nothing waits for another process."""
    return {
        name: fact.shape() if isinstance(fact, _Spread) else fact for name, fact in facts.items()
    }


def arrays_fact(arrays: list[Any]) -> list[str]:
    """Arrays in words."""
    return [fact() if isinstance(fact := _array(x), _Spread) else fact for x in arrays]


def plain(value: Any) -> Any:
    """A configuration value as JSON gives it back: numbers, text, lists and mappings of those."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, np.generic | np.ndarray | jax.Array) and np.ndim(value) == 0:
        value = np.asarray(value).item()
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return arrays_fact([value])[0] if is_traced(value) else repr(value)


def differences(theirs: Facts, mine: Facts, done: int) -> list[tuple[str, Any, Any]]:
    """Names of which two runs say different things, with what each says.

    Records are compared as far as the run of the checkpoint has come, to step `done`.
    """
    found = []
    for name in dict.fromkeys([*theirs, *mine]):
        pair = theirs.get(name), mine.get(name)
        if not _same(*pair, done):
            found.append((name, *pair))
    return found


def in_words(name: str, theirs: Any, mine: Any) -> str:
    """One difference, as a clause of a sentence."""
    for value, has, lacks in ((theirs, "there", "here"), (mine, "here", "there")):
        if value is None:
            other = mine if value is theirs else theirs
            return f"{name} is {_short(other)} {lacks} and absent {has}"
    if name.endswith(".code"):
        return f"the code of {name.removesuffix('.code')} has changed"
    outlines = [str(value).partition(" sha256:")[0] for value in (theirs, mine)]
    if outlines[0] == outlines[1] and "sha256:" in str(mine):
        return f"{name} ({outlines[0]}) has other values"
    return f"{name} is {_short(mine)} here and {_short(theirs)} there"


def _short(value: Any) -> str:
    text = str(value).partition(" sha256:")[0]
    return text if len(text) <= 80 else text[:77] + "..."


def _same(theirs: Any, mine: Any, done: int) -> bool:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        if "at" in theirs and "at" in mine:
            first, second = ([s for s in one["at"] if s <= done] for one in (theirs, mine))
            return first == second
        if "sha256" in theirs and theirs.get("python") != mine.get("python"):
            return "sha256" in mine  # each Python compiles in its own way
    return theirs == mine


def _rhythm(save: Save) -> Any:
    if isinstance(save, At):
        return {"at": list(save.steps)}
    if isinstance(save, Final):
        return "Final"
    ends = "".join(f", {name}=True" for name in ("initial", "last") if getattr(save, name))
    return f"Every({save.n}{ends})"


class _Walk:
    """Enters everything below a value into `facts`, each thing under a path to it."""

    def __init__(self, facts: Facts, rows: int | None = None):
        self._facts = facts
        self._rows = rows
        self._seen: dict[int, Any] = {}

    def visit(self, value: Any, path: str) -> None:
        if value is None or isinstance(value, _PLACES):
            return
        if is_traced(value):
            self._facts[path] = _array(value, self._rows)
        elif isinstance(value, _PLAIN):
            self._facts[path] = repr(value)
        elif isinstance(value, enum.Enum | np.dtype | PurePath):
            self._facts[path] = str(value)
        elif id(value) not in self._seen:
            self._seen[id(value)] = value  # kept, so that the number stays its own
            self._compound(value, path)

    def _compound(self, value: Any, path: str) -> None:
        if hasattr(type(value), "__identity__"):
            parts = value.__identity__()
            self._each(path, **parts) if isinstance(parts, dict) else self.visit(parts, path)
        elif isinstance(value, type):
            self._facts[path] = _name(value)
        elif isinstance(value, functools.partial):
            self._each(path, func=value.func, args=value.args, keywords=value.keywords)
        elif isinstance(value, types.MethodType):
            self._each(path, func=value.__func__, self=value.__self__)
        elif hasattr(value, "__wrapped__") and not _users_own(value):
            self.visit(value.__wrapped__, path)
        elif isinstance(value, types.FunctionType):
            self._function(value, path)
        elif isinstance(value, Mapping):
            for key in sorted(value, key=str):
                self.visit(value[key], f"{path}[{key!r}]")
        elif isinstance(value, list | tuple):
            for name, item in zip(getattr(value, "_fields", range(len(value))), value, strict=True):
                self.visit(item, f"{path}.{name}" if isinstance(name, str) else f"{path}[{name}]")
        elif isinstance(value, set | frozenset):
            self._facts[path] = sorted(map(repr, value))
        elif dataclasses.is_dataclass(value):
            self._facts[path] = _name(type(value))
            fields = [f.name for f in dataclasses.fields(value)]
            self._each(path, **{n: getattr(value, n) for n in fields if hasattr(value, n)})
        else:
            self._object(value, path)

    def _each(self, path: str, **parts: Any) -> None:
        for name, part in parts.items():
            self.visit(part, f"{path}.{name}")

    def _object(self, value: Any, path: str) -> None:
        self._facts[path] = _name(value if hasattr(value, "__qualname__") else type(value))
        leaves = jtu.tree_leaves_with_path(value, is_leaf=lambda x: x is not value)
        if not (len(leaves) == 1 and leaves[0][1] is value):
            for key, leaf in leaves:
                self.visit(leaf, path + jtu.keystr(key))
            return
        for name, part in getattr(value, "__dict__", {}).items():
            if not name.startswith("_") or isinstance(part, _PLAIN) or is_traced(part):
                self.visit(part, f"{path}.{name}")

    def _function(self, function: types.FunctionType, path: str) -> None:
        """Its name, and what it takes from elsewhere: closure, defaults, plain globals."""
        self._facts[path] = _name(function)
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.visit(cell.cell_contents, f"{path}.{name}")
            except ValueError:  # not assigned yet
                continue
        self.visit(function.__defaults__ or None, f"{path}.defaults")
        self.visit(function.__kwdefaults__ or None, f"{path}.keyword_defaults")
        if not _installed(function):
            # Python versions compile alike only to themselves.
            version = "{}.{}".format(*sys.version_info)
            self._facts[f"{path}.code"] = {"python": version, "sha256": _code_digest(code)}
            for name in _globals_read(code):
                part = function.__globals__.get(name)
                ours = isinstance(part, types.FunctionType) and not _installed(part)
                if ours or isinstance(part, (*_PLAIN, tuple)) or is_traced(part):
                    self.visit(part, f"{path}.{name}")


def _name(thing: Any) -> str:
    """Of a function or class; a script's own are called the same when it is imported."""
    return f"{thing.__module__}.{thing.__qualname__}" if _installed(thing) else thing.__qualname__


def _installed(thing: Any) -> bool:
    """Whether a function or class belongs to a package, whose version stands for its code."""
    root = (thing.__module__ or "").partition(".")[0]
    if root == "__main__":
        return False
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    beside_us = Path(file).parent.parent == Path(__file__).parents[2]
    return root in sys.stdlib_module_names or "-packages" in file or beside_us


def _users_own(wrapper: Any) -> bool:
    """Whether a wrapper is a function of the user's, which may do more than what it wraps."""
    return (
        isinstance(wrapper, types.FunctionType) and "-packages" not in wrapper.__code__.co_filename
    )


def _code_digest(code: types.CodeType) -> str:
    digest = hashlib.sha256(code.co_code)
    for const in code.co_consts:
        part = _code_digest(const) if isinstance(const, types.CodeType) else _constant(const)
        digest.update(part.encode())
    digest.update(repr(code.co_names).encode())
    return digest.hexdigest()[:16]


def _constant(value: Any) -> str:
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _globals_read(code: types.CodeType) -> list[str]:
    """Global names that a function reads and never assigns, those of functions inside included."""
    read: dict[str, None] = {}
    written: set[str] = set()

    def look(code: types.CodeType) -> None:
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read[instruction.argval] = None
            elif instruction.opname == "STORE_GLOBAL":
                written.add(instruction.argval)
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                look(const)

    look(code)
    return [name for name in read if name not in written]


@dataclasses.dataclass(frozen=True)
class _Spread:
    """An array that no process has all of."""

    array: jax.Array
    rows: int | None

    def __call__(self) -> str:
        """Read it, together with the other processes."""
        return _words(_processes.gather(self.array), self.rows)

    def shape(self) -> str:
        """What each process knows of it."""
        return f"{self.array.dtype}{list(self.array.shape)} over several processes"


def _array(value: Any, rows: int | None = None) -> str | _Spread:
    """An array in words: dtype, shape and digest; a single number as itself."""
    if isinstance(value, jax.ShapeDtypeStruct):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, jax.Array):
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        if not value.is_fully_addressable:
            if not value.is_fully_replicated:
                return _Spread(value, rows)
            value = value.addressable_data(0)
    return _words(np.asarray(value), rows)


def _words(array: np.ndarray, rows: int | None) -> str:
    array = array[:rows] if array.ndim else array
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    outline = f"{dtype}{list(array.shape)}"
    if array.size == 1:
        value = str(array.astype(dtype).reshape(()))
        return f"{value}, {outline}" if array.ndim else value
    return f"{outline} sha256:{_digest(array, dtype)}"


def _digest(array: np.ndarray, dtype: Any) -> str:
    """Of the elements in C order, some blocks of rows at a time and several at once."""
    row = int(np.prod(array.shape[1:], dtype=np.int64)) * dtype.itemsize
    step = max(1, _BLOCK // max(row, 1))

    def one(start: int) -> bytes:
        block = np.ascontiguousarray(array[start : start + step], dtype)
        return hashlib.sha256(block.tobytes()).digest()

    starts = range(0, len(array), step)
    if len(starts) == 1:
        return hashlib.sha256(one(0)).hexdigest()[:16]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return hashlib.sha256(b"".join(pool.map(one, starts))).hexdigest()[:16]
