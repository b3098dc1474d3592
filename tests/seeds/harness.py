"""Runs the code of the seeds, the documents that the project was asked to implement.

A seed lies in `tests/seeds/seeds`, exactly as it was given. Its fenced Python blocks run in
order, in one namespace, one test a block. To add a seed, copy it there and write a
`tests/seeds/test_NNN.py`:

```
SEED = Seed("003", package="jaxtrace", prelude="import jax", smaller={5: [("7500", "75")]},
            defects={7: Defect("why it cannot run", corrections=[("wrong", "right")])})

@pytest.mark.parametrize("number", SEED.numbers)
def test_the_block_runs(number): SEED.run(number)

@pytest.mark.parametrize("number", SEED.numbers)
def test_the_block_runs_on_our_helpers(number): SEED.run(number, ours=True)

@pytest.mark.parametrize("number", SEED.defects)
def test_the_defect_is_real(number): SEED.check_defect(number)
```

- The prelude holds what the seed uses and never defines. Blocks are numbered from 1.
- With `ours=True`, functions and classes that a block defines and `package` exports too are taken
  from `package`: the seed's calls then run our code.
- `smaller` replaces text to make a long block short. It changes sizes only.
- A defect is a block that cannot run whatever the package does. It is shown to raise what
  `raises` says (nothing, where it runs but does harm), and its corrected twin runs in its place.
- A block that catches its own errors and prints a complaint fails too.

Tests may run in any order, and some of them only: a block first runs those before it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import pytest

FOLDER = Path(__file__).parent / "seeds"
_FENCE = re.compile(r"^```python\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE)
# A cross as a seed prints it, also where its bytes were once read as another alphabet.
_COMPLAINTS = ("\N{CROSS MARK}", "\u201a\u00f9\u00e5", "Failed (")

Replacements = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Defect:
    """Why a block cannot run, and what to replace in it so that it can."""

    reason: str
    corrections: Replacements
    raises: type[Exception] | None = None
    match: str | None = None


@dataclass(frozen=True)
class Block:
    """One fenced block of a seed."""

    number: int
    line: int
    code: str


@dataclass
class Seed:
    """A seed, and how far its blocks have run in this process."""

    name: str
    package: str
    prelude: str
    smaller: Mapping[int, Replacements] = field(default_factory=dict)
    defects: Mapping[int, Defect] = field(default_factory=dict)
    _runs: dict[bool, Run] = field(default_factory=dict)

    @cached_property
    def blocks(self) -> dict[int, Block]:
        (path,) = FOLDER.glob(f"{self.name}_*")
        text = path.read_text(encoding="utf-8")
        return {
            number: Block(number, text.count("\n", 0, match.start("code")) + 1, match["code"])
            for number, match in enumerate(_FENCE.finditer(text), start=1)
        }

    @property
    def numbers(self) -> list[int]:
        return list(self.blocks)

    def run(self, number: int, *, ours: bool = False) -> Any:
        """Run the block and those before it that have not run; give the namespace."""
        if ours not in self._runs:
            self._runs[ours] = Run(self, ours)
        return self._runs[ours].upto(number)

    def check_defect(self, number: int) -> None:
        """Run a defective block as it stands: it fails as the table says."""
        defect = self.defects[number]
        namespace = dict(self.run(number - 1)) if number > 1 else Run(self, False).namespace
        code = replaced(self.blocks[number].code, self.smaller.get(number, ()))
        if defect.raises is None:
            execute(code, f"<seed {self.name}, block {number}>", namespace)
        else:
            with pytest.raises(defect.raises, match=defect.match):
                execute(code, f"<seed {self.name}, block {number}>", namespace)


class Run:
    """The blocks of a seed on their way, in one namespace."""

    def __init__(self, seed: Seed, ours: bool):
        self.seed = seed
        self.ours = ours
        self.namespace: dict[str, Any] = {"__name__": "seed"}
        self._failed: dict[int, Exception] = {}
        self._next = 1
        execute(seed.prelude, f"<prelude of seed {seed.name}>", self.namespace)

    def upto(self, number: int) -> dict[str, Any]:
        while self._next <= number:
            block = self.seed.blocks[self._next]
            self._next += 1
            try:
                self._run(block)
            except Exception as error:
                self._failed[block.number] = error
        if number in self._failed:
            raise self._failed[number]
        return self.namespace

    def _run(self, block: Block) -> None:
        code = replaced(block.code, self.seed.smaller.get(block.number, ()))
        if defect := self.seed.defects.get(block.number):
            code = replaced(code, defect.corrections)
        if self.ours:
            code = self._on_our_helpers(code)
        # Padded, so that an error points at the line of the seed.
        code = "\n" * (block.line - 1) + code
        execute(code, f"<seed {self.seed.name}, block {block.number}>", self.namespace)

    def _on_our_helpers(self, code: str) -> str:
        """Blank the definitions that the package has too, and bind its own instead."""
        package = importlib.import_module(self.seed.package)
        lines = code.split("\n")
        for node in ast.parse(code).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            if node.name in package.__all__:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                lines[first - 1 : node.end_lineno] = [""] * (node.end_lineno - first + 1)
                self.namespace[node.name] = getattr(package, node.name)
        return "\n".join(lines)


def replaced(code: str, replacements: Replacements) -> str:
    for old, new in replacements:
        assert old in code, f"the block does not hold {old!r}"
        code = code.replace(old, new)
    return code


@contextlib.contextmanager
def as_a_user_has_it() -> Iterator[None]:
    """JAX without the strictness of the tests, an empty folder, the environment put back after."""
    here, environment = Path.cwd(), dict(os.environ)
    with (
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        tempfile.TemporaryDirectory() as folder,
    ):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)


def execute(code: str, name: str, namespace: dict[str, Any]) -> str:
    """Run code, and give what it printed; a complaint of its own is an error."""
    printed = io.StringIO()
    with as_a_user_has_it(), contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec", dont_inherit=True), namespace)
    found = [
        line for line in printed.getvalue().splitlines() if any(c in line for c in _COMPLAINTS)
    ]
    assert not found, f"{name} complains: {found}"
    return printed.getvalue()
