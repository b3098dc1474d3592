"""The rules of the house that a reader of the tree relies on."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
from collections.abc import Container, Iterator
from pathlib import Path

import pytest

import worldloom

ROOT = Path(__file__).parents[1]
SOURCE = Path(worldloom.__file__).parents[1]
ENGINE = "worldloom"
DOMAINS = ("jaxarc", "jaxtrace", "acbo")
UNSAFE = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
LONGEST = 400

# Written in pieces, so that this file does not contain what it looks for.
REGISTRIES = (
    "pypi" + r"\.org",
    "python" + "hosted",
    "anaconda" + r"\.org",
    "npm" + r"js\.(org|com)",
)
MACHINE_PATHS = ("/" + r"home/\w", "/" + r"root/", "/" + r"Users/\w", "/" + r"work/(main|shared)")


def modules(package: str) -> dict[str, ast.Module]:
    """Every file of a package, parsed, by its path below the source folder."""
    return {
        str(file.relative_to(SOURCE)): ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted((SOURCE / package).rglob("*.py"))
    }


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that a file imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def offences(package: str, forbidden: Container[str]) -> list[str]:
    """`file imports module` for each import of a forbidden top-level package."""
    return [
        f"{file} imports {name}"
        for file, tree in modules(package).items()
        for name in imports(tree)
        if name.partition(".")[0] in forbidden
    ]


def test_the_engine_imports_no_domain():
    assert offences(ENGINE, set(DOMAINS)) == []


def test_only_the_command_line_knows_the_names_of_the_domains():
    named = {
        file
        for file, tree in modules(ENGINE).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.partition(".")[0] in DOMAINS
        and " " not in node.value
    }
    assert named <= {"worldloom/_systems.py"}


def test_the_rooms_of_the_engine_import_each_other_in_one_direction():
    graph: dict[str, set[str]] = {}
    for file, tree in modules(ENGINE).items():
        room = Path(file).parts[1]
        needed = (name.split(".")[1] for name in imports(tree) if name.startswith(f"{ENGINE}."))
        graph.setdefault(room, set()).update(set(needed) - {room})
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the rooms


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_domain_imports_another(domain: str):
    assert offences(domain, set(DOMAINS) - {domain}) == []


@pytest.mark.parametrize("package", [ENGINE, *DOMAINS])
def test_nothing_unsafe_is_imported(package: str):
    assert offences(package, UNSAFE) == []
    loads = [
        f"{file}, line {node.lineno}"
        for file, tree in modules(package).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "allow_pickle" and getattr(keyword.value, "value", True) is not False
    ]
    assert loads == []


@pytest.mark.parametrize("package", [ENGINE, *DOMAINS])
def test_type_checkers_are_told_that_a_package_has_types(package: str):
    assert (SOURCE / package / "py.typed").is_file()


@pytest.mark.parametrize("package", [ENGINE, *DOMAINS])
def test_no_file_is_too_long_to_read(package: str):
    files = {
        str(file): len(file.read_text().splitlines()) for file in (SOURCE / package).rglob("*.py")
    }
    assert {file: lines for file, lines in files.items() if lines > LONGEST} == {}


def tracked() -> list[Path]:
    """The files of the repository; those of its folders where there is no repository."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists():
        listed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        return [ROOT / name for name in listed.stdout.split("\0") if name]
    folders = ("src", "tests", "docs", "examples", "benchmarks")
    return [file for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file()]


def lines_with(pattern: str) -> list[str]:
    found = []
    for file in tracked():
        if not file.is_file() or b"\0" in (content := file.read_bytes()):
            continue
        for number, line in enumerate(content.decode("utf-8").splitlines(), start=1):
            if re.search(pattern, line):
                found.append(f"{file.relative_to(ROOT)}, line {number}: {line.strip()[:100]}")
    return found


@pytest.mark.parametrize("pattern", REGISTRIES)
def test_no_file_names_a_package_registry(pattern: str):
    assert lines_with(pattern) == []


@pytest.mark.parametrize("pattern", MACHINE_PATHS)
def test_no_file_names_a_path_of_one_machine(pattern: str):
    assert lines_with(rf"(?<![\w.]){pattern}") == []


def test_the_rules_can_be_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    package = tmp_path / "jaxarc"
    package.mkdir()
    (package / "a.py").write_text("def f():\n    from acbo.x import y\n    import pickle as p\n")
    assert offences("jaxarc", {"acbo", "jaxtrace"}) == [
        "jaxarc/a.py imports acbo.x",
        "jaxarc/a.py imports acbo.x.y",
    ]
    assert offences("jaxarc", UNSAFE) == ["jaxarc/a.py imports pickle"]
