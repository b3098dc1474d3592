"""Do the tests notice? Change one thing in the sources, run the quick tests, again and again.

    python tools/mutate.py src/acbo/optimise [--number 20] [--seed 0] [--tests tests/acbo/test_x.py]

A change is an operator, a comparison, a constant, a sign, a dropped `not`, or swapped branches; not
in annotations, docstrings, messages or decorators. All happens in a copy of the project. A warm
process with JAX imported forks for each change. Tests that ran the changed line before go first.
What no test noticed is listed as `file:line  old -> new`. Python 3.12 or newer, Linux or macOS.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "docs", "examples", "benchmarks", "tools", ".ci")
PATIENCE = 3.0  # times the seconds of the unchanged tests
MOST_SECONDS = 600.0

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Mod: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
# Words for people, and calls of which no number matters to a result.
SILENT_NAMES = {"__repr__", "__str__", "__all__", "__slots__"}
SILENT_CALLS = {"warn", "warning", "info", "debug", "print", "isinstance", "issubclass", "TypeVar"}


@dataclasses.dataclass(frozen=True)
class Change:
    """One place of a file, and what to write there."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {_short(self.old)} -> {_short(self.new)}"


def changes_of(path: Path, root: Path) -> list[Change]:
    """All single changes of a file, in reading order."""
    text = path.read_text()
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = []
    for node, new in _replacements(ast.parse(text)):
        start = lines[node.lineno - 1] + node.col_offset
        end = lines[node.end_lineno - 1] + node.end_col_offset
        old = text.encode()[start:end].decode()
        place = str(path.relative_to(root))
        found.append(Change(place, node.lineno, start, end, old, f"({ast.unparse(new)})"))
    return found


def _replacements(node: Any) -> Iterator[tuple[Any, ast.expr]]:
    """Expressions below `node`, each with another to put in its place."""
    for child in _children(node):
        yield from ((child, new) for new in _others(child))
        yield from _replacements(child)
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_not(node.test):
        yield node.test, ast.UnaryOp(ast.Not(), node.test)


def _children(node: Any) -> Iterator[Any]:
    """What is below `node` and computes: no annotations, words or decorators."""
    skipped = {
        ast.FunctionDef: {"returns", "decorator_list", "type_params"},
        ast.AsyncFunctionDef: {"returns", "decorator_list", "type_params"},
        ast.ClassDef: {"decorator_list", "bases", "keywords"},
        ast.arg: {"annotation"},
        ast.AnnAssign: {"annotation"},
    }.get(type(node), set())
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in skipped and not _is_silent(child):
                yield child


def _is_silent(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name in SILENT_NAMES
    if isinstance(node, ast.Assign):
        return any(isinstance(goal, ast.Name) and goal.id in SILENT_NAMES for goal in node.targets)
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name in SILENT_CALLS or name.endswith("Error")
    return isinstance(node, ast.keyword) and node.arg in {"stacklevel", "strict", "help"}


def _others(node: Any) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right) if type(op) in COMPARISONS:
            yield ast.Compare(left, [COMPARISONS[type(op)]()], right)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            if not any(isinstance(side, ast.JoinedStr) or _is_text(side) for side in (left, right)):
                yield ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)) if abs(value) < 1e300:
            yield ast.Constant(value * 2 or 1.0)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _short(text: str) -> str:
    return " ".join(text.split())


def tests_of(room: Path) -> list[str]:
    """The test folder or files of a folder, or file, of sources."""
    folder = room if room.is_dir() else room.parent
    inner = folder.relative_to(ROOT / "src")
    beside = ROOT / "tests" / inner
    if beside.is_dir():
        return [str(beside.relative_to(ROOT))]
    shorter = ROOT / "tests" / inner.parts[0] / inner.name
    files = [*beside.parent.glob(f"test_{inner.name}*.py"), shorter]
    # Or those that import the room by its name.
    name = ".".join(inner.parts)
    found = [path for path in files if path.exists()] or [
        path for path in (ROOT / "tests").rglob("*.py") if f"from {name} import" in path.read_text()
    ]
    if not found:
        sys.exit(f"no tests beside {room}: name them with --tests")
    return sorted(str(path.relative_to(ROOT)) for path in found)


class Watch:
    """A pytest plugin: which test ran which lines, in which time. Likely tests go first."""

    def __init__(self, sources: str, first: set[str], seconds: dict[str, float]) -> None:
        self.sources, self.first, self.seconds = sources, first, seconds
        self.lines: dict[str, set[str]] = defaultdict(set)
        self.took: dict[str, float] = defaultdict(float)
        self.noticed_by = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Tests that ran the line first, the quick ones of them before the slow."""
        items.sort(key=lambda item: (item.nodeid not in self.first, self._time(item.nodeid)))

    def _time(self, test: str) -> float:
        return self.seconds.get(test, 0.0) if test in self.first else 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Note the lines of our sources that a test runs."""
        if self.seconds:
            return (yield)
        events, start = sys.monitoring, time.monotonic()

        def line(code: Any, number: int) -> Any:
            if code.co_filename.startswith(self.sources):
                self.lines[f"{code.co_filename[len(self.sources) :]}:{number}"].add(item.nodeid)
            return events.DISABLE

        events.use_tool_id(events.COVERAGE_ID, "mutate")
        events.register_callback(events.COVERAGE_ID, events.events.LINE, line)
        events.set_events(events.COVERAGE_ID, events.events.LINE)
        events.restart_events()
        try:
            return (yield)
        finally:
            events.set_events(events.COVERAGE_ID, 0)
            events.free_tool_id(events.COVERAGE_ID)
            self.took[item.nodeid] = time.monotonic() - start

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Which test noticed."""
        if report.failed:
            self.noticed_by = report.nodeid


def run_tests(
    copy: Path, tests: list[str], limit: float, first: set[str], seconds: dict[str, float]
) -> dict[str, Any]:
    """The tests in a process of their own: its exit code, and what `Watch` saw."""
    answer, log = copy / "answer.json", copy / "log.txt"
    answer.unlink(missing_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            output = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.chdir(copy)
            sys.path.insert(0, str(copy / "src"))
            os.environ["PYTHONPATH"] = str(copy / "src")
            watch = Watch(f"{copy}/", first, seconds)
            words = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--no-header", *tests]
            code = pytest.main(words, plugins=[watch])
            lines = {place: sorted(names) for place, names in watch.lines.items()}
            found = {"code": int(code), "by": watch.noticed_by, "took": watch.took, "lines": lines}
            answer.write_text(json.dumps(found))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    end = time.monotonic() + limit
    late = True
    while time.monotonic() < end and late:
        late = os.waitpid(child, os.WNOHANG) == (0, 0)
        time.sleep(0.05 if late else 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # and whatever its tests left behind
    if late:
        os.waitpid(child, 0)
        return {"code": 1, "by": f"the time limit of {limit:.0f} s"}
    return json.loads(answer.read_text()) if answer.exists() else {"code": 1, "by": "a crash"}


def main() -> None:
    """Parse the command line, change, test, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("room", type=Path, help="a folder, or a file, of sources")
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="*", default=[], help="tests beside those of the room")
    parser.add_argument("--only", nargs="*", default=[], help="only changes that hold this text")
    given = parser.parse_args()
    if sys.version_info < (3, 12):
        sys.exit("tools/mutate.py watches lines with sys.monitoring: it needs Python 3.12 or newer")
    room = (ROOT / given.room).resolve()
    files = sorted(room.glob("*.py")) if room.is_dir() else [room]
    everything = [change for path in files for change in changes_of(path, ROOT)]
    everything = [c for c in everything if all(part in str(c) for part in given.only)]
    random.Random(given.seed).shuffle(everything)
    chosen = everything[: given.number]
    tests = list(dict.fromkeys([*tests_of(room), *given.tests]))

    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copy = Path(folder)
        for name in COPIED:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy(path, copy / path.name)
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        import jax.experimental.pallas  # noqa: F401
        import optax  # noqa: F401
        import scipy.stats  # noqa: F401

        start = time.monotonic()
        seen = run_tests(copy, tests, MOST_SECONDS, set(), {})
        if seen["code"] != 0:
            print((copy / "log.txt").read_text()[-3000:])
            sys.exit(f"the tests of {given.room} fail without a change: {seen['by']}")
        # The second time compiled programs are kept; the limit is generous all the same.
        limit = min(PATIENCE * (time.monotonic() - start) + 20, MOST_SECONDS)
        print(f"{given.room}: {len(everything)} places, {len(seen['took'])} tests", flush=True)

        survivors = []
        for change in chosen:
            path = copy / change.path
            text = path.read_bytes()
            path.write_bytes(text[: change.start] + change.new.encode() + text[change.end :])
            likely = set(seen["lines"].get(f"{change.path}:{change.line}", []))
            result = run_tests(copy, tests, limit, likely, seen["took"])
            path.write_bytes(text)
            if result["by"].startswith("the time limit"):
                shutil.rmtree(copy / ".pytest_cache", ignore_errors=True)  # half-written programs
            word = "survived" if result["code"] == 0 else "noticed "
            print(f"{word}  {change}   {result['by']}", flush=True)
            survivors += [change] if result["code"] == 0 else []

    noticed = len(chosen) - len(survivors)
    print(f"\n{given.room}: {noticed} of {len(chosen)} changes noticed")
    for change in survivors:
        print(f"  {change}")


if __name__ == "__main__":
    main()
