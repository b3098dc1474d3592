"""The table of contents of a file: written from a tree, read back with distrust."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, get_args

from worldloom.store._errors import Flaw, UnstorableError
from worldloom.store._frames import BLOCK, LARGEST_FRAME, Frame
from worldloom.store._leaves import DTYPES, Kind, Leaf, decode_value, encode_value

MAX_RANK = 64
MAX_ENTRIES = 2_500_000
"""Objects, lists and items of them. JSON takes a hundred bytes for one, and a microsecond."""


@dataclass(frozen=True)
class Part:
    """A box of the elements of one leaf, and the frames that hold it.

    - `leaf`: index of the leaf.
    - `start`, `shape`: first index and extent of the box along each axis.
    - `frames`: its bytes in C order, `BLOCK` of them a frame.
    """

    leaf: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    frames: tuple[Frame, ...]

    @property
    def stored(self) -> int:
        """Bytes in the file."""
        return sum(frame.size for frame in self.frames)


@dataclass(frozen=True)
class Origin:
    """Which piece of which snapshot a file is."""

    step: int
    process: int
    processes: int


@dataclass(frozen=True)
class Manifest:
    """Structure, leaves and parts of one file; the parts lie in the file in this order."""

    tree: Any
    leaves: tuple[Leaf, ...]
    parts: tuple[Part, ...]
    meta: dict[str, Any]
    origin: Origin | None = None


def to_json(manifest: Manifest) -> bytes:
    """The manifest as strict JSON in ASCII."""
    document = {
        "tree": manifest.tree,
        "leaves": [_leaf_to_json(leaf) for leaf in manifest.leaves],
        "parts": [
            {
                "leaf": part.leaf,
                "start": part.start,
                "shape": part.shape,
                "frames": [[frame.size, frame.sha256] for frame in part.frames],
            }
            for part in manifest.parts
        ],
        "meta": manifest.meta,
        "snapshot": manifest.origin and asdict(manifest.origin),
    }
    try:
        text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")
    except RecursionError as error:
        raise UnstorableError("The tree or the meta mapping is nested too deeply.") from error
    except ValueError as error:  # an integer with more digits than Python converts
        raise UnstorableError(f"A value cannot be written to the manifest: {error}.") from error
    if (count := _entries(text)) > MAX_ENTRIES:
        raise UnstorableError(
            f"The manifest would have {count} entries; at most {MAX_ENTRIES} are allowed. Stack "
            "small leaves into larger arrays, or keep long lists out of the tree and meta."
        )
    return text


def _entries(text: bytes) -> int:
    """At least how many objects JSON makes of a text. Marks inside of strings count, too."""
    return sum(text.count(mark) for mark in (b"[", b"{", b","))


def structure_of(manifest: Manifest) -> bytes:
    """Tree, leaves and plain values, in a form that can be compared."""
    return to_json(Manifest(manifest.tree, manifest.leaves, (), {}))


def _leaf_to_json(leaf: Leaf) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": leaf.path, "kind": leaf.kind}
    if leaf.has_data:
        entry |= {"dtype": leaf.dtype, "shape": leaf.shape}
    if leaf.kind == "value":
        entry["value"] = encode_value(leaf.value)
    if leaf.note:
        entry["note"] = leaf.note
    return entry


def checked_meta(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """`meta` as JSON will give it back, or an error that names the entry JSON would change."""

    def visit(value: Any, path: str) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if isinstance(value, list | tuple):
            return [visit(item, f"{path}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, Mapping) and all(type(key) is str for key in value):
            return {key: visit(item, f"{path}[{key!r}]") for key, item in value.items()}
        raise UnstorableError(
            f"{path} is {value!r}. Entries must be None, bool, int, finite float, str, or lists "
            "and str-keyed mappings of those. Put arrays and other numbers into the tree."
        )

    try:
        return visit(meta or {}, "meta")
    except RecursionError as error:
        raise UnstorableError("meta is nested too deeply, or contains itself.") from error


def from_json(text: bytes) -> Manifest:
    """Parse and check a manifest whose bytes are sound but whose author may not be.

    After this, every index is in range, every box lies inside its leaf, every number of frames
    fits its box, and no size is negative. Nothing has been allocated for the data.
    """
    if (count := _entries(text)) > MAX_ENTRIES:
        raise Flaw(f"its manifest has {count} entries, more than {MAX_ENTRIES}")
    try:
        document = json.loads(
            text.decode("ascii"), object_pairs_hook=_no_twins, parse_constant=_no_constants
        )
    except (ValueError, RecursionError) as error:
        raise Flaw(f"the manifest is not valid JSON ({error})") from error
    match document:
        case {
            "tree": tree,
            "leaves": list(leaf_entries),
            "parts": list(part_entries),
            "meta": dict(meta),
            "snapshot": origin,
        }:
            try:
                leaves = tuple(_leaf(entry) for entry in leaf_entries)
            except RecursionError as error:
                raise Flaw("the manifest has a value that is nested too deeply") from error
            if len({leaf.path for leaf in leaves}) != len(leaves):
                raise Flaw("the manifest lists two leaves of the same path")
            parts = tuple(_part(entry, leaves) for entry in part_entries)
            return Manifest(tree, leaves, parts, meta, _origin(origin))
    raise Flaw("the manifest lacks an entry it must have")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object with the same name twice")
    return result


def _no_constants(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise Flaw(f"the manifest has {value!r} where a size was expected")
    return value


def _sizes(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or len(values) > MAX_RANK:
        raise Flaw("the manifest has a shape that no array has")
    return tuple(_size(value) for value in values)


def _leaf(entry: Any) -> Leaf:
    match entry:
        case {"path": str(path), "kind": "value", "value": code}:
            return Leaf(path, "value", value=decode_value(code))
        case {"path": str(path), "kind": "static", "note": str(note)}:
            return Leaf(path, "static", note=note)
        case {"path": str(path), "kind": "key", "dtype": str(dtype), "shape": s, "note": str(note)}:
            return Leaf(path, "key", _dtype(dtype), _sizes(s), note=note)
        case {
            "path": str(path),
            "kind": "array" | "scalar" as kind,
            "dtype": str(dtype),
            "shape": s,
        }:
            return Leaf(path, kind, _dtype(dtype), _sizes(s))
    raise Flaw(f"the manifest has a leaf that is none of {', '.join(get_args(Kind))}")


def _dtype(name: str) -> str:
    if name not in DTYPES:
        raise Flaw(f"the manifest has a leaf of the unknown dtype {name!r}")
    return name


def _part(entry: Any, leaves: tuple[Leaf, ...]) -> Part:
    match entry:
        case {"leaf": int(index), "start": start, "shape": shape, "frames": list(frames)}:
            part = Part(index, _sizes(start), _sizes(shape), tuple(_frame(f) for f in frames))
        case _:
            raise Flaw("the manifest has a part that lacks an entry")
    if not 0 <= part.leaf < len(leaves) or not leaves[part.leaf].has_data:
        raise Flaw("the manifest has a part of a leaf that does not exist")
    leaf = leaves[part.leaf]
    inside = len(part.start) == len(part.shape) == len(leaf.shape) and all(
        first + extent <= whole
        for first, extent, whole in zip(part.start, part.shape, leaf.shape, strict=True)
    )
    if not inside:
        raise Flaw(f"leaf {leaf.path} has a part outside of its shape {leaf.shape}")
    nbytes = math.prod(part.shape) * DTYPES[leaf.dtype].itemsize
    if nbytes == 0 or len(part.frames) != -(-nbytes // BLOCK):
        raise Flaw(f"leaf {leaf.path} has a part of {nbytes} bytes in {len(part.frames)} frames")
    return part


def _frame(entry: Any) -> Frame:
    match entry:
        case [int(size), str(sha256)] if 0 < size <= LARGEST_FRAME and len(sha256) == 64:
            return Frame(size, sha256)
    raise Flaw("the manifest has a frame that no writer makes")


def _origin(entry: Any) -> Origin | None:
    match entry:
        case None:
            return None
        case {"step": step, "process": process, "processes": processes}:
            return Origin(_size(step), _size(process), _size(processes))
    raise Flaw("the manifest names a snapshot in an unknown form")
