"""Why was this traced again? The difference between two calls, in words."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.tree_util as jtu

# The newest reasons of all compiled functions, numbered, for error messages elsewhere.
_recent: collections.deque[tuple[int, str]] = collections.deque(maxlen=64)
_numbers = itertools.count()


def reason_number() -> int:
    """A number smaller than that of every reason still to come."""
    return next(_numbers)


def reasons_since(number: int) -> list[str]:
    """What was recorded after `number` was handed out, oldest first."""
    return [reason for n, reason in _recent if n > number]


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a call looks like to the compiler: one line for each leaf, by path."""

    leaves: Mapping[str, str]
    static: Mapping[str, Hashable]

    @staticmethod
    def of(arguments: Mapping[str, Any], static: Sequence[str]) -> Signature:
        """Describe named arguments; those named in `static` by value, others by leaf."""
        leaves: dict[str, str] = {}
        for name, value in arguments.items():
            if name not in static:
                for path, leaf in jtu.tree_flatten_with_path(value)[0]:
                    leaves[name + jtu.keystr(path)] = _describe(leaf)
        return Signature(leaves, {n: arguments[n] for n in static if n in arguments})

    def difference(self, other: Signature) -> list[str]:
        """What changed from `self` to `other`, one sentence a change."""
        changes = []
        for name in other.static:
            old, new = self.static.get(name), other.static[name]
            if old != new:
                changes.append(f"static argument {name!r} changed: {_changed_value(old, new)}")
        for path, new in other.leaves.items():
            old = self.leaves.get(path)
            if old is None:
                changes.append(f"{path} is new ({new})")
            elif old != new:
                changes.append(f"{path}: {old} -> {new}{_hint(old, new)}")
        changes += [f"{path} is gone" for path in self.leaves if path not in other.leaves]
        return changes


def explain(name: str, seen: Sequence[Signature], new: Signature) -> str:
    """One sentence on why `new` had to be compiled, given what was `seen` before."""
    if not seen:
        reason = f"{name}: first call"
    else:
        changes = min((old.difference(new) for old in seen), key=len)
        if changes:
            reason = f"{name}: compiled again because " + "; ".join(changes)
        else:
            reason = f"{name}: compiled again for equal shapes (placement or JAX options changed)"
    _recent.append((next(_numbers), reason))
    return reason


def _describe(leaf: Any) -> str:
    if not eqx.is_array_like(leaf):
        return getattr(leaf, "__name__", repr(leaf))
    aval = jax.typeof(leaf)
    weak = " weakly typed" if getattr(aval, "weak_type", False) else ""
    return f"{aval.str_short(short_dtypes=True)}{weak}"


def _hint(old: str, new: str) -> str:
    if old.removesuffix(" weakly typed") == new.removesuffix(" weakly typed"):
        return " (a Python number and an array of the same dtype are two programs: pass arrays)"
    return ""


def _changed_value(old: Any, new: Any) -> str:
    """Name the fields that differ where both are dataclasses, the values otherwise."""
    if dataclasses.is_dataclass(old) and type(old) is type(new):
        fields = [f.name for f in dataclasses.fields(old)]
        pairs = [(f, getattr(old, f), getattr(new, f)) for f in fields]
        return ", ".join(f".{f} {a!r} -> {b!r}" for f, a, b in pairs if a != b)
    return f"{old!r} -> {new!r}"
