"""Every example in README.md, in docs/ and in docstrings runs; every command in them exists."""

from __future__ import annotations

import ast
import dataclasses
import linecache
import re
import shlex
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worldloom
from worldloom._systems import systems_with
from worldloom.cli import UsageError, main
from worldloom.cli._main import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCE = Path(worldloom.__file__).parents[1]
PACKAGES = ("worldloom", "jaxarc", "jaxtrace", "acbo")
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)```[ \t]*(?P<language>\w*)[^\n`]*\n(?P<body>.*?)^(?P=indent)```[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_NOT_RUN = re.compile(r"<!--\s*not run:\s*(?P<reason>((?!-->).)*?)\s*-->\s*\Z", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: its language, its code, its first line, and why it is not run."""

    language: str
    code: str
    line: int
    not_run: str | None = None


def blocks_of(text: str) -> Iterator[Block]:
    for match in _FENCE.finditer(text):
        skip = _NOT_RUN.search(text[: match.start()].rstrip())
        line = text.count("\n", 0, match.start("body")) + 1
        yield Block(
            match["language"],
            textwrap.dedent(match["body"]),
            line,
            skip["reason"] if skip else None,
        )


def documents() -> dict[str, list[Block]]:
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        str(file.relative_to(ROOT)): list(blocks_of(file.read_text(encoding="utf-8")))
        for file in files
    }


def docstrings() -> dict[str, list[tuple[str, list[Block]]]]:
    """For each room or package, the examples of each docstring in it."""
    found: dict[str, list[tuple[str, list[Block]]]] = {}
    for package in PACKAGES:
        for file in sorted((SOURCE / package).rglob("*.py")):
            relative = file.relative_to(SOURCE)
            room = "/".join(relative.parts[:2]) if len(relative.parts) > 2 else package
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(
                    node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
                ):
                    continue
                blocks = [
                    block
                    for block in blocks_of(ast.get_docstring(node) or "")
                    if block.language == "python" and block.not_run is None
                ]
                if blocks:
                    name = f"{relative}:{getattr(node, 'name', 'module')}"
                    found.setdefault(room, []).append((name, blocks))
    return found


DOCUMENTS = documents()
DOCSTRINGS = docstrings()
# Up to a minute of compilation each; what they show has quick tests of its own.
LONG = {
    "acbo/evaluation",
    "acbo/exact",
    "acbo/optimise",
    "acbo/surrogate",
    "acbo/training",
    "docs/acbo/training.md",
    "docs/arc/conformance.md",
    "docs/arc/training.md",
    "docs/arc/watching.md",
    "docs/trace/tracking.md",
    "jaxarc/data",
    "jaxarc/envs",
    "jaxarc/testing",
    "jaxarc/training",
    "jaxarc/utils",
}


def long_ones_apart(names: list[str]) -> list[Any]:
    return [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in names]


def execute(name: str, blocks: list[Block], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run blocks in one namespace, as a module of its own; errors point at the line of the text."""
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    for block in blocks:
        code = "\n" * (block.line - 1) + block.code
        place = f"<{name}, line {block.line}>"
        # Dataclass helpers look for the source of what they are given.
        monkeypatch.setitem(
            linecache.cache, place, (len(code), None, code.splitlines(keepends=True), place)
        )
        exec(compile(code, place, "exec", dont_inherit=True), module.__dict__)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "name",
    long_ones_apart(
        [name for name, blocks in DOCUMENTS.items() if any(b.language == "python" for b in blocks)]
    ),
)
def test_the_examples_of_a_page_run(name: str, monkeypatch: pytest.MonkeyPatch):
    runnable = [b for b in DOCUMENTS[name] if b.language == "python" and b.not_run is None]
    execute(name, runnable, monkeypatch)


@pytest.mark.parametrize("room", long_ones_apart(list(DOCSTRINGS)))
def test_the_examples_in_docstrings_run(room: str, monkeypatch: pytest.MonkeyPatch):
    for name, blocks in DOCSTRINGS[room]:
        execute(name, blocks, monkeypatch)


def test_a_block_that_is_not_run_says_why():
    silent = [
        f"{name}, line {block.line}"
        for name, blocks in DOCUMENTS.items()
        for block in blocks
        if block.not_run is not None and len(block.not_run.split()) < 3
    ]
    assert not silent, f"write the reason: <!-- not run: needs two machines --> in {silent}"


def commands_of(block: Block) -> Iterator[list[str]]:
    """The `worldloom ...` commands of a shell block, as words."""
    for line in block.code.replace("\\\n", " ").splitlines():
        line = line.strip().removeprefix("$ ")
        if line.startswith("worldloom"):
            words = shlex.split(re.split(r"[|>;&]", line)[0], comments=True)
            yield words[1:]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, blocks in DOCUMENTS.items()
        if any(list(commands_of(b)) for b in blocks if b.language in ("bash", "sh", "console"))
    ],
)
def test_the_commands_of_a_page_exist(name: str):
    for block in DOCUMENTS[name]:
        if block.language in ("bash", "sh", "console"):
            for words in commands_of(block):
                check_command(words)


def check_command(words: list[str]) -> None:
    """Fail where `worldloom WORDS` would be refused before it runs."""
    if "--help" in words or words == ["--version"]:
        assert main(words) == 0
        return
    commands, rest = COMMANDS, words
    found = systems_with("cli")
    if words[0] in found:
        commands, rest = {c.name: c for c in found[words[0]].load("cli").COMMANDS}, words[1:]
    assert rest[0] in commands, f"there is no command {' '.join(words)!r}"
    if "--config" in rest:  # the file is the reader's
        at = rest.index("--config")
        rest = rest[:at] + rest[at + 2 :]
    try:
        commands[rest[0]].parse(rest[1:], f"worldloom {words[0]}")
    except (SystemExit, UsageError) as error:
        pytest.fail(f"worldloom {' '.join(words)}: {error}")


SAMPLE = """
```python
x = 1
```

<!-- not run: needs a cluster of machines -->
```python
y = undefined
```

1. In a list:

    ```python
    z = x + 1
    ```

<!-- a remark -->
```bash
$ worldloom doctor --json > out.json  # a remark
worldloom launch \\
  -n 2 -- python x.py
ls
```
"""


def test_blocks_are_found_with_their_lines_and_reasons():
    found = list(blocks_of(SAMPLE))
    assert [(b.language, b.line, b.not_run) for b in found] == [
        ("python", 3, None),
        ("python", 8, "needs a cluster of machines"),
        ("python", 14, None),
        ("bash", 19, None),
    ]
    assert found[2].code == "z = x + 1\n"
    assert list(commands_of(found[3])) == [
        ["doctor", "--json"],
        ["launch", "-n", "2", "--", "python", "x.py"],
    ]


def test_blocks_share_a_namespace_and_errors_name_their_line(monkeypatch: pytest.MonkeyPatch):
    execute(
        "sample",
        [Block("python", "x = 1\n", 3), Block("python", "assert x == 1\n", 9)],
        monkeypatch,
    )
    with pytest.raises(NameError) as caught:
        execute("sample", [Block("python", "\nundefined\n", 9)], monkeypatch)
    place = caught.traceback[-1]
    assert str(place.path) == "<sample, line 9>"
    assert place.lineno + 1 == 10


@pytest.mark.parametrize(
    "words", [["doctr"], ["doctor", "--jsn"], ["launch", "-n", "two", "--", "ls"], ["bench", "a=1"]]
)
def test_a_command_that_does_not_exist_is_found(words: list[str]):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_command(words)


def test_there_is_something_to_test():
    assert any(DOCUMENTS[name] for name in DOCUMENTS if name.startswith("docs"))
    assert len(DOCSTRINGS) > 3
