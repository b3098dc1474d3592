"""The structure of a pytree as JSON: taken apart into leaves, and put together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

import jax
from jax.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr

from worldloom.store._errors import Flaw, UnstorableError

Node = list[Any]
"""`["leaf", index]`, `["none"]`, `["list", [node, ...]]`, `["tuple", [node, ...]]`,
`["dict", [[key, node], ...]]` or `["object", [[name, node], ...]]`."""

_KEYS = (str, int, bool)


def take_apart(tree: Any) -> tuple[Node, list[tuple[str, Any]]]:
    """The structure of `tree`, and its leaves with their paths in the order of the structure."""
    leaves: list[tuple[str, Any]] = []

    def visit(node: Any, path: tuple[Any, ...]) -> Node:
        if node is None:
            return ["none"]
        if type(node) in (list, tuple):
            children = [visit(child, (*path, SequenceKey(i))) for i, child in enumerate(node)]
            return [type(node).__name__, children]
        if type(node) in (dict, OrderedDict, defaultdict):
            for key in node:
                if type(key) not in _KEYS:
                    raise UnstorableError(
                        f"The dictionary at {keystr(path) or 'the root'} has the key {key!r}. "
                        "Keys must be str, int or bool."
                    )
            return ["dict", [[k, visit(child, (*path, DictKey(k)))] for k, child in node.items()]]
        one_level, _ = jax.tree_util.tree_flatten_with_path(
            node, is_leaf=lambda child: child is not node
        )
        if len(one_level) == 1 and one_level[0][0] == ():
            leaves.append((keystr(path), node))
            return ["leaf", len(leaves) - 1]
        return ["object", [[_name(k), visit(child, (*path, *k))] for k, child in one_level]]

    try:
        structure = visit(tree, ())
    except RecursionError as error:
        raise UnstorableError("The tree is nested too deeply, or contains itself.") from error
    _refuse_twins([path for path, _ in leaves])
    return structure, leaves


def _name(key: tuple[Any, ...]) -> str | int:
    match key:
        case (GetAttrKey(name=str(name)),):
            return name
        case (DictKey(key=str() | int() as name),):
            return name
        case (SequenceKey(idx=index),) | (FlattenedIndexKey(key=index),):
            return index
        case _:
            return keystr(key)


def _refuse_twins(paths: list[str]) -> None:
    if len(set(paths)) == len(paths):
        return
    twin = next(path for i, path in enumerate(paths) if path in paths[:i])
    raise UnstorableError(f"Two leaves have the same path {twin}; they could not be told apart.")


def put_together(structure: Any, leaves: list[Any]) -> Any:
    """The plain tree that `structure` describes: an object becomes a dict of its parts.

    Every leaf must be used exactly once; anything else is a damaged manifest.
    """
    unused = set(range(len(leaves)))

    def visit(node: Any) -> Any:
        match node:
            case ["leaf", int(index)] if index in unused:
                unused.discard(index)
                return leaves[index]
            case ["none"]:
                return None
            case ["list", list(children)]:
                return [visit(child) for child in children]
            case ["tuple", list(children)]:
                return tuple(visit(child) for child in children)
            case ["dict" | "object", list(items)]:
                result: dict[Any, Any] = {}
                for item in items:
                    match item:
                        case [key, child] if type(key) in _KEYS and key not in result:
                            result[key] = visit(child)
                        case _:
                            raise Flaw("the manifest has a dictionary entry it cannot have")
                return result
        raise Flaw("the manifest has a tree node it cannot have")

    try:
        tree = visit(structure)
    except RecursionError as error:
        raise Flaw("the tree in the manifest is nested too deeply") from error
    if unused:
        raise Flaw("the manifest lists leaves that its tree does not use")
    return tree
