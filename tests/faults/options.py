"""Which options there are, and where the source reads them: by reflection and by syntax trees.

An option is a field of a public dataclass or module that has defaults, or that a command takes. It
is read where an attribute of its name is loaded, outside of the checks of its own class, from
something that may be an object of the class:

- what has an annotation (an argument, a field of another class, a variable that was made by
  calling a class) must have one that names the class or a relative of it;
- what has none counts in modules that name the class, or one that holds it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx

PACKAGES = ("worldloom", "jaxarc", "jaxtrace", "acbo")
CHECKS = ("__post_init__", "__check_init__", "__init__", "__repr__", "__eq__", "__hash__")


class Option(NamedTuple):
    """A field of a class."""

    owner: type
    field: str

    def __str__(self) -> str:
        return f"{self.owner.__module__}.{self.owner.__qualname__}.{self.field}"


@functools.cache
def modules() -> dict[str, Any]:
    found = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        found[package] = root
        for info in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not info.name.endswith("__main__"):
                found[info.name] = importlib.import_module(info.name)
    return found


@functools.cache
def classes() -> tuple[type, ...]:
    """Every dataclass and module of the four packages."""
    return tuple(
        value
        for name, module in modules().items()
        for value in vars(module).values()
        if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == name
    )


def commands() -> Iterator[type]:
    """The options of every command."""
    from worldloom.cli import Command

    for module in modules().values():
        for value in vars(module).values():
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, Command):
                    yield one.config


def options() -> Iterator[Option]:
    """Every field of every class that holds options."""
    of_commands = set(commands())
    for owner in classes():
        fields = dataclasses.fields(owner)
        has_default = any(
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
            for field in fields
        )
        public = not owner.__name__.startswith("_") or not issubclass(owner, eqx.Module)
        if owner in of_commands or (public and has_default):
            for field in fields:
                yield Option(owner, field.name)


class Read(NamedTuple):
    """One load of an attribute."""

    module: str
    line: int
    within: tuple[str, ...]
    """The class and the functions around it."""
    types: frozenset[str] | None
    """The names in the annotation of what it is loaded from; `None` without one."""


def names_in(node: ast.AST | None) -> frozenset[str]:
    found = set()
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            found |= set(part.value.replace("|", " ").replace("[", " ").replace("]", " ").split())
    return frozenset(found)


class Reader(ast.NodeVisitor):
    """Collects the attributes that a module loads, with what is known of their owners."""

    def __init__(self, module: str, fields: dict[str, frozenset[str]]):
        self.module, self.fields = module, fields
        self.within: list[str] = []
        self.owners: list[str] = []
        self.scopes: list[dict[str, frozenset[str]]] = [{}]
        self.reads: dict[str, list[Read]] = {}

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.within.append(node.name)
        self.owners.append(node.name)
        self.generic_visit(node)
        self.owners.pop()
        self.within.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        scope = {}
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if one.annotation is not None:
                scope[one.arg] = names_in(one.annotation)
            elif one.arg == "self" and self.owners:
                scope["self"] = frozenset([self.owners[-1]])
        self.within.append(node.name)
        self.scopes.append(scope)
        self.generic_visit(node)
        self.scopes.pop()
        self.within.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        if len(node.targets) == 1:
            self._bind(node.targets[0], node.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts, strict=False):
                self._bind(one, other)
        elif isinstance(target, ast.Name):
            if (types := self.types_of(value)) is not None:
                self.scopes[-1][target.id] = types
            else:
                self.scopes[-1].pop(target.id, None)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            read = Read(self.module, node.lineno, tuple(self.within), self.types_of(node.value))
            self.reads.setdefault(node.attr, []).append(read)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                read = Read(
                    self.module, node.lineno, tuple(self.within), self.types_of(node.args[0])
                )
                self.reads.setdefault(name.value, []).append(read)
        self.generic_visit(node)

    def types_of(self, node: ast.expr) -> frozenset[str] | None:
        if isinstance(node, ast.Name):
            for scope in reversed(self.scopes):
                if node.id in scope:
                    return scope[node.id]
            return None
        if isinstance(node, ast.Attribute):
            return self.fields.get(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            return frozenset([name]) if name[:1].isupper() else _returns().get(name)
        return None


@functools.cache
def _trees() -> dict[str, ast.Module]:
    return {
        name: ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        for name, module in modules().items()
        if module.__file__ and module.__file__.endswith(".py")
    }


@functools.cache
def _returns() -> dict[str, frozenset[str]]:
    """Name of a function -> the classes of ours in what it returns."""
    found: dict[str, set[str]] = {}
    for tree in _trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                found.setdefault(node.name, set()).update(names_in(node.returns) & _ours())
    return {name: frozenset(types) for name, types in found.items() if types}


@functools.cache
def _ours() -> frozenset[str]:
    return frozenset(owner.__name__ for owner in classes())


@functools.cache
def _aliases() -> dict[str, frozenset[str]]:
    """Name of a type such as `Save = Every | At` -> the classes of ours in it."""
    return {
        target.id: names_in(node.value) & _ours()
        for tree in _trees().values()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.BinOp)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and names_in(node.value) & _ours()
    }


def _expanded(names: frozenset[str]) -> frozenset[str]:
    return names.union(*(_aliases()[name] for name in names if name in _aliases()))


@functools.cache
def _field_types() -> dict[str, frozenset[str]]:
    """Name of a field -> the names in its annotations, where all of them name classes of ours."""
    found: dict[str, set[str]] = {}
    vague: set[str] = set()
    for owner in classes():
        for field in dataclasses.fields(owner):
            text = field.type if isinstance(field.type, str) else str(field.type)
            try:
                names = names_in(ast.parse(text, mode="eval"))
            except SyntaxError:
                names = frozenset()
            if _expanded(names) & _ours():
                found.setdefault(field.name, set()).update(names)
            else:
                vague.add(field.name)
    return {name: frozenset(types) for name, types in found.items() if name not in vague}


@functools.cache
def reads() -> dict[str, list[Read]]:
    """Name of an attribute -> where it is loaded."""
    found: dict[str, list[Read]] = {}
    for name, tree in _trees().items():
        reader = Reader(name, _field_types())
        reader.visit(tree)
        for attribute, places in reader.reads.items():
            found.setdefault(attribute, []).extend(places)
    return found


@functools.cache
def _named(module: str) -> frozenset[str]:
    tree = _trees()[module]
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
    }
    made = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    spelled = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return frozenset(imported | made | spelled)


@functools.cache
def relatives(owner: type) -> frozenset[str]:
    """The class, those above and below it."""
    above = {one.__name__ for one in owner.__mro__ if one not in (object, eqx.Module)}
    return frozenset(above | {one.__name__ for one in classes() if issubclass(one, owner)})


@functools.cache
def holders(owner: type) -> frozenset[str]:
    """The class, its relatives, and the classes that hold one of those, at any depth."""
    known = set(relatives(owner))
    while True:
        more = {
            one.__name__
            for one in classes()
            for field in dataclasses.fields(one)
            if known & names_in(_parsed(str(field.type)))
        }
        more |= {name for name, types in _aliases().items() if known & types}
        more |= {name for name, types in _returns().items() if known & types}
        if more <= known:
            return frozenset(known)
        known |= more


@functools.cache
def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text, mode="eval")
    except SyntaxError:
        return None


def read_of(option: Option) -> Read | None:
    """A place that reads the option, or `None`."""
    family = relatives(option.owner)
    for read in reads().get(option.field, ()):
        in_own_class = bool(family & set(read.within))
        if in_own_class and set(CHECKS) & set(read.within):
            continue
        types = _expanded(read.types or frozenset())
        if types & _ours():
            if family & types:
                return read
        elif in_own_class or holders(option.owner) & _named(read.module):
            return read
    return None
