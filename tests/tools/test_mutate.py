"""`make mutate`: single changes, none of them in words, and what it says of a room."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = '''
"""A docstring with 1 < 2."""

from typing import Literal

__all__ = ["f"]
WIDTH: int = 3


def f(x: Literal[1], flag=True):
    """Adds 1."""
    if x < WIDTH and not flag:
        raise ValueError(f"{x + 1} is too few: {-2}")
    return x - 1 if flag else -x


class C:
    def __repr__(self):
        return "C" * 2
'''


@pytest.fixture(scope="module")
def mutate() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "tools" / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutate"]


def test_every_change_is_one_place_that_computes(mutate, tmp_path):
    path = tmp_path / "it.py"
    path.write_text(SOURCE)
    changes = mutate.changes_of(path, tmp_path)
    found = [(change.line, change.old, change.new) for change in changes]
    assert sorted(found) == [
        (7, "3", "(4)"),
        (10, "True", "(False)"),
        (12, "not flag", "(flag)"),
        (12, "x < WIDTH", "(x <= WIDTH)"),
        (12, "x < WIDTH and not flag", "(not (x < WIDTH and (not flag)))"),
        (12, "x < WIDTH and not flag", "(x < WIDTH or not flag)"),
        (14, "-x", "(x)"),
        (14, "1", "(2)"),
        (14, "flag", "(not flag)"),
        (14, "x - 1", "(x + 1)"),
        (14, "x - 1 if flag else -x", "(-x if flag else x - 1)"),
    ]
    for change in changes:
        text = SOURCE.encode()
        changed = (text[: change.start] + change.new.encode() + text[change.end :]).decode()
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE))
    assert str(changes[0]) == "it.py:7  3 -> (4)"


def test_every_room_has_its_tests(mutate):
    rooms = {path.parent for path in (ROOT / "src").rglob("*.py")}
    rooms -= {ROOT / "src" / "jaxarc" / "conf"}
    for room in rooms:
        for tests in mutate.tests_of(room):
            assert (ROOT / tests).exists()
